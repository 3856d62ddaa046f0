"""The embedded store: one SQLite file, durable at each append, one writer thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.errors import LogDamaged, StoreError
from counterfoil.events import SessionKind, StoredEvent
from counterfoil.identity import START, Fence, Offset, RunID, SessionID
from counterfoil.ports import Head, Holder, Lease, SessionSummary, Stamped
from counterfoil.ports.store import Letter, LetterNo
from counterfoil.stores import letters, locks, summaries
from counterfoil.stores.connection import LOCKS, Connection, transaction
from counterfoil.stores.faults import check_letter, conflict, damaged, held, not_found, stale
from counterfoil.stores.rows import EMPTY, make_rows
from counterfoil.stores.schema import MAX_OFFSET, SHIFT
from counterfoil.stores.waiters import Poll

_encoder = msgspec.json.Encoder()

# The last place of session s, found by the table's own order: one step down the tree.
_LAST = "(select place from events where place > s.no << 40 and place < s.no + 1 << 40 order by place desc limit 1)"
_END = (
    "select s.no, s.fence, e.place, e.digest from sessions s"  # noqa: S608
    f" left join events e on e.place = {_LAST} where s.session_id = ?"
)
_ROWS = (
    "select e.place, r.run_id, e.seq, e.kind, e.public, e.private, e.digest, e.recorded_at"
    " from events e left join runs r on r.no = e.run where e.place > ? and e.place < ? order by e.place limit ?"
)
_ENTRIES = (
    "select s.session_id, s.summary, e.recorded_at from sessions s"  # noqa: S608
    f" join events e on e.place = {_LAST} where s.summary is not null"
)
_INSERT = "insert into events(place, run, seq, recorded_at, digest, kind, public, private) values(?,?,?,?,?,?,?,?)"


class _End(msgspec.Struct, frozen=True):
    """Where a session's log ends, and who may write on."""

    number: int
    fence: int | None
    head: Head


