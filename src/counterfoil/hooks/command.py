"""Command hooks: a shell command in a process group of its own, JSON on its standard input, bounded in every way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence

from counterfoil.hooks.answer import OUTPUT_BYTES, Said, answer, from_command
from counterfoil.hooks.definition import HookDefinition
from counterfoil.ports import HookAnswer

_GRACE = 0.5
"""Seconds for which the pipes may stay open after the command itself has ended: then its group is ended."""


async def run_command(
    definition: HookDefinition, payload: bytes, *, cwd: str, environment: Mapping[str, str]
) -> HookAnswer:
    """Run the hook once. Whatever it started in its group is gone when this returns."""
    outputs: list[_Output] = []
    try:
        for _ in range(2):
            outputs.append(await _Output.open())
        process = await _start(definition.command, payload, outputs, cwd, environment)
        return await _heard(definition, process, *outputs)
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        return answer(definition, failure=f"the command can't be started: {why}")
    finally:
        await _close(*outputs)


async def _start(
    command: str, payload: bytes, outputs: Sequence[_Output], cwd: str, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start the command. Its input is a file: it may read all of it, some, or nothing.

    Cancelling doesn't interrupt a start that has begun: what was started then has a name, and can be ended.
    """
    shell = shutil.which("bash") or "/bin/sh"
    with tempfile.TemporaryFile() as given:
        given.write(payload)
        given.seek(0)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                shell,
                "-c",
                command,
                stdin=given,
                stdout=outputs[0].child_end,
                stderr=outputs[1].child_end,
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            (started,) = await asyncio.gather(starting, return_exceptions=True)
            if not isinstance(started, BaseException):
                await _end(started)
            raise


async def _heard(
    definition: HookDefinition, process: asyncio.subprocess.Process, out: _Output, err: _Output
) -> HookAnswer:
    """Wait for the command within its time, end its group, and read what it said."""
    try:
        async with asyncio.timeout(definition.timeout):
            out.let_go()
            err.let_go()
            code = await process.wait()
            await asyncio.wait([out.reading, err.reading], timeout=_GRACE)
    except TimeoutError:
        return answer(definition, failure=f"did not end within {definition.timeout:g} s and was stopped")
    finally:
        await _end(process)
    await asyncio.wait([out.reading, err.reading], timeout=_GRACE)
    return from_command(definition, Said(exit_code=code, stdout=out.head, stderr=err.head, cut=out.cut + err.cut))


class _Output:
    """The head of one output stream, and how much came after it. Over a pipe of our own: a background child that
    keeps it open can't delay the news that the command itself has ended.
    """

    def __init__(self, child_end: int, stream: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        self.child_end = child_end
        self.cut = 0
        self._data = bytearray()
        self._stream, self._transport = stream, transport
        self._open = True
        self.reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls) -> _Output:
        """A new pipe; its other end is for the command."""
        ours, theirs = os.pipe()
        stream = asyncio.StreamReader()
        source = os.fdopen(ours, "rb", 0)
        try:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), source
            )
        except BaseException:
            source.close()
            os.close(theirs)
            raise
        return cls(theirs, stream, transport)

    @property
    def head(self) -> bytes:
        """What was kept."""
        return bytes(self._data)

    def let_go(self) -> None:
        """Close the command's end in this process."""
        if self._open:
            os.close(self.child_end)
            self._open = False

    async def _read(self) -> None:
        while piece := await self._stream.read(65536):
            room = OUTPUT_BYTES - len(self._data)
            self._data += piece[:room]
            self.cut += max(0, len(piece) - room)

    async def close(self) -> None:
        """Stop reading."""
        self.let_go()
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)
        self._transport.close()


async def _close(*outputs: _Output) -> None:
    for output in outputs:
        await output.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill whatever is left of the group, and reap the command."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
