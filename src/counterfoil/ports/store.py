"""The event store: logs, leases and caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from counterfoil.events import Entry, SessionKind, SessionStatus, StoredEvent
from counterfoil.events.base import Value
from counterfoil.identity import START, Fence, Offset, RunID, SessionID


class Holder(Value, frozen=True, kw_only=True):
    """Who drives a session, for people: process, host and program."""

    pid: int
    host: str
    program: str = "counterfoil"


class Lease(Value, frozen=True, kw_only=True):
    """The right to write one session: each new lease has a higher fence."""

    session_id: SessionID
    fence: Fence
    holder: Holder


class SessionSummary(Value, frozen=True, kw_only=True):
    """The list entry of a session: a cached fold, written with the events that changed it."""

    session_id: SessionID
    kind: SessionKind = SessionKind.MAIN
    parent_session_id: SessionID | None = None
    owner: str
    title: str = ""
    workspace: str = ""
    provider: str = ""
    model: str = ""
    status: SessionStatus = "idle"
    open_asks: int = 0
    created_at: int = 0
    updated_at: int = 0


class Head(Value, frozen=True, kw_only=True):
    """The end of a session's log: last offset (0 when empty) and last digest (empty bytes when empty)."""

    offset: Offset
    digest: bytes


class Stamped(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with the place in its run's stream and its time, as the publisher stamps it."""

    entry: Entry
    run_id: RunID | None
    seq: int | None
    recorded_at: int


class EventStore(Protocol):
    """The system of record: one append-only, digest-chained log per session, and caches of its fold."""

    async def acquire(self, session: SessionID, holder: Holder) -> Lease:
        """Take the right to write, for a new or an existing session.

        Raises `SessionHeld` (the message names the holder) while a live holder has it; a holder that died
        has lost it. Raises `StoreUnavailable`.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give the right back; the lease writes nothing any more. Releasing twice, or a lease that has passed on,
        does nothing.
        """
        ...

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        """Append all or nothing, durably, after `expected`; with `summary`, replace the list entry with it.

        Raises `StaleFence` or `Conflict`: then nothing was written. Raises `StoreUnavailable`.
        """
        ...

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        """Up to `limit` rows with an offset over `after`, in order. Raises `SessionNotFound`."""
        ...

    async def head(self, session: SessionID) -> Head:
        """The end of the log. Raises `SessionNotFound`."""
        ...

    async def load_snapshot(self, session: SessionID) -> tuple[Offset, bytes] | None:
        """The latest snapshot and the offset that it goes up to. None where there is none, or no such session."""
        ...

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        """Replace the snapshot. Raises `StaleFence`."""
        ...

    async def sessions(self, *, limit: int = 1000) -> list[SessionSummary]:
        """All list entries, latest first."""
        ...

    async def summary(self, session: SessionID) -> SessionSummary:
        """One list entry. Raises `SessionNotFound`."""
        ...

    async def delete(self, lease: Lease) -> None:
        """Remove the session for good: log, snapshot, list entry. Gives the lease back."""
        ...

    async def close(self) -> None:
        """Finish what was begun and give up everything."""
        ...