class SqliteStore:
    """An `EventStore` in `state_dir`. Made at once; its file is opened, and made where needed, at first use.

    Writes go through one thread and one connection, reads through another, so that a long read delays no append.

    When a caller is cancelled, what it began is still done, or not, as a whole: an append may be in the log. Nothing
    here remembers what the database doesn't say, so `head` tells, and the next append at the old end is a `Conflict`.
    A lease that was taken for a caller who is gone is given back.
    """

    def __init__(self, state_dir: Path) -> None:
        self._writer = Connection(state_dir, "counterfoil-write")
        self._reader = Connection(state_dir, "counterfoil-read", read_only=True)
        self.file = self._writer.file
        self._locks_dir = state_dir / LOCKS
        self._locks: dict[Fence, tuple[Lease, locks.Lock]] = {}
        self._run: tuple[Fence, RunID, int] | None = None
        self._mail = Poll(lambda: self._reader.run(letters.changes))

    async def acquire(self, session: SessionID, holder: Holder) -> Lease:
        taken: list[Lease] = []

        def take(db: sqlite3.Connection) -> Lease:
            taken.append(self._acquire(db, session, holder))
            return taken[0]

        try:
            return await self._writer.run(take)
        except asyncio.CancelledError:
            self._writer.later(lambda db: self._release_all(db, taken))
            raise

    def _acquire(self, db: sqlite3.Connection, session: SessionID, holder: Holder) -> Lease:
        lock = locks.take(self._locks_dir, session, holder)
        if not isinstance(lock, locks.Lock):
            raise held(session, lock)
        try:
            with transaction(db):
                db.execute("update last_fence set fence = fence + 1")
                (fence,) = db.execute("select fence from last_fence").fetchone()
                db.execute("insert or ignore into sessions(session_id) values(?)", (session,))
                who = _encoder.encode(holder)
                db.execute("update sessions set fence=?, holder=? where session_id=?", (fence, who, session))
        except BaseException:
            lock.close()
            raise
        lease = Lease(session_id=session, fence=Fence(fence), holder=holder)
        self._locks[lease.fence] = lease, lock
        return lease

    async def release(self, lease: Lease) -> None:
        await self._writer.run(lambda db: self._release(db, lease))

    def _release(self, db: sqlite3.Connection, lease: Lease) -> None:
        if lease.fence not in self._locks:
            return
        try:
            with transaction(db):
                end = _end(db, lease.session_id)
                if end is None or end.fence != lease.fence:
                    return
                if end.head.offset == START:
                    db.execute("delete from sessions where no=?", (end.number,))
                else:
                    db.execute("update sessions set fence=null, holder=null where no=?", (end.number,))
        finally:
            self._locks.pop(lease.fence)[1].close()

    def _check_ours(self, lease: Lease) -> None:
        """A lease whose lock isn't ours, or no longer, writes nothing, whatever the database still says of it."""
        if lease.fence not in self._locks:
            raise stale(lease)

    def _release_all(self, db: sqlite3.Connection, leases: Sequence[Lease]) -> None:
        for lease in leases:
            self._release(db, lease)

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        return await self._writer.run_quick(lambda db: self._append(db, lease, expected, batch, summary))

    def _append(
        self,
        db: sqlite3.Connection,
        lease: Lease,
        expected: Offset,
        batch: Sequence[Stamped],
        summary: SessionSummary | None,
    ) -> list[StoredEvent]:
        self._check_ours(lease)
        run = self._run
        with transaction(db):
            end = _held(db, lease)
            if end.head.offset != expected:
                raise conflict(lease.session_id, expected, end.head.offset)
            rows = make_rows(lease.session_id, end.head, batch)
            if rows and rows[-1].offset > MAX_OFFSET:
                raise StoreError(f"the log of session {lease.session_id} is full", hint="fork the session")
            values = []
            for row in rows:
                run = _numbered(db, end.number, lease.fence, row.run_id, run)
                place = end.number << SHIFT | row.offset
                number = None if run is None or row.run_id is None else run[2]
                values.append((place, number, row.seq, row.recorded_at, row.digest, row.kind, row.public, row.private))
            db.executemany(_INSERT, values)
            if summary is not None:
                db.execute("update sessions set summary=? where no=?", (summaries.encode(summary), end.number))
        self._run = run  # committed: from here on the number stands for this run as long as the lease holds
        return rows

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        return await self._reader.run(lambda db: _read(db, session, after, limit))

    async def head(self, session: SessionID) -> Head:
        return await self._reader.run(lambda db: _found(db, session).head)

    async def load_snapshot(self, session: SessionID) -> tuple[Offset, bytes] | None:
        def load(db: sqlite3.Connection) -> tuple[Offset, bytes] | None:
            row = db.execute(
                "select up_to_offset, state from snapshots join sessions on no = session_no where session_id=?",
                (session,),
            ).fetchone()
            if row is None or type(row[0]) is not int or type(row[1]) is not bytes:
                return None  # a damaged one is none: it can be made again
            return Offset(row[0]), row[1]

        return await self._reader.run(load)

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        def save(db: sqlite3.Connection) -> None:
            with transaction(db):
                self._check_ours(lease)
                number = _held(db, lease).number
                db.execute("insert or replace into snapshots values(?,?,?)", (number, offset, data))

        await self._writer.run(save)

    async def sessions(self, *, limit: int = 1000) -> list[SessionSummary]:
        def listed(db: sqlite3.Connection) -> list[SessionSummary]:
            found = db.execute(f"{_ENTRIES} order by e.recorded_at desc, s.no desc limit ?", (_within(limit),))
            return [_listed(*row) for row in found]

        return await self._reader.run(listed)

    async def summary(self, session: SessionID) -> SessionSummary:
        def one(db: sqlite3.Connection) -> SessionSummary:
            row = db.execute(f"{_ENTRIES} and s.session_id = ?", (session,)).fetchone()
            if row is None:
                raise not_found(session)
            return _entry(*row)

        return await self._reader.run(one)

    async def delete(self, lease: Lease) -> None:
        def remove(db: sqlite3.Connection) -> None:
            self._check_ours(lease)
            with letters.overwriting(db), transaction(db):
                first = _held(db, lease).number << SHIFT
                db.execute("delete from events where place > ? and place <= ?", (first, first | MAX_OFFSET))
                db.execute("delete from sessions where no=?", (first >> SHIFT,))
                letters.changed(db)
            self._locks.pop(lease.fence)[1].close()

        await self._writer.run(remove)

    async def post(self, session: SessionID, body: bytes) -> LetterNo:
        check_letter(body)

        def post(db: sqlite3.Connection) -> LetterNo:
            with transaction(db):
                return letters.post(db, session, _found(db, session).number, body)

        return await self._writer.run(post)

    async def letters(self, session: SessionID) -> list[Letter]:
        def unread(db: sqlite3.Connection) -> list[Letter]:
            with transaction(db, "deferred"):
                return letters.unread(db, session, _found(db, session).number)

        return await self._reader.run(unread)

    async def wait_letters(self, session: SessionID) -> list[Letter]:
        async def some() -> list[Letter] | None:
            return await self.letters(session) or None

        return await self._mail.until(some)

    async def reply(self, lease: Lease, number: LetterNo, body: bytes) -> None:
        check_letter(body)

        def reply(db: sqlite3.Connection) -> None:
            self._check_ours(lease)
            with letters.overwriting(db), transaction(db):
                letters.reply(db, _held(db, lease).number, number, body)

        await self._writer.run(reply)

    async def replied(self, session: SessionID, number: LetterNo) -> bytes | None:
        def replied(db: sqlite3.Connection) -> bytes | None:
            with transaction(db, "deferred"):
                return letters.replied(db, session, _found(db, session).number, number)

        return await self._reader.run(replied)

    async def wait_reply(self, session: SessionID, number: LetterNo) -> bytes:
        return await self._mail.until(lambda: self.replied(session, number))

    async def close(self) -> None:
        try:
            await self._reader.close()
        finally:
            try:
                await self._writer.close(lambda db: self._release_all(db, [held for held, _ in self._locks.values()]))
            finally:
                while self._locks:
                    self._locks.popitem()[1][1].close()


