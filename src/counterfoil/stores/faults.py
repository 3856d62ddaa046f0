"""The errors that every store raises, in one wording, and what an SQLite error means for a person."""

from __future__ import annotations

import errno
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
from counterfoil.ports.store import LETTER_BYTES, UNREAD_LETTERS, LetterNo

_ROOM = "make room on the disk; nothing that was recorded is lost"
_HINTS = {
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_READONLY: "make it writable, or use another state directory",
    sqlite3.SQLITE_CANTOPEN: "make its folder accessible, or use another state directory",
    sqlite3.SQLITE_PERM: "make it accessible, or use another state directory",
    sqlite3.SQLITE_IOERR: "look at the disk; nothing that was recorded is lost",
    sqlite3.SQLITE_BUSY: "another process has the database locked for long; end it, or try again",
}
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT)
"""Nothing that the store writes breaks a constraint where what it finds is what it wrote."""
_DAMAGE = ("decode to UTF-8", "no such table", "no such column", "has no column named", "no such index")
"""What SQLite says of a schema that isn't ours: the version was looked at when it was opened."""
_ELSEWHERE = "give another one with --state-dir or COUNTERFOIL_STATE_DIR"
_FILES = "allow more open files (ulimit -n), or end what holds them"
_SYSTEM_HINTS = {errno.ENOSPC: _ROOM, errno.EDQUOT: _ROOM, errno.EMFILE: _FILES, errno.ENFILE: _FILES}


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


def closed() -> StoreError:
    """The error for whatever is asked of a store that was closed."""
    return StoreError("the store is closed", hint="open it again")


def check_letter(body: bytes) -> None:
    """Raise the error for a letter or a reply that is too long."""
    if len(body) > LETTER_BYTES:
        raise StoreError(f"a letter of {len(body)} bytes is too long", hint=f"at most {LETTER_BYTES}")


def mailbox_full(session: SessionID) -> StoreError:
    """The error for a letter where too many wait already."""
    return StoreError(
        f"{UNREAD_LETTERS} letters to session {session} wait for a reply already",
        hint=f"`counterfoil resume {session}` reads them",
    )


def no_letter(session: SessionID, number: LetterNo) -> StoreError:
    """The error for a letter that isn't there, or not any more."""
    return StoreError(
        f"session {session} has no letter {number}, or has it no longer",
        hint=f"`counterfoil inspect {session}` shows what became of it",
    )


def damaged(session: SessionID, what: str) -> LogDamaged:
    """The error for stored content that can't be what was written."""
    return LogDamaged(f"session {session} is damaged: {what}", hint=f"`counterfoil verify {session}` says more")


def file_damaged(file: Path, what: str) -> LogDamaged:
    """The error for a database that can't be one of ours any more."""
    return LogDamaged(f"{file} is damaged: {what}", hint="restore it from a copy, or use another state directory")


def of_sqlite(fault: sqlite3.Error, file: Path) -> StoreError:
    """What an SQLite error means for a person."""
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    text = str(fault).replace("\n", " ")
    if code in _DAMAGE_CODES or any(sign in text for sign in _DAMAGE):
        return file_damaged(file, text)
    if code in _HINTS:
        return StoreUnavailable(f"{file}: {text}", hint=_HINTS[code])
    return StoreError(f"{file}: {text}", hint="this may be a fault of Counterfoil: please report it")


def of_system(fault: OSError, folder: Path) -> StoreUnavailable:
    """What an error of the operating system about the state directory means for a person."""
    reason = "it is not a directory" if isinstance(fault, FileExistsError | NotADirectoryError) else fault.strerror
    return StoreUnavailable(
        f"the state directory {folder} can't be used: {reason or fault}",
        hint=_SYSTEM_HINTS.get(fault.errno or 0, _ELSEWHERE),
    )
