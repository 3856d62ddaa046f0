"""One SQLite connection and the one thread that uses it. Whatever goes wrong in there comes out as a typed error."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from counterfoil.errors import StoreError, StoreUnavailable
from counterfoil.stores import faults
from counterfoil.stores.schema import check, migrate
from counterfoil.stores.worker import Worker

T = TypeVar("T")
FILE = "counterfoil.db"
LOCKS = "locks"
BUSY_TIMEOUT = 30.0
"""Seconds for which a writer waits for another process."""
GATE_POLL = 0.005
"""Seconds between two looks whether another process has done with opening."""
WAL_LIMIT = 8 << 20
"""Bytes to which a WAL that grew beyond them is cut back."""


class Connection:
    """A connection to the database in `folder`: opened, and the database made or migrated, at first use."""

    def __init__(self, folder: Path, name: str, *, read_only: bool = False) -> None:
        self.file = folder / FILE
        self._folder = folder
        self._read_only = read_only
        self._worker = Worker(name)
        self._db: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` with the connection, in its thread. Raises `StoreError` and its kinds alone."""
        return await self._worker.run(lambda: self._do(work))

    async def run_quick(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same for short work: see `Worker.run_quick`."""
        return await self._worker.run_quick(lambda: self._do(work))

    def later(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Do `work` after what was asked for before; what comes of it, nobody hears."""
        self._worker.later(lambda: self._do(work))

    async def close(self, last: Callable[[sqlite3.Connection], object] | None = None) -> None:
        """Finish what was asked for, do `last` if the file was ever opened, and close. Closing twice is no matter."""
        await self._worker.close(lambda: self._close(last))

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._db is None:
                self._db = self._open()
            return work(self._db)
        except sqlite3.Error as fault:
            raise faults.of_sqlite(fault, self.file) from fault
        except OSError as fault:
            raise faults.of_system(fault, self._folder) from fault
        except UnicodeEncodeError as fault:
            raise StoreError("text that isn't valid Unicode can't be stored", hint="nothing was written") from fault
        except UnicodeDecodeError as fault:  # SQLite's own message quotes bytes of a damaged schema
            raise faults.file_damaged(self.file, "its schema can't be read") from fault
        except OverflowError as fault:
            raise StoreError("a number of more than 64 bits can't be stored", hint="nothing was written") from fault

    def _open(self) -> sqlite3.Connection:
        for folder in (self._folder, self._folder / LOCKS):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # One at a time: the change to WAL fails at once, without waiting, when two processes ask for it together.
        gate = os.open(self._folder / LOCKS / "opening", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._pass(gate)
            if not self.file.exists():  # else leave it alone: closing any descriptor of it ends SQLite's locks on it
                os.close(os.open(self.file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            return self._connect()
        finally:
            os.close(gate)

    def _pass(self, gate: int) -> None:
        """Lock the gate. A process that was stopped in there, or migrates for long, isn't waited for without end."""
        until = time.monotonic() + BUSY_TIMEOUT
        while True:
            try:
                return fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreUnavailable(
                        f"{self.file} is being opened by another process for long", hint="end it, or try again"
                    ) from None
                time.sleep(GATE_POLL)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.file, isolation_level=None, timeout=BUSY_TIMEOUT)
        try:
            check(db, str(self.file))  # before anything is changed: what isn't ours is left as it is
            db.execute("pragma journal_mode=wal")
            db.execute("pragma synchronous=full")
            db.execute("pragma foreign_keys=on")
            db.execute(f"pragma journal_size_limit={WAL_LIMIT}")
            migrate(db, str(self.file))
            if self._read_only:
                db.execute("pragma query_only=on")
        except BaseException:
            db.close()
            raise
        return db

    def _close(self, last: Callable[[sqlite3.Connection], object] | None) -> None:
        db, self._db = self._db, None
        if db is None:
            return
        try:
            if last is not None:
                last(db)
        except (sqlite3.Error, OSError, StoreError):
            pass  # what couldn't be tidied up is the next opener's to overwrite
        finally:
            db.close()


class transaction:
    """`begin` … `commit`, or `rollback` when anything is raised. `immediate` to write, `deferred` to read."""

    def __init__(self, db: sqlite3.Connection, kind: str = "immediate") -> None:
        self._db = db
        self._kind = kind

    def __enter__(self) -> None:
        self._db.execute("begin " + self._kind)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            if kind is None:
                self._db.execute("commit")
        finally:
            if self._db.in_transaction:
                self._db.execute("rollback")
