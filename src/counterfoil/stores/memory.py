"""The store that forgets: for tests, and for sessions that nobody wants to keep."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from counterfoil.events import StoredEvent
from counterfoil.identity import START, Fence, Offset, SessionID
from counterfoil.ports import Head, Holder, Lease, SessionSummary, Stamped
from counterfoil.ports.store import KEPT_REPLIES, UNREAD_LETTERS, Letter, LetterNo
from counterfoil.stores.faults import check_letter, closed, conflict, held, mailbox_full, no_letter, not_found, stale
from counterfoil.stores.rows import EMPTY, make_rows
from counterfoil.stores.waiters import Waiters


class _Log(msgspec.Struct):
    rows: list[StoredEvent] = []
    fence: int | None = None
    holder: Holder | None = None
    summary: SessionSummary | None = None
    snapshot: tuple[Offset, bytes] | None = None
    letters: dict[LetterNo, bytes] = {}
    replies: dict[LetterNo, bytes] = {}


class MemoryStore:
    """An `EventStore` in this process's memory."""

    def __init__(self) -> None:
        self._logs: dict[SessionID, _Log] = {}
        self._last_fence = 0
        self._last_letter = 0
        self._waiters = Waiters()

    async def acquire(self, session: SessionID, holder: Holder) -> Lease:
        log = self._logs.setdefault(session, _Log())
        if log.fence is not None:
            raise held(session, log.holder)
        self._last_fence += 1
        log.fence, log.holder = self._last_fence, holder
        return Lease(session_id=session, fence=Fence(log.fence), holder=holder)

    async def release(self, lease: Lease) -> None:
        log = self._logs.get(lease.session_id)
        if log is None or log.fence != lease.fence:
            return
        log.fence = log.holder = None
        if not log.rows:
            del self._logs[lease.session_id]

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        log = self._held(lease)
        head = _head(log)
        if head.offset != expected:
            raise conflict(lease.session_id, expected, head.offset)
        rows = make_rows(lease.session_id, head, batch)
        log.rows.extend(rows)
        if summary is not None:
            log.summary = summary
        return rows

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        first = max(after, 0)
        return self._found(session).rows[first : first + max(limit, 0)]

    async def head(self, session: SessionID) -> Head:
        return _head(self._found(session))

    async def load_snapshot(self, session: SessionID) -> tuple[Offset, bytes] | None:
        log = self._logs.get(session)
        return None if log is None else log.snapshot

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        self._held(lease).snapshot = (offset, data)

    async def sessions(self, *, limit: int = 1000) -> list[SessionSummary]:
        logs = [log for log in reversed(self._logs.values()) if log.summary is not None and log.rows]
        logs.sort(key=lambda log: log.rows[-1].recorded_at, reverse=True)
        return [_dated(log) for log in logs[: max(limit, 0)]]

    async def summary(self, session: SessionID) -> SessionSummary:
        log = self._found(session)
        if log.summary is None:
            raise not_found(session)
        return _dated(log)

    async def delete(self, lease: Lease) -> None:
        self._held(lease)
        del self._logs[lease.session_id]
        self._waiters.wake()

    async def post(self, session: SessionID, body: bytes) -> LetterNo:
        check_letter(body)
        log = self._found(session)
        if len(log.letters) >= UNREAD_LETTERS:
            raise mailbox_full(session)
        self._last_letter += 1
        number = LetterNo(self._last_letter)
        log.letters[number] = body
        self._waiters.wake()
        return number

    async def letters(self, session: SessionID) -> list[Letter]:
        return [Letter(number=number, body=body) for number, body in self._found(session).letters.items()]

    async def wait_letters(self, session: SessionID) -> list[Letter]:
        async def some() -> list[Letter] | None:
            return await self.letters(session) or None

        return await self._waiters.until(some)

    async def reply(self, lease: Lease, number: LetterNo, body: bytes) -> None:
        check_letter(body)
        log = self._held(lease)
        if log.letters.pop(number, None) is None:
            return
        log.replies[number] = body
        for old in sorted(log.replies)[:-KEPT_REPLIES]:
            del log.replies[old]
        self._waiters.wake()

    async def replied(self, session: SessionID, number: LetterNo) -> bytes | None:
        log = self._found(session)
        if number not in log.letters and number not in log.replies:
            raise no_letter(session, number)
        return log.replies.get(number)

    async def wait_reply(self, session: SessionID, number: LetterNo) -> bytes:
        return await self._waiters.until(lambda: self.replied(session, number))

    async def close(self) -> None:
        """What was stored stays as long as the object; who waits for mail is told."""
        self._waiters.fail(closed())

    def _found(self, session: SessionID) -> _Log:
        log = self._logs.get(session)
        if log is None or not log.rows:
            raise not_found(session)
        return log

    def _held(self, lease: Lease) -> _Log:
        log = self._logs.get(lease.session_id)
        if log is None or log.fence != lease.fence:
            raise stale(lease)
        return log


def _head(log: _Log) -> Head:
    return Head(offset=log.rows[-1].offset, digest=log.rows[-1].digest) if log.rows else EMPTY


def _dated(log: _Log) -> SessionSummary:
    assert log.summary is not None
    return msgspec.structs.replace(log.summary, updated_at=log.rows[-1].recorded_at)
