"""`--ask=command:PROGRAM`: a program decides. It gets the ask as JSON and prints `allow` or `deny`.

Whatever goes wrong with it, the question stays open and the run is parked: it never becomes an approval.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from counterfoil.cli import faults
from counterfoil.cli.asking import Asker, Reply, verdict_for
from counterfoil.errors import UsageError
from counterfoil.events import Ask, Principal
from counterfoil.events.codec import clean_text

PREFIX = "command:"
OUTPUT_BYTES = 16 << 10
NOTE_LENGTH = 4_000
DRAIN = 0.5
"""Seconds for which the output may stay open after the program itself has ended: then its group is ended."""


class _Said(msgspec.Struct, frozen=True):
    verdict: Literal["allow", "deny"]
    note: str = ""


class _Failed(Exception):
    """Why the program gave no answer."""


def by_program(command: str, timeout: float, environment: Mapping[str, str]) -> Asker:
    """Asks the program. Raises `UsageError` where there is none."""
    try:
        argv = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"--ask={PREFIX}{command} can't be read: {fault}", hint="mind the quotes") from fault
    if not argv or shutil.which(argv[0]) is None:
        raise UsageError(
            f"--ask={PREFIX}{command} names no program that can be run",
            hint="give a path, or a name that is found in PATH",
        )
    principal = Principal(kind="program", name=clean_text(Path(argv[0]).name))

    async def reply(ask: Ask) -> Reply | None:
        try:
            said = _read(await _output(argv, msgspec.json.encode(ask) + b"\n", timeout, environment))
        except _Failed as fault:
            faults.say(f"{principal.name} gave no answer to {ask.ask_id}: {fault}; the question stays open")
            return None
        return Reply(verdict=verdict_for(ask, said.verdict), principal=principal, note=clean_text(said.note))

    return reply


def _read(output: bytes) -> _Said:
    """The answer in what was printed: a word, or a JSON object with `verdict` and perhaps `note`."""
    if len(output) > OUTPUT_BYTES:
        raise _Failed(f"it printed more than {OUTPUT_BYTES} bytes")
    word = output.strip()
    if word in (b"allow", b"deny"):
        return _Said("allow" if word == b"allow" else "deny")
    try:
        said = msgspec.json.decode(word, type=_Said)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise _Failed("it printed neither allow nor deny, nor an object with such a verdict") from fault
    if len(said.note) > NOTE_LENGTH:
        raise _Failed(f"its note is longer than {NOTE_LENGTH} characters")
    return said


async def _output(argv: list[str], given: bytes, timeout: float, environment: Mapping[str, str]) -> bytes:
    """What the program prints. Raises `_Failed`. Whatever it started in its group is gone when this returns."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", 0) as source, os.fdopen(theirs, "wb", 0) as sink:
        try:
            process = await _started(argv, given, sink.fileno(), environment)
        except (OSError, ValueError) as fault:
            raise _Failed(f"it can't be started: {fault}") from fault
        sink.close()
        return await _heard(process, source.fileno(), timeout)


async def _started(
    argv: list[str], given: bytes, sink: int, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start the program. Its input is a file: it may read all of it, some, or nothing. A start isn't interrupted."""
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=file,
                stdout=sink,
                stderr=asyncio.subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            (process,) = await asyncio.gather(starting, return_exceptions=True)
            if not isinstance(process, BaseException):
                await _end(process)
            raise


async def _heard(process: asyncio.subprocess.Process, source: int, timeout: float) -> bytes:
    reading = asyncio.ensure_future(_head(source))
    waiting = asyncio.ensure_future(process.wait())
    try:
        async with asyncio.timeout(timeout):
            await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await asyncio.wait([reading], timeout=DRAIN)
            elif len(reading.result()) <= OUTPUT_BYTES:
                await waiting
    except TimeoutError as fault:
        raise _Failed(f"it did not end within {timeout:g} s and was stopped") from fault
    finally:
        await _end(process)
        code = await waiting
        await asyncio.wait([reading], timeout=DRAIN)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    if reading.cancelled():
        raise _Failed("something that it started kept its output open")
    output = reading.result()
    if code and len(output) <= OUTPUT_BYTES:
        raise _Failed(f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}")
    return output


async def _head(source: int) -> bytes:
    """What comes, to the end or until it is too much."""
    loop = asyncio.get_running_loop()
    os.set_blocking(source, False)
    got = bytearray()
    while len(got) <= OUTPUT_BYTES:
        try:
            piece = os.read(source, 4096)
        except BlockingIOError:
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(source, lambda f=ready: f.done() or f.set_result(None))  # type: ignore[misc]
            try:
                await ready
            finally:
                loop.remove_reader(source)
            continue
        if not piece:
            break
        got += piece
    return bytes(got)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill whatever is left of the group, and reap the program."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
