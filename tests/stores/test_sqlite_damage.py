"""Damage and tampering: each is found, named by its offset where it has one, and hides nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from counterfoil.errors import LogDamaged, StoreError
from counterfoil.events import SessionKind, StoredEvent
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports.store import LetterNo
from counterfoil.stores import open_store
from counterfoil.stores.rows import verify
from tests.stores.made import ME, new_id, note
from tests.stores.places import fault_of, one_session
from tests.support.strategies import SOAK


def change(folder: Path, statement: str) -> None:
    """What somebody does to the file behind the store's back."""
    db = sqlite3.connect(folder / "counterfoil.db", isolation_level=None)
    db.execute(statement)
    db.close()


async def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "counterfoil.db").write_bytes(b"not a database at all, but long enough to look at " * 100)
    fault = await fault_of(tmp_path)
    assert isinstance(fault, LogDamaged)
    assert "counterfoil.db" in fault.message


async def test_overwritten_pages_are_damage_and_no_bare_error(tmp_path: Path) -> None:
    session = await one_session(tmp_path, *("x" * 3000 for _ in range(50)))
    with (tmp_path / "counterfoil.db").open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(120_000))
    store = open_store(tmp_path)
    with pytest.raises(LogDamaged, match=r"counterfoil\.db"):
        for asked in (store.sessions, lambda: store.read(session), lambda: store.head(session)):
            await asked()
    await store.close()


@pytest.mark.parametrize(
    ("edit", "offset"),
    [
        ("public = cast(replace(public, 'row 3', 'row X') as blob)", 3),
        ("private = x'00'", 3),
        ("private = null", 3),
        ("recorded_at = recorded_at + 1", 3),
        ("seq = 9", 3),
        ("run = null", 3),
        ("kind = 'user.prompt'", 3),
        ("digest = zeroblob(32)", 3),
        ("place = place + 10", 3),
    ],
)
async def test_one_changed_row_is_found_by_its_offset(tmp_path: Path, edit: str, offset: int) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note(f"row {n}", pairing="p") for n in range(1, 7)])
    assert verify(await store.read(session)) is None
    with sqlite3.connect(store.file) as db:
        db.execute(f"update events set {edit} where place & 1023 = 3")
    fault = verify(await store.read(session))
    assert fault is not None
    assert fault.offset == offset
    await store.close()


