"""The embedded store: one SQLite file, durable at each append, one writer thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from counterfoil.errors import LogDamaged, StoreError, StoreUnavailable
from counterfoil.events import StoredEvent
from counterfoil.identity import START, Fence, Offset, RunID, SessionID
from counterfoil.ports import Head, Holder, Lease, SessionSummary, Stamped
from counterfoil.stores.locks import Locks
from counterfoil.stores.memory import conflict, held, not_found, stale
from counterfoil.stores.rows import EMPTY, make_rows
from counterfoil.stores.schema import MAX_OFFSET, SHIFT, migrate

T = TypeVar("T")
FILE = "counterfoil.db"
_encoder = msgspec.json.Encoder()
_summaries = msgspec.json.Decoder(SessionSummary)


class SqliteStore:
    """An `EventStore` in `state_dir`. Made at once; its file is opened, and made where needed, at first use.

    Writes go through one thread and one connection, reads through another, so that a long read delays no append.
    When a caller is cancelled, what it began may still be written; nothing here remembers anything that the
    database doesn't say, so the next call sees what is there.
    """

    def __init__(self, state_dir: Path) -> None:
        self.file = state_dir / FILE
        self._dir = state_dir
        self._locks = Locks(state_dir / "locks")
        self._writer = _Thread(self.file, "counterfoil-write", self._prepare)
        self._reader = _Thread(self.file, "counterfoil-read", self._prepare)
        self._runs: dict[RunID, int] = {}

    def _prepare(self) -> None:
        for folder in (self._dir, self._dir / "locks"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.file.exists():
            self.file.touch(mode=0o600, exist_ok=True)

    async def acquire(self, session: SessionID, holder: Holder) -> Lease:
        return await self._writer.run(lambda db: self._acquire(db, session, holder))

    def _acquire(self, db: sqlite3.Connection, session: SessionID, holder: Holder) -> Lease:
        if other := self._locks.take(session, holder):
            raise held(session, other)
        try:
            with _transaction(db):
                db.execute("insert or ignore into sessions(session_id) values(?)", (session,))
                row = db.execute(
                    "update sessions set fence=fence+1, holder=? where session_id=? returning fence",
                    (_encoder.encode(holder), session),
                ).fetchone()
        except BaseException:
            self._locks.give_back(session)
            raise
        return Lease(session_id=session, fence=Fence(row[0]), holder=holder)

    async def release(self, lease: Lease) -> None:
        await self._writer.run(lambda db: self._release(db, lease))

    def _release(self, db: sqlite3.Connection, lease: Lease) -> None:
        row = db.execute("select no, fence from sessions where session_id=?", (lease.session_id,)).fetchone()
        if row is None or row[1] != lease.fence:
            return
        empty = _head(db, row[0]).offset == START
        if empty:
            db.execute("delete from sessions where no=?", (row[0],))
        self._locks.give_back(lease.session_id, remove=empty)

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        return await self._writer.run(lambda db: self._append(db, lease, expected, batch, summary))

    def _append(
        self,
        db: sqlite3.Connection,
        lease: Lease,
        expected: Offset,
        batch: Sequence[Stamped],
        summary: SessionSummary | None,
    ) -> list[StoredEvent]:
        with _transaction(db):
            number = _held(db, lease)
            head = _head(db, number)
            if head.offset != expected:
                raise conflict(lease.session_id, expected, head.offset)
            rows = make_rows(lease.session_id, head, batch)
            if rows and rows[-1].offset > MAX_OFFSET:
                raise StoreError(f"the log of session {lease.session_id} is full", hint="fork the session")
            db.executemany(
                "insert into events values(?,?,?,?,?,?,?,?)",
                [
                    (
                        number << SHIFT | row.offset,
                        None if row.run_id is None else self._run_number(db, row.run_id),
                        row.seq,
                        row.kind,
                        row.public,
                        row.private,
                        row.digest,
                        row.recorded_at,
                    )
                    for row in rows
                ],
            )
            if summary is not None:
                db.execute("update sessions set summary=? where no=?", (_encoder.encode(summary), number))
        return rows

    def _run_number(self, db: sqlite3.Connection, run: RunID) -> int:
        """The number that stands for `run` in rows. Remembered only when it is known to be committed."""
        known = self._runs.get(run)
        if known is not None:
            return known
        row = db.execute("select no from runs where run_id=?", (run,)).fetchone()
        if row is None:
            number = db.execute("insert into runs(run_id) values(?)", (run,)).lastrowid
            assert number is not None
            return number
        self._runs = {run: row[0]}
        return int(row[0])

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        return await self._reader.run(lambda db: self._read(db, session, after, limit))

    def _read(self, db: sqlite3.Connection, session: SessionID, after: Offset, limit: int) -> list[StoredEvent]:
        number = self._number(db, session)
        first = number << SHIFT
        found = db.execute(
            "select place, run_id, seq, kind, public, private, digest, recorded_at"
            " from events left join runs on runs.no = events.run where place > ? and place < ? order by place limit ?",
            (first | after, first + (1 << SHIFT), limit),
        )
        rows = [
            StoredEvent(
                session_id=session,
                offset=Offset(place - first),
                run_id=run_id,
                seq=seq,
                kind=kind,
                public=public,
                private=private,
                digest=digest,
                recorded_at=recorded_at,
            )
            for place, run_id, seq, kind, public, private, digest, recorded_at in found
        ]
        if not rows and after == START:
            raise not_found(session)
        return rows

    async def head(self, session: SessionID) -> Head:
        return await self._reader.run(lambda db: _filled_head(db, self._number(db, session), session))

    async def load_snapshot(self, session: SessionID) -> tuple[Offset, bytes] | None:
        def load(db: sqlite3.Connection) -> tuple[Offset, bytes] | None:
            number = self._number(db, session)
            row = db.execute("select up_to_offset, state from snapshots where session_no=?", (number,)).fetchone()
            return None if row is None else (Offset(row[0]), row[1])

        return await self._reader.run(load)

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        def save(db: sqlite3.Connection) -> None:
            with _transaction(db):
                db.execute("insert or replace into snapshots values(?,?,?)", (_held(db, lease), offset, data))

        await self._writer.run(save)

    async def sessions(self, *, limit: int = 1000) -> list[SessionSummary]:
        def listed(db: sqlite3.Connection) -> list[SessionSummary]:
            found = db.execute("select no, summary from sessions where summary is not null")
            entries = [_dated(db, number, data) for number, data in found]
            return sorted(entries, key=lambda entry: entry.updated_at, reverse=True)[:limit]

        return await self._reader.run(listed)

    async def summary(self, session: SessionID) -> SessionSummary:
        def one(db: sqlite3.Connection) -> SessionSummary:
            row = db.execute("select no, summary from sessions where session_id=?", (session,)).fetchone()
            if row is None or row[1] is None:
                raise not_found(session)
            return _dated(db, row[0], row[1])

        return await self._reader.run(one)

    async def delete(self, lease: Lease) -> None:
        def remove(db: sqlite3.Connection) -> None:
            with _transaction(db):
                number = _held(db, lease)
                first = number << SHIFT
                db.execute("delete from events where place > ? and place < ?", (first, first + (1 << SHIFT)))
                db.execute("delete from snapshots where session_no=?", (number,))
                db.execute("delete from sessions where no=?", (number,))
            self._locks.give_back(lease.session_id, remove=True)

        await self._writer.run(remove)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()
        self._locks.give_all_back()

    def _number(self, db: sqlite3.Connection, session: SessionID) -> int:
        row = db.execute("select no from sessions where session_id=?", (session,)).fetchone()
        if row is None:
            raise not_found(session)
        return int(row[0])


def _held(db: sqlite3.Connection, lease: Lease) -> int:
    """The number of the lease's session, if the lease still holds. Raises `StaleFence`."""
    row = db.execute("select no, fence from sessions where session_id=?", (lease.session_id,)).fetchone()
    if row is None or row[1] != lease.fence:
        raise stale(lease)
    return int(row[0])


