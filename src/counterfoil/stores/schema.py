"""The SQLite schema and its migrations.

`events.place` is `session_no << 40 | offset`: the rows of a session lie together in one table, in order, without a
second index to write at each append. Small columns stand before large ones, so that the end of a log is read without
walking through the pages of a long event. Run ids stand once in `runs` and as small numbers in the rows. Fences come
from one counter for the whole database: a session that is deleted and made again never meets an old one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from counterfoil.errors import StoreUnavailable

SHIFT = 40
MAX_OFFSET = (1 << SHIFT) - 1

Step = Callable[[sqlite3.Connection], None]


def _first(db: sqlite3.Connection) -> None:
    db.execute("create table last_fence(fence integer not null)")
    db.execute("insert into last_fence values(0)")
    db.execute(
        """create table sessions(
            no integer primary key,
            session_id text not null unique,
            fence integer,
            holder blob,
            summary blob
        )"""
    )
    db.execute(
        """create table runs(
            no integer primary key,
            session_no integer not null references sessions(no) on delete cascade,
            run_id text not null,
            unique(session_no, run_id)
        )"""
    )
    db.execute(
        """create table events(
            place integer primary key,
            run integer,
            seq integer,
            recorded_at integer not null,
            digest blob not null,
            kind text not null,
            public blob not null,
            private blob
        )"""
    )
    db.execute(
        """create table snapshots(
            session_no integer primary key references sessions(no) on delete cascade,
            up_to_offset integer not null,
            state blob not null
        )"""
    )


def _letters(db: sqlite3.Connection) -> None:
    """Letters to sessions. `mail` is one row that whoever waits looks at: it changes with each letter and reply."""
    db.execute("create table mail(last_letter integer not null, changes integer not null)")
    db.execute("insert into mail values(0, 0)")
    db.execute(
        """create table letters(
            session_no integer not null references sessions(no) on delete cascade,
            no integer not null,
            body blob not null,
            reply blob,
            primary key(session_no, no)
        ) without rowid"""
    )


MIGRATIONS: tuple[Step, ...] = (_first, _letters)
"""Each brings the schema one version further. Never changed once released: add another."""


def migrate(db: sqlite3.Connection, place: str, steps: Sequence[Step] = MIGRATIONS) -> None:
    """Bring the database to the version that `steps` end at, in one transaction; safe under processes that start at
    once. `place` names the database in errors.

    Raises `StoreUnavailable` where a newer version made it, or another program.
    """
    if check(db, place, len(steps)) == len(steps):
        return
    db.execute("begin immediate")
    try:
        for step in steps[check(db, place, len(steps)) :]:
            step(db)
        db.execute(f"pragma user_version={len(steps)}")
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def check(db: sqlite3.Connection, place: str, known: int = len(MIGRATIONS)) -> int:
    """The schema's version, found without writing anything: 0 for an empty database.

    Raises `StoreUnavailable` where a newer version than `known` made it, or another program.
    """
    (version,) = db.execute("pragma user_version").fetchone()
    if version > known:
        raise StoreUnavailable(
            f"{place} was made by a newer version (schema {version}; this one knows {known})",
            hint="use that version, or another state directory",
        )
    if version <= 0 and db.execute("select 1 from sqlite_master limit 1").fetchone():
        raise StoreUnavailable(f"{place} was made by another program", hint="use another state directory")
    return max(int(version), 0)
