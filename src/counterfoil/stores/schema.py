"""The SQLite schema and its migrations.

`events.place` is `session_no << 40 | offset`: the rows of a session lie together in one table, in order, without a
second index to write at each append. Run ids stand once in `runs` and as small numbers in the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from counterfoil.errors import StoreUnavailable

SHIFT = 40
MAX_OFFSET = (1 << SHIFT) - 1


def _first(db: sqlite3.Connection) -> None:
    db.execute(
        """create table sessions(
            no integer primary key,
            session_id text not null unique,
            fence integer not null default 0,
            holder blob,
            summary blob
        )"""
    )
    db.execute("create table runs(no integer primary key, run_id text not null unique)")
    db.execute(
        """create table events(
            place integer primary key,
            run integer,
            seq integer,
            kind text not null,
            public blob not null,
            private blob,
            digest blob not null,
            recorded_at integer not null
        )"""
    )
    db.execute(
        "create table snapshots(session_no integer primary key, up_to_offset integer not null, state blob not null)"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first,)
"""Each brings the schema one version further. Never changed once released: add another."""


def migrate(db: sqlite3.Connection, place: str) -> None:
    """Bring the database to this version, in one transaction; safe under processes that start at once.

    Raises `StoreUnavailable` where a newer version made it.
    """
    if _version(db) == len(MIGRATIONS):
        return
    db.execute("begin immediate")
    try:
        version = _version(db)
        if version > len(MIGRATIONS):
            raise StoreUnavailable(
                f"{place} was made by a newer version (schema {version}; this one knows {len(MIGRATIONS)})",
                hint="use that version, or another state directory",
            )
        for step in MIGRATIONS[version:]:
            step(db)
        db.execute(f"pragma user_version={len(MIGRATIONS)}")
        db.execute("commit")
    except BaseException:
        db.execute("rollback")
        raise


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("pragma user_version").fetchone()
    return int(version)
