"""Letters in SQLite: what is read and written, inside the transactions of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from counterfoil.identity import SessionID
from counterfoil.ports.store import KEPT_REPLIES, UNREAD_LETTERS, Letter, LetterNo
from counterfoil.stores.faults import damaged, mailbox_full, no_letter


def post(db: sqlite3.Connection, session: SessionID, number: int, body: bytes) -> LetterNo:
    """Leave a letter for the session with this number."""
    (unread,) = db.execute("select count(*) from letters where session_no=? and reply is null", (number,)).fetchone()
    if unread >= UNREAD_LETTERS:
        raise mailbox_full(session)
    db.execute("update mail set last_letter = last_letter + 1, changes = changes + 1")
    row = db.execute("select last_letter from mail").fetchone()
    if row is None or type(row[0]) is not int:
        raise damaged(session, "the number of the last letter is gone")
    db.execute("insert into letters(no, session_no, body) values(?,?,?)", (row[0], number, body))
    return LetterNo(row[0])


def unread(db: sqlite3.Connection, session: SessionID, number: int) -> list[Letter]:
    """The letters without a reply, in order."""
    found = db.execute("select no, body from letters where session_no=? and reply is null order by no", (number,))
    return [Letter(number=_number(no, session), body=_bytes(body, session, no)) for no, body in found]


def reply(db: sqlite3.Connection, number: int, letter: LetterNo, body: bytes) -> None:
    """Write the first reply to a letter of the session with this number, and remove what is kept no longer."""
    done = db.execute(
        "update letters set reply=? where no=? and session_no=? and reply is null", (body, letter, number)
    )
    if not done.rowcount:
        return
    changed(db)
    db.execute(
        "delete from letters where session_no=?1 and reply is not null and no <= (select no from letters"
        " where session_no=?1 and reply is not null order by no desc limit 1 offset ?2)",
        (number, KEPT_REPLIES),
    )


def replied(db: sqlite3.Connection, session: SessionID, number: int, letter: LetterNo) -> bytes | None:
    """The reply to a letter of the session with this number."""
    row = db.execute("select reply from letters where no=? and session_no=?", (letter, number)).fetchone()
    if row is None:
        raise no_letter(session, letter)
    return None if row[0] is None else _bytes(row[0], session, letter)


def changes(db: sqlite3.Connection) -> object:
    """A value that is another one after each letter and each reply."""
    return db.execute("select changes from mail").fetchone()


def changed(db: sqlite3.Connection) -> None:
    """Whoever waits for mail is to look again."""
    db.execute("update mail set changes = changes + 1")


@contextmanager
def overwriting(db: sqlite3.Connection) -> Iterator[None]:
    """What is deleted meanwhile is overwritten, not only left out of the tree."""
    db.execute("pragma secure_delete=on")
    try:
        yield
    finally:
        db.execute("pragma secure_delete=off")


def _number(value: object, session: SessionID) -> LetterNo:
    if type(value) is not int:
        raise damaged(session, "the number of a letter is none")
    return LetterNo(value)


def _bytes(value: object, session: SessionID, letter: int) -> bytes:
    if type(value) is not bytes:
        raise damaged(session, f"letter {letter} holds values of wrong types")
    return value