async def test_a_row_taken_out_or_swapped_is_found(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    rows = await store.append(lease, START, [note(f"row {n}") for n in range(1, 7)])
    for changed, offset, reason in (
        (rows[:2] + rows[3:], 3, "missing"),
        (rows[1:], 1, "missing"),
        ([*rows[:2], rows[3], rows[2], *rows[4:]], 3, "missing"),
        (rows[:3] + rows[2:], 4, "missing"),
    ):
        fault = verify(changed)
        assert fault is not None
        assert (fault.offset, reason in fault.reason) == (offset, True)
    await store.close()


@pytest.mark.parametrize("edit", ["public = 7", "digest = 'text'", "recorded_at = 'later'", "private = 1.5"])
async def test_values_of_wrong_types_are_damage_with_an_offset(tmp_path: Path, edit: str) -> None:
    session = await one_session(tmp_path, "a", "b")
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        db.execute(f"update events set {edit} where place & 1023 = 2")
    store = open_store(tmp_path)
    with pytest.raises(LogDamaged, match=r"row 2"):
        await store.read(session)
    await store.close()


async def test_text_that_is_not_utf8_is_damage_with_an_offset(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a", "b", "c")
    change(tmp_path, "update events set kind = cast(x'ff' as text) where place & 1023 = 3")
    store = open_store(tmp_path)
    with pytest.raises(LogDamaged, match=f"{session}.*row 3"):
        await store.read(session)
    assert len(await store.read(session, limit=2)) == 2
    await store.close()


async def test_a_changed_run_id_is_found(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a", "b")
    change(tmp_path, "update runs set run_id = 'run_2'")
    store = open_store(tmp_path)
    fault = verify(await store.read(session))
    assert fault is not None
    assert fault.offset == 1
    change(tmp_path, "update runs set run_id = x'72'")
    with pytest.raises(LogDamaged, match="row 1"):
        await store.read(session)
    await store.close()


async def test_a_log_under_another_session_id_is_found(tmp_path: Path) -> None:
    await one_session(tmp_path, "a")
    other = new_id()
    change(tmp_path, f"update sessions set session_id = '{other}'")
    store = open_store(tmp_path)
    fault = verify(await store.read(other))
    assert fault is not None
    assert fault.offset == 1
    await store.close()


async def test_rows_taken_off_the_end_show_only_beside_a_later_head(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a", "b", "c")
    store = open_store(tmp_path)
    kept = await store.head(session)
    change(tmp_path, "delete from events where place & 1023 = 3")
    rows = await store.read(session)
    assert verify(rows) is None
    assert (rows[-1].offset, rows[-1].digest) != (kept.offset, kept.digest)
    await store.close()


async def test_a_damaged_snapshot_is_none(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a")
    change(tmp_path, "insert into snapshots select no, 'one', 'text' from sessions")
    store = open_store(tmp_path)
    assert await store.load_snapshot(session) is None
    await store.close()


async def test_a_schema_that_was_changed_is_damage(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a")
    change(tmp_path, "alter table sessions rename column session_id to id")
    store = open_store(tmp_path)
    for asked in (store.sessions(), store.read(session)):
        with pytest.raises(LogDamaged, match=r"counterfoil\.db is damaged"):
            await asked
    await store.close()


async def test_a_list_entry_that_cannot_be_read_hides_no_other_session(tmp_path: Path) -> None:
    bad, good = await one_session(tmp_path, "a"), await one_session(tmp_path, "b")
    for broken in ("'{'", "x'ff'", "7", "'[]'", "'{}'"):
        change(tmp_path, f"update sessions set summary = {broken} where session_id = '{bad}'")
        store = open_store(tmp_path)
        listed = {entry.session_id: entry for entry in await store.sessions()}
        assert set(listed) == {bad, good}
        assert (listed[bad].kind, listed[bad].title, listed[good].title) == (SessionKind.UNKNOWN, "", "a title")
        with pytest.raises(LogDamaged, match=bad):
            await store.summary(bad)
        assert len(await store.read(bad)) == 1
        await store.close()


async def test_a_list_entry_of_a_newer_version_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a")
    newer = '{"session_id":"%s","owner":"o","title":"t","status":"paused","kind":"swarm","open_asks":{},"more":[1]}'
    change(tmp_path, f"update sessions set summary = cast('{newer % session}' as blob)")
    store = open_store(tmp_path)
    entry = await store.summary(session)
    assert (entry.title, entry.owner, entry.kind, entry.open_asks) == ("t", "o", SessionKind.UNKNOWN, 0)
    assert await store.sessions() == [entry]
    await store.close()


async def test_constraints_that_the_content_breaks_are_damage(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a")
    change(tmp_path, "update last_fence set fence = 'x'")
    db = sqlite3.connect(tmp_path / "counterfoil.db", isolation_level=None)
    db.execute("create trigger t before update on last_fence begin select raise(abort, 'x'); end")
    db.close()
    store = open_store(tmp_path)
    with pytest.raises(LogDamaged):
        await store.acquire(session, ME)
    assert len(await store.read(session)) == 1
    assert not list((tmp_path / "locks").glob("*.lock"))
    await store.close()


@pytest.mark.parametrize(
    ("edit", "damaged"),
    [
        ("delete from mail", ["post"]),
        ("update mail set last_letter = x'00', changes = 'x'", ["post"]),
        ("update letters set body = 'text'", ["letters"]),
        ("update letters set no = 'text'", ["letters"]),
        ("drop table letters", ["letters", "post"]),
    ],
)
async def test_a_damaged_mailbox_is_damage_and_the_log_is_read(tmp_path: Path, edit: str, damaged: list[str]) -> None:
    session = await one_session(tmp_path, "a")
    store = open_store(tmp_path)
    await store.post(session, b"x")
    await store.close()
    change(tmp_path, edit)
    store = open_store(tmp_path)
    for name, asked in (("letters", store.letters(session)), ("post", store.post(session, b"y"))):
        (told,) = await asyncio.gather(asked, return_exceptions=True)
        assert isinstance(told, LogDamaged) == (name in damaged), (name, told)
    assert len(await store.read(session)) == 1
    await store.close()


async def test_a_store_that_is_damaged_while_it_is_open_can_still_be_closed(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("a")])
    change(tmp_path, "update events set digest = 'text'")
    await store.close()
    assert not list((tmp_path / "locks").glob("*.lock"))


async def spoiled(folder: Path, good: dict[SessionID, list[StoredEvent]]) -> int:
    """Ask everything of a damaged store. Whatever is refused is typed, whatever is told is what was written; how
    often damage was seen.
    """
    store, seen = open_store(folder), 0
    for session, rows in good.items():
        try:
            told = await store.read(session)
            seen += told != rows
            assert verify(told) is not None or told == rows[: len(told)]
        except StoreError:
            seen += 1
        for ask in (store.head, store.summary, store.load_snapshot, store.letters):
            with contextlib.suppress(StoreError):
                await ask(session)
        with contextlib.suppress(StoreError):
            lease = await store.acquire(session, ME)
            with contextlib.suppress(StoreError):
                await store.append(lease, Offset(len(rows)), [note("more")])
            for number in [await store.post(session, b"one more"), LetterNo(1)]:
                with contextlib.suppress(StoreError):
                    await store.reply(lease, number, b"yes")
                    await store.replied(session, number)
            await store.delete(lease)
    with contextlib.suppress(StoreError):
        await store.sessions()
    await store.close()
    return seen


async def test_bytes_that_flipped_anywhere_never_give_a_bare_error_or_a_false_row(tmp_path: Path) -> None:
    for name in ("a", "b"):
        await one_session(tmp_path, *(f"{name} {n} " + "x" * 37 * n for n in range(12)))
    store = open_store(tmp_path)
    good = {entry.session_id: await store.read(entry.session_id) for entry in await store.sessions()}
    for session in good:
        for size in (3, 5000):
            await store.post(session, b"x" * size)
    await store.close()
    data = (tmp_path / "counterfoil.db").read_bytes()
    chance, seen = random.Random(None if SOAK else 7), 0
    for attempt in range(1000 if SOAK else 50):
        bad = bytearray(data)
        for _ in range(chance.choice([1, 4, 40])):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        if attempt % 10 == 0:
            del bad[chance.randrange(len(bad)) :]
        folder = tmp_path / "spoiled"
        folder.mkdir()
        (folder / "counterfoil.db").write_bytes(bad)
        seen += await spoiled(folder, good)
        shutil.rmtree(folder)
    assert seen


async def test_a_schema_that_sqlite_cannot_even_quote_is_damage(tmp_path: Path) -> None:
    await one_session(tmp_path, "a")
    file = tmp_path / "counterfoil.db"
    file.write_bytes(file.read_bytes().replace(b"sqlite_autoindex_runs_1", b"sqlite\xf3autoindex_runs_1"))
    fault = await fault_of(tmp_path)
    assert isinstance(fault, LogDamaged)
