"""The background commands of one session, with what they wrote since somebody last looked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.tools import process
from counterfoil.tools.process import Child
from counterfoil.tools.text import clean, whole_characters

BUFFER = 200_000
MAX_RUNNING = 16
MAX_KEPT = 64

ShellState = Literal["running", "ended", "killed"]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at a shell shows. `dropped` bytes came before `text` and were not kept."""

    state: ShellState
    code: int | None
    text: str
    dropped: int = 0


class Shell:
    """One background command. Owns its process, and the task that reads its output."""

    def __init__(self, shell_id: str, command: str, child: Child) -> None:
        self.shell_id = shell_id
        self.command = command
        self.killed = False
        self._child = child
        self._unread = bytearray()
        self._dropped = 0
        self._owner = asyncio.ensure_future(self._drive())

    @property
    def running(self) -> bool:
        """Has the command not ended yet?"""
        return not self._owner.done()

    def look(self) -> Look:
        """What was written since the last look. An incomplete character at the end waits for the next one."""
        tail = bytes(self._unread[-8:])
        end = len(self._unread)
        if self.running:
            end -= len(tail) - whole_characters(tail)
        data, dropped = bytes(self._unread[:end]), self._dropped
        del self._unread[:end]
        self._dropped = 0
        state: ShellState = "running" if self.running else "killed" if self.killed else "ended"
        return Look(state=state, code=self._child.process.returncode, text=clean(data), dropped=dropped)

    async def kill(self) -> bool:
        """End the command and all its children. Says whether it was running."""
        if not self.running:
            return False
        self.killed = True
        await process.unbroken(self._child.stop())
        await process.unbroken(asyncio.wait([self._owner]))
        return True

    async def ended(self) -> None:
        """Wait until the command has ended and its output is here."""
        await asyncio.shield(self._owner)

    async def _drive(self) -> None:
        pump = asyncio.ensure_future(self._child.pump(self._take))
        try:
            await self._child.process.wait()
            await asyncio.wait([pump], timeout=process.DRAIN)
        finally:
            await self._child.stop()
            await asyncio.wait([pump], timeout=process.DRAIN)
            pump.cancel()
            self._child.close()

    async def _take(self, chunk: bytes) -> None:
        self._unread += chunk
        over = len(self._unread) - BUFFER
        if over > 0:
            over += next((i for i in range(4) if self._unread[over + i] & 0xC0 != 0x80), 0)
            del self._unread[:over]
            self._dropped += over


class Shells:
    """All background commands of a session. Ids are `shell_1`, `shell_2` and so on."""

    def __init__(self) -> None:
        self._shells: dict[str, Shell] = {}
        self._count = 0
        self._closed = False

    async def start(self, command: str, argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Shell:
        """Start a command that goes on by itself. Raises `ToolFailure` where too many run already."""
        if self._closed:
            raise ToolFailure("the session is closed", executed="no")
        if sum(shell.running for shell in self._shells.values()) >= MAX_RUNNING:
            raise ToolFailure(
                f"{MAX_RUNNING} background commands run already", executed="no", hint="stop one with KillShell"
            )
        child = await process.started(argv, cwd=cwd, environment=environment)
        self._count += 1
        shell = Shell(f"shell_{self._count}", command, child)
        self._shells[shell.shell_id] = shell
        if self._closed:
            await shell.kill()
        ended = [key for key, held in self._shells.items() if not held.running]
        for key in ended[: max(len(self._shells) - MAX_KEPT, 0)]:
            del self._shells[key]
        return shell

    def get(self, shell_id: str) -> Shell:
        """The shell of this id. Raises `ToolFailure` that names those there are."""
        shell = self._shells.get(shell_id)
        if shell is None:
            known = ", ".join(self._shells) or "none"
            raise ToolFailure(f"there is no background command {shell_id!r}; there are: {known}", executed="no")
        return shell

    async def close(self) -> None:
        """Kill all that run."""
        self._closed = True
        await process.unbroken(asyncio.gather(*(shell.kill() for shell in self._shells.values())))


__all__ = ["Look", "Shell", "Shells"]
