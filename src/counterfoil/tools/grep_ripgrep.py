"""The search of Grep by ripgrep, read as JSON so that no file name can confuse it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.tools import process
from counterfoil.tools.grep_found import Enough, Found, Line

TIMEOUT = 60.0
MESSAGE_LIMIT = 64 * 1024 * 1024
_COMMON = (
    *("--json", "--no-config", "--hidden", "--no-require-git", "--sort=path", "--max-filesize=20M"),
    *("--no-ignore-global", "--no-ignore-dot", "--no-ignore-exclude"),
)
_LEFT_OUT = ("!.git", "!.hg", "!.svn", "!.jj")


async def search(rg: str, options: list[str], top: Path, found: Found, *, cwd: Path, env: Mapping[str, str]) -> None:
    """Search `top` and add what is found, until that is enough. Raises `ToolFailure` with ripgrep's own words."""
    left_out = [word for glob in _LEFT_OUT for word in ("--glob", glob)]
    reader = _Reader(found)
    argv = [rg, *_COMMON, *options, *left_out, "--", str(top)]
    try:
        outcome = await process.run(argv, cwd=cwd, environment=env, sink=reader, timeout=TIMEOUT)
    except Enough:
        return
    if outcome.timed_out:
        found.notes.append(f"[the search was stopped after {TIMEOUT:g} s: give a narrower path]")
    elif outcome.code not in (0, 1) and not reader.lines:
        raise ToolFailure(f"the search failed: {reader.said or outcome.code}", executed="no")


class _Reader:
    """Takes ripgrep's output and adds its lines to what was found."""

    def __init__(self, found: Found) -> None:
        self.said = ""
        self.lines = 0
        self._found = found
        self._rest = bytearray()

    async def __call__(self, chunk: bytes) -> None:
        self._rest += chunk
        if b"\n" not in chunk:
            if len(self._rest) > MESSAGE_LIMIT:
                raise ToolFailure("a line that matches is too long", executed="no")
            return
        *messages, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for message in messages:
            self._take(message)

    def _take(self, message: bytes) -> None:
        if not message.startswith(b'{"type"'):
            if len(self.said) < 2000:
                self.said += message.decode("utf-8", "replace") + "\n"
            return
        decoded: dict[str, Any] = msgspec.json.decode(message)
        if decoded["type"] not in ("match", "context"):
            return
        data = decoded["data"]
        self.lines += 1
        self._found.add(
            Line(
                _bytes(data["path"]).decode("utf-8", "surrogateescape"),
                data["line_number"],
                _bytes(data["lines"]),
                decoded["type"] == "match",
            )
        )


def _bytes(value: Mapping[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


__all__ = ["search"]
