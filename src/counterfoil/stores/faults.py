"""The errors that every store raises, in one wording, and what an SQLite error means for a person."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from counterfoil.errors import (
    Conflict,
    LogDamaged,
    SessionHeld,
    SessionNotFound,
    StaleFence,
    StoreError,
    StoreUnavailable,
)
from counterfoil.identity import Offset, SessionID
from counterfoil.ports import Holder, Lease

_HINTS = {
    sqlite3.SQLITE_FULL: "make room on the disk; nothing that was recorded is lost",
    sqlite3.SQLITE_READONLY: "make it writable, or use another state directory",
    sqlite3.SQLITE_CANTOPEN: "make its folder accessible, or use another state directory",
    sqlite3.SQLITE_PERM: "make it accessible, or use another state directory",
    sqlite3.SQLITE_IOERR: "look at the disk; nothing that was recorded is lost",
    sqlite3.SQLITE_BUSY: "another process has the database locked for long; end it, or try again",
}


def held(session: SessionID, holder: Holder | None) -> SessionHeld:
    """The error that names who drives `session`; None: somebody who hasn't said yet who they are."""
    who = f"{holder.program} (process {holder.pid} on {holder.host})" if holder else "a process that has just begun"
    return SessionHeld(f"session {session} is driven by {who}", hint="end that process, or fork the session")


def stale(lease: Lease) -> StaleFence:
    """The error for a lease that was given back or has passed on."""
    return StaleFence(
        f"the lease of session {lease.session_id} was given back or has passed to another holder", hint="open it again"
    )


def conflict(session: SessionID, expected: Offset, found: Offset) -> Conflict:
    """The error for an append at another place than the end."""
    return Conflict(f"the log of session {session} ends at {found}, not at {expected}", hint="read it again")


def not_found(session: SessionID) -> SessionNotFound:
    """The error for an id that no session has."""
    return SessionNotFound(f"no session {session}", hint="`counterfoil sessions list` shows all")


def damaged(session: SessionID, what: str) -> LogDamaged:
    """The error for stored content that can't be what was written."""
    return LogDamaged(f"session {session} is damaged: {what}", hint=f"`counterfoil verify {session}` says more")


def of_sqlite(fault: sqlite3.Error, file: Path) -> StoreError:
    """What an SQLite error means for a person."""
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(fault):
        return LogDamaged(f"{file} is damaged: {fault}", hint="restore it from a copy, or use another state directory")
    if code in _HINTS:
        return StoreUnavailable(f"{file}: {fault}", hint=_HINTS[code])
    return StoreError(f"{file}: {fault}", hint="this may be a fault of Counterfoil: please report it")


def of_system(fault: OSError, folder: Path) -> StoreUnavailable:
    """What an error of the operating system about the state directory means for a person."""
    reason = "it is not a directory" if isinstance(fault, FileExistsError | NotADirectoryError) else fault.strerror
    return StoreUnavailable(
        f"the state directory {folder} can't be used: {reason or fault}",
        hint="give another one with --state-dir or COUNTERFOIL_STATE_DIR",
    )
