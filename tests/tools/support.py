"""What the tests of the tools share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.events import text_of
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.ports import ToolContext, ToolOutput
from counterfoil.tools import BuiltinTools, ToolOptions


class Bench:
    """A workspace with its tools."""

    def __init__(self, folder: Path, options: ToolOptions | None = None, environment: Mapping[str, str] | None = None):
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.outside = folder / "outside"
        self.outside.mkdir(exist_ok=True)
        self.output_dir = folder / "output"
        self.environment = dict(os.environ) if environment is None else dict(environment)
        self.tools = BuiltinTools(self.workspace, options=options)
        self.progress: list[str] = []
        self._count = 0

    def ctx(self) -> ToolContext:
        """The context of a new call."""
        self._count += 1
        return ToolContext(
            session_id=SessionID("ses_test"),
            tool_call_id=ToolCallID(f"call_{self._count}"),
            workspace=self.workspace,
            output_dir=self.output_dir,
            environment=self.environment,
            progress=self.progress.append,
        )

    async def call(self, tool: str, **arguments: Any) -> ToolOutput:
        """Check and run, as the engine does."""
        ctx, found = self.ctx(), self.tools.get(tool)
        assert found is not None
        found.targets(ctx, arguments)
        return await found.run(ctx, arguments)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text of the result."""
        return text_of((await self.call(tool, **arguments)).parts)

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def alive(pid: int) -> bool:
    """Is there a process of this id that is not merely unreaped?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


async def pid_in(path: Path) -> int:
    """The number that another process writes to `path`, when it is there."""
    async with asyncio.timeout(10):
        while True:
            if path.exists() and (text := path.read_text()).endswith("\n"):
                return int(text)
            await asyncio.sleep(0.005)


async def gone(pid: int) -> bool:
    """Wait until the process is gone."""
    async with asyncio.timeout(5):
        while alive(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return True
