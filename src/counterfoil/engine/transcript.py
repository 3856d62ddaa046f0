"""The transcript file that hooks may read: one JSON line for each durable event, public bytes alone.

A convenience for scripts, not a record: it is written anew when a session is opened, then kept current by appending.
It exists only while hooks are configured.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from counterfoil.events import StoredEvent
from counterfoil.events.codec import encode_envelope, envelope_of
from counterfoil.identity import START, SessionID
from counterfoil.ports import EventStore

PAGE = 2_000


class Transcript:
    """The open transcript file of one session."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file

    @classmethod
    async def open(cls, folder: Path, store: EventStore, session: SessionID) -> Transcript:
        """Write the transcript of what `store` has of `session`, and keep the file open. Raises `OSError`."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{session}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        transcript = cls(path, os.fdopen(descriptor, "wb"))
        offset = START
        while rows := await store.read(session, offset, PAGE):
            transcript.append(rows)
            offset = rows[-1].offset
        return transcript

    def append(self, rows: Iterable[StoredEvent]) -> None:
        """Add rows, and let readers see them."""
        for row in rows:
            self._file.write(encode_envelope(envelope_of(row), row.public) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; it stays."""
        self._file.close()
