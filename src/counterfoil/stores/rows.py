"""Rows of a log: how a batch becomes rows with chained digests, and how a chain is verified. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from counterfoil.events import StoredEvent
from counterfoil.events.base import Value
from counterfoil.events.codec import encode_event, encode_private, kind_of
from counterfoil.identity import START, Offset, SessionID, chain_digest
from counterfoil.ports import Head, Stamped


FIRST = Offset(1)


class Fault(Value, frozen=True, kw_only=True):
    """The first row that doesn't fit, and why."""

    offset: Offset
    reason: str


def make_rows(session: SessionID, head: Head, batch: Sequence[Stamped]) -> list[StoredEvent]:
    """The rows that append `batch` after `head`: offsets without gaps, each digest over the one before."""
    rows: list[StoredEvent] = []
    offset, previous = head.offset, head.digest
    for stamped in batch:
        event = stamped.entry.event
        offset = Offset(offset + 1)
        row = StoredEvent(
            session_id=session,
            offset=offset,
            run_id=stamped.run_id,
            seq=stamped.seq,
            kind=kind_of(event),
            public=encode_event(event),
            private=encode_private(stamped.entry.private),
            digest=b"",
            recorded_at=stamped.recorded_at,
        )
        previous = row_digest(previous, row)
        rows.append(
            StoredEvent(
                session_id=session,
                offset=offset,
                run_id=row.run_id,
                seq=row.seq,
                kind=row.kind,
                public=row.public,
                private=row.private,
                digest=previous,
                recorded_at=row.recorded_at,
            )
        )
    return rows


def row_digest(previous: bytes, row: StoredEvent) -> bytes:
    """The digest that `row` must have after a row with digest `previous`. Absent values differ from empty ones."""
    return chain_digest(
        previous,
        (
            row.session_id.encode(),
            row.offset.to_bytes(8, "big"),
            _optional(None if row.run_id is None else row.run_id.encode()),
            _optional(None if row.seq is None else row.seq.to_bytes(8, "big")),
            row.kind.encode(),
            row.public,
            _optional(row.private),
            row.recorded_at.to_bytes(8, "big", signed=True),
        ),
    )


def _optional(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def verify(rows: Iterable[StoredEvent], previous: bytes = b"", expected: Offset = FIRST) -> Fault | None:
    """The first row that does not follow: an offset is missing, or its content gives another digest. None: all fit.

    `previous` and `expected` are the digest before the first row and the offset that it must have.
    """
    for row in rows:
        if row.offset != expected:
            return Fault(offset=expected, reason=f"the row is missing; the next one is {row.offset}")
        if row_digest(previous, row) != row.digest:
            return Fault(offset=row.offset, reason="the row was changed: its digest doesn't fit")
        previous, expected = row.digest, Offset(expected + 1)
    return None


EMPTY = Head(offset=START, digest=b"")
"""The head of a log without rows."""
