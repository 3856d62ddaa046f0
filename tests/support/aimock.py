"""An independent mock of the providers' APIs (the npm package pinned in tests/peers), as a process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[1] / "peers" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
NODE = shutil.which("node")
MISSING = (
    "node is not installed" if NODE is None else "" if PROGRAM.exists() else "run `make peers`: the mock isn't there"
)
"""Why tests against it can't run; empty where they can."""


@asynccontextmanager
async def aimock(fixtures: list[dict[str, Any]], folder: Path, *, key: str = "") -> AsyncIterator[str]:
    """The mock server on these fixtures, open to all or to those who have the `key`; gives its URL without a path."""
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    command = [str(NODE), str(PROGRAM), "-p", "0", "-f", str(file), "--strict", "--validate-on-load"]
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **({"AIMOCK_API_KEYS": key} if key else {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        said = b""
        while True:
            line = await asyncio.wait_for(process.stdout.readline(), 30)
            said += line
            if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
                break
            assert line, f"the mock server ended: {said.decode()}"
        drain = asyncio.ensure_future(process.stdout.read())
        yield found.group().decode()
        drain.cancel()
    finally:
        process.kill()
        await process.wait()


async def journal(url: str) -> list[dict[str, Any]]:
    """Every request that the mock server at `url` got, oldest first, with what it answered."""

    def read() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{url}/__aimock/journal", timeout=10) as answer:
            entries: list[dict[str, Any]] = json.load(answer)
            return entries

    return await asyncio.to_thread(read)
