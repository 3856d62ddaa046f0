"""The event store: logs, leases and caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NewType, Protocol

import msgspec

from counterfoil.events import Entry, SessionKind, SessionStatus, StoredEvent
from counterfoil.events.base import Value
from counterfoil.identity import START, Fence, Offset, RunID, SessionID

LetterNo = NewType("LetterNo", int)
"""Number of a letter: higher for each one that is posted in this store, and never used again."""
LETTER_BYTES = 64 << 10
"""The longest letter, and the longest reply."""
UNREAD_LETTERS = 100
"""So many letters of one session wait for their reply at most."""
KEPT_REPLIES = 100
"""So many replies of one session are kept for those who wait for them; older ones are removed with their letters."""


class Letter(Value, frozen=True, kw_only=True):
    """What somebody without the lease wants of whoever drives a session. The store doesn't look into it."""

    number: LetterNo
    body: bytes


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

    async def post(self, session: SessionID, body: bytes) -> LetterNo:
        """Leave a letter for whoever drives the session, now or later; durably, and without a lease.

        Letters and replies are no part of the log or its digests. Raises `SessionNotFound`, and `StoreError` where
        the letter is too long or too many wait already; then nothing was left.
        """
        ...

    async def letters(self, session: SessionID) -> list[Letter]:
        """The letters that have no reply yet, in the order in which they were posted. Raises `SessionNotFound`."""
        ...

    async def wait_letters(self, session: SessionID) -> list[Letter]:
        """The same once there is one: at once, or as soon as this store's way of looking finds it.

        Raises `SessionNotFound`, also where the session is deleted meanwhile; `StoreError` when the store is closed.
        """
        ...

    async def reply(self, lease: Lease, number: LetterNo, body: bytes) -> None:
        """Reply to a letter of the lease's session. The first reply stays; to no such letter, nothing happens.

        Raises `StaleFence`, and `StoreError` for a reply that is too long; then nothing was written.
        """
        ...

    async def replied(self, session: SessionID, number: LetterNo) -> bytes | None:
        """The reply to a letter; None while there is none. Raises `SessionNotFound`, and `StoreError` where there is
        no such letter, or none any more.
        """
        ...

    async def wait_reply(self, session: SessionID, number: LetterNo) -> bytes:
        """The same once there is one, found as in `wait_letters`."""
        ...

    async def close(self) -> None:
        """Finish what was begun and give up everything."""
        ...