def _head(db: sqlite3.Connection, number: int) -> Head:
    first = number << SHIFT
    row = db.execute(
        "select place, digest from events where place > ? and place < ? order by place desc limit 1",
        (first, first + (1 << SHIFT)),
    ).fetchone()
    return EMPTY if row is None else Head(offset=Offset(row[0] - first), digest=row[1])


def _filled_head(db: sqlite3.Connection, number: int, session: SessionID) -> Head:
    head = _head(db, number)
    if head.offset == START:
        raise not_found(session)
    return head


def _dated(db: sqlite3.Connection, number: int, summary: bytes) -> SessionSummary:
    first = number << SHIFT
    row = db.execute(
        "select recorded_at from events where place > ? and place < ? order by place desc limit 1",
        (first, first + (1 << SHIFT)),
    ).fetchone()
    return msgspec.structs.replace(_summaries.decode(summary), updated_at=0 if row is None else row[0])


class _transaction:
    """`begin immediate` … `commit`, or `rollback` when anything is raised."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("begin immediate")

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if kind is None:
            try:
                self._db.execute("commit")
            except sqlite3.Error:
                self._rollback()
                raise
        else:
            self._rollback()

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("rollback")


class _Thread:
    """One connection and the one thread that uses it."""

    def __init__(self, file: Path, name: str, prepare: Callable[[], None]) -> None:
        self._file = file
        self._prepare = prepare
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._db: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` with the connection. Raises typed errors alone."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._do, work)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._db is None:
                self._db = self._connect()
            return work(self._db)
        except sqlite3.Error as fault:
            raise _typed(fault, self._file) from fault
        except OSError as fault:
            raise StoreUnavailable(
                f"the state directory {self._file.parent} can't be used: {fault.strerror or fault}",
                hint="give another one with --state-dir or COUNTERFOIL_STATE_DIR",
            ) from fault

    def _connect(self) -> sqlite3.Connection:
        self._prepare()
        db = sqlite3.connect(self._file, isolation_level=None, timeout=30, check_same_thread=False)
        try:
            db.execute("pragma journal_mode=wal")
            db.execute("pragma synchronous=full")
            db.execute("pragma foreign_keys=on")
            migrate(db, str(self._file))
        except BaseException:
            db.close()
            raise
        return db

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, self._close)
        self._pool.shutdown(wait=True)

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _typed(fault: sqlite3.Error, file: Path) -> StoreError:
    """What an SQLite error means for a person."""
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    text = str(fault)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LogDamaged(f"{file} is damaged: {text}", hint="restore it from a copy, or use another state directory")
    hints = {
        sqlite3.SQLITE_FULL: "make room on the disk; nothing that was recorded is lost",
        sqlite3.SQLITE_READONLY: "make it writable, or use another state directory",
        sqlite3.SQLITE_CANTOPEN: "make its folder accessible, or use another state directory",
        sqlite3.SQLITE_IOERR: "look at the disk; nothing that was recorded is lost",
        sqlite3.SQLITE_BUSY: "another process holds the database for long; try again",
    }
    if code in hints:
        return StoreUnavailable(f"{file}: {text}", hint=hints[code])
    return StoreError(f"{file}: {text}", hint="this may be a fault of Counterfoil: please report it")
