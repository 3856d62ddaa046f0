"""Child processes: each in its own group, which is gone when the call is over, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from counterfoil.errors import ToolFailure

T = TypeVar("T")
Sink = Callable[[bytes], Awaitable[None]]

GRACE = 1.0
"""Seconds between the request to end and the kill."""
DRAIN = 0.5
"""Seconds that children who keep the output open have after the command itself ended."""
POLL = 0.02
CHUNK = 65536


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `code` is negative for a signal. `left`: it had left processes behind, now stopped."""

    code: int
    timed_out: bool = False
    left: bool = False


class Child:
    """A started command: its process, and the read end of its output (stdout and stderr in one pipe)."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: asyncio.StreamReader, end: asyncio.Transport) -> None:
        self.process = process
        self._pipe = pipe
        self._end = end

    @property
    def group(self) -> int:
        """The process group, whose id is that of the first process."""
        return self.process.pid

    async def pump(self, sink: Sink) -> None:
        """Give all output to `sink`, chunk by chunk, until nobody holds the pipe open."""
        while chunk := await self._pipe.read(CHUNK):
            await sink(chunk)

    async def stop(self, grace: float = GRACE) -> bool:
        """End the whole group: asked first, killed after `grace` seconds. Says whether there was anything to end."""
        alive = group_lives(self.group) and signal_group(self.group, signal.SIGTERM)
        waited = 0.0
        while alive and waited < grace:
            await _pause(self.process, POLL)
            waited += POLL
            if not group_lives(self.group):
                break
        signal_group(self.group, signal.SIGKILL)
        await self.process.wait()
        return alive

    def close(self) -> None:
        """Let go of the pipe."""
        self._end.close()


async def _pause(process: asyncio.subprocess.Process, seconds: float) -> None:
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)
    else:
        await asyncio.sleep(seconds)


def signal_group(group: int, number: int) -> bool:
    """Signal the group. False where nobody (or only who can't be signalled) is left in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def group_lives(group: int) -> bool:
    """Does anybody in the group still run? The dead whom nobody has reaped (in containers, often) don't count."""
    if not signal_group(group, 0):
        return False
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    return not stats or any(_runs_in(group, stat) for stat in stats)


def _runs_in(group: int, stat: Path) -> bool:
    try:
        state, _, its_group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(its_group) == group and state not in "ZX"


async def start(argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Child:
    """Start a command with nothing to read, in its own session. Raises `ToolFailure` where it can't be started."""
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except BaseException as fault:
        os.close(read_end)
        if isinstance(fault, (OSError, ValueError)):
            raise ToolFailure(f"the command could not be started: {fault}", executed="no") from fault
        raise
    finally:
        os.close(write_end)
    pipe = asyncio.StreamReader(limit=CHUNK)
    loop = asyncio.get_running_loop()
    end, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(pipe), os.fdopen(read_end, "rb", buffering=0)
    )
    return Child(process, pipe, end)  # type: ignore[arg-type]


async def run(argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], sink: Sink, timeout: float) -> Outcome:
    """Run a command to its end. Whatever happens (time-out, cancel, fault), its group is gone afterwards."""
    child = await started(argv, cwd=cwd, environment=environment)
    pump = asyncio.ensure_future(child.pump(sink))
    timed_out = left = False
    try:
        try:
            async with asyncio.timeout(timeout):
                await _ended(child, pump)
        except TimeoutError:
            if pump.done() and not pump.cancelled() and pump.exception():
                raise
            timed_out = True
        else:
            await asyncio.wait([pump], timeout=DRAIN)
    finally:
        left = await unbroken(_finish(child, pump))
    if pump.done() and not pump.cancelled() and (fault := pump.exception()):
        raise fault
    return Outcome(code=child.process.returncode or 0, timed_out=timed_out, left=left and not timed_out)


async def started(argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Child:
    """As `start`; when cancelled meanwhile, what was started is stopped again."""
    task = asyncio.ensure_future(start(argv, cwd=cwd, environment=environment))
    try:
        return await unbroken(task)
    except asyncio.CancelledError:
        if not task.cancelled() and task.exception() is None:
            await unbroken(task.result().stop())
            task.result().close()
        raise


async def _ended(child: Child, pump: asyncio.Future[None]) -> None:
    """Return when the process ended, or when the sink will take no more."""
    waiting = asyncio.ensure_future(child.process.wait())
    either: tuple[asyncio.Future[int] | asyncio.Future[None], ...] = (waiting, pump)
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if pump.done() and pump.exception() is None:
            await waiting
    finally:
        waiting.cancel()


async def _finish(child: Child, pump: asyncio.Future[None]) -> bool:
    left = await child.stop()
    await asyncio.wait([pump], timeout=DRAIN)
    pump.cancel()
    await asyncio.wait([pump])
    child.close()
    return left


async def unbroken(work: Awaitable[T]) -> T:
    """Await `work` to its end even when cancelled meanwhile; the cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as fault:
            cancelled = fault
    if cancelled is not None:
        raise cancelled
    return task.result()


def shell_argv(command: str) -> list[str]:
    """The command line for the shell: bash where it is installed, else sh."""
    return [shutil.which("bash") or shutil.which("sh") or "/bin/sh", "-c", command]


__all__ = [
    "Child",
    "Outcome",
    "Sink",
    "group_lives",
    "run",
    "shell_argv",
    "signal_group",
    "start",
    "started",
    "unbroken",
]
