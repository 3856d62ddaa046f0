"""Writing a session out: its public events as they are stored, its views, a readable text, or a page."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

from counterfoil.cli import transcript
from counterfoil.cli.reading import read_scrollback, rows
from counterfoil.cli.reference import resolve
from counterfoil.cli.terminal import plain
from counterfoil.errors import UsageError
from counterfoil.events.codec import encode_envelope, envelope_of
from counterfoil.identity import SessionID
from counterfoil.ports import EventStore
from counterfoil.scrollback import Scrollback


async def write(store: EventStore, reference: str, format_: str, output: Path | None) -> None:
    """Write the session that `reference` means. A file appears whole or not at all."""
    session = await resolve(store, reference)
    with written(output) as file:
        async for line in _lines(store, session, format_):
            file.write(line)


@contextlib.contextmanager
def written(output: Path | None) -> Iterator[BinaryIO]:
    """Where to write: stdout, or a file that appears whole or not at all. Raises `UsageError`."""
    if output is None or str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(output)
    except OSError as fault:
        raise UsageError(f"{output} can't be written: {fault.strerror}", hint="check --output") from fault
    finally:
        part.unlink(missing_ok=True)


async def _lines(store: EventStore, session: SessionID, format_: str) -> AsyncIterator[bytes]:
    if format_ == "jsonl":
        async for row in rows(store, session):
            yield encode_envelope(envelope_of(row), row.public) + b"\n"
        return
    yield rendered(await read_scrollback(store, session), format_)


def rendered(seen: Scrollback, format_: str) -> bytes:
    """A scrollback as `json`, `html` or `markdown`."""
    if format_ == "json":
        value = {"session": seen.session, "entries": seen.entries, "calls": seen.calls, "evidence": seen.evidence}
        return json.dumps(plain(value), ensure_ascii=False, indent=2).encode() + b"\n"
    if format_ == "html":
        from counterfoil.scrollback.page import document

        return document(seen).encode("utf-8", "replace")
    return transcript.markdown(seen).encode("utf-8", "replace")
