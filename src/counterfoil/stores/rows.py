"""Rows of a log: how a batch becomes rows with chained digests, and how a chain is verified. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from counterfoil.errors import StoreError
from counterfoil.events import StoredEvent
from counterfoil.events.base import Value
from counterfoil.events.codec import encode_event, encode_private, kind_of
from counterfoil.identity import START, Offset, RunID, SessionID, chain_digest
from counterfoil.ports import Head, Stamped

FIRST = Offset(1)


class Fault(Value, frozen=True, kw_only=True):
    """The first row that doesn't fit, and why."""

    offset: Offset
    reason: str


def make_rows(session: SessionID, head: Head, batch: Sequence[Stamped]) -> list[StoredEvent]:
    """The rows that append `batch` after `head`: offsets without gaps, each digest over the one before.

    Raises `StoreError` for text that isn't valid Unicode.
    """
    try:
        return _rows(session, head, batch)
    except UnicodeEncodeError as fault:
        raise StoreError("text that isn't valid Unicode can't be stored", hint="nothing was written") from fault


def _rows(session: SessionID, head: Head, batch: Sequence[Stamped]) -> list[StoredEvent]:
    rows: list[StoredEvent] = []
    offset, digest = head.offset, head.digest
    for stamped in batch:
        entry = stamped.entry
        offset = Offset(offset + 1)
        kind, public, private = kind_of(entry.event), encode_event(entry.event), encode_private(entry.private)
        place = (session, offset, stamped.run_id, stamped.seq)
        digest = chain_digest(digest, _fields(place, kind, public, private, stamped.recorded_at))
        rows.append(
            StoredEvent(
                session_id=session,
                offset=offset,
                run_id=stamped.run_id,
                seq=stamped.seq,
                kind=kind,
                public=public,
                private=private,
                digest=digest,
                recorded_at=stamped.recorded_at,
            )
        )
    return rows


def row_digest(previous: bytes, row: StoredEvent) -> bytes:
    """The digest that `row` must have after a row with digest `previous`."""
    place = (row.session_id, row.offset, row.run_id, row.seq)
    return chain_digest(previous, _fields(place, row.kind, row.public, row.private, row.recorded_at))


def _fields(
    place: tuple[SessionID, Offset, RunID | None, int | None],
    kind: str,
    public: bytes,
    private: bytes | None,
    recorded_at: int,
) -> tuple[bytes, ...]:
    """All that a row says, as the chain takes it. Absent values differ from empty ones."""
    session, offset, run, seq = place
    return (
        session.encode(),
        offset.to_bytes(8, "big"),
        _optional(None if run is None else run.encode()),
        _optional(None if seq is None else seq.to_bytes(8, "big", signed=True)),
        kind.encode(),
        public,
        _optional(private),
        recorded_at.to_bytes(8, "big", signed=True),
    )


def _optional(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def verify(rows: Iterable[StoredEvent], previous: bytes = b"", expected: Offset = FIRST) -> Fault | None:
    """The first row that does not follow: an offset is missing, or its content gives another digest. None: all fit.

    `previous` and `expected` are the digest before the first row and the offset that it must have.

    Every column of every row is covered, the session's id too. What a chain without a secret can't show: rows taken
    off the end (what is left is a shorter log that fits), and a log of which everything from some row on was written
    anew with its digests. A copy of a later `Head`, kept elsewhere, shows both.
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