def _end(db: sqlite3.Connection, session: SessionID) -> _End | None:
    row = db.execute(_END, (session,)).fetchone()
    if row is None:
        return None
    number, fence, place, digest = row
    if type(number) is not int:  # an index that points to no row
        raise damaged(session, "its entry in the table of sessions is gone")
    if place is None:
        return _End(number, fence, EMPTY)
    if type(digest) is not bytes:
        raise damaged(session, f"the digest of row {place & MAX_OFFSET} is none")
    return _End(number, fence, Head(offset=Offset(place & MAX_OFFSET), digest=digest))


def _held(db: sqlite3.Connection, lease: Lease) -> _End:
    """The end of the lease's session, if the lease still holds. Raises `StaleFence`."""
    end = _end(db, lease.session_id)
    if end is None or end.fence != lease.fence:
        raise stale(lease)
    return end


def _found(db: sqlite3.Connection, session: SessionID) -> _End:
    """The end of a log that has events. Raises `SessionNotFound`."""
    end = _end(db, session)
    if end is None or end.head.offset == START:
        raise not_found(session)
    return end


def _numbered(
    db: sqlite3.Connection, session: int, fence: Fence, run: RunID | None, known: tuple[Fence, RunID, int] | None
) -> tuple[Fence, RunID, int] | None:
    """The number that stands for `run` in the rows of the session with number `session`; `known` was the last one."""
    if run is None or (known is not None and known[0] == fence and known[1] == run):
        return known
    row = db.execute("select no from runs where session_no=? and run_id=?", (session, run)).fetchone()
    if row is None:
        db.execute("insert into runs(session_no, run_id) values(?,?)", (session, run))
        row = db.execute("select last_insert_rowid()").fetchone()
    return fence, run, int(row[0])


def _read(db: sqlite3.Connection, session: SessionID, after: Offset, limit: int) -> list[StoredEvent]:
    with transaction(db, "deferred"):  # one view of the database: the number may pass to another session
        end = _found(db, session)
        first = end.number << SHIFT
        after = Offset(min(max(after, START), end.head.offset))
        found: list[Any] = []
        try:
            found.extend(db.execute(_ROWS, (first | after, (first | MAX_OFFSET) + 1, _within(limit))))
        except sqlite3.OperationalError as fault:
            if "decode to UTF-8" not in str(fault):
                raise
            bad = (found[-1][0] & MAX_OFFSET if found else after) + 1
            raise damaged(session, f"row {bad} holds text that isn't UTF-8") from fault
    return [_row(session, *row) for row in found]


def _within(limit: int) -> int:
    """`limit` as SQLite takes it."""
    return min(max(limit, 0), MAX_OFFSET)


def _row(
    session: SessionID,
    place: int,
    run_id: RunID | None,
    seq: int | None,
    kind: str,
    public: bytes,
    private: bytes | None,
    digest: bytes,
    recorded_at: int,
) -> StoredEvent:
    offset = Offset(place & MAX_OFFSET)
    if not (
        type(public) is type(digest) is bytes
        and (private is None or type(private) is bytes)
        and type(kind) is str
        and (run_id is None or type(run_id) is str)
        and type(recorded_at) is int
        and (seq is None or type(seq) is int)
    ):
        raise damaged(session, f"row {offset} holds values of wrong types")
    return StoredEvent(
        session_id=session,
        offset=offset,
        run_id=run_id,
        seq=seq,
        kind=kind,
        public=public,
        private=private,
        digest=digest,
        recorded_at=recorded_at,
    )


def _entry(session: SessionID, data: bytes, recorded_at: int) -> SessionSummary:
    try:
        entry = summaries.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as fault:
        raise damaged(session, "its list entry can't be read") from fault
    return msgspec.structs.replace(entry, session_id=session, updated_at=recorded_at)


def _listed(session: SessionID, data: bytes, recorded_at: int) -> SessionSummary:
    """The same for a list of many: one that can't be read hides none of the others, and is listed by its id."""
    try:
        return _entry(session, data, recorded_at)
    except LogDamaged:
        return SessionSummary(session_id=session, owner="", kind=SessionKind.UNKNOWN, updated_at=recorded_at)
