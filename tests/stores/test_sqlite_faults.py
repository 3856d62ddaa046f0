"""What people are told when the SQLite store's place is unusable, full, busy or of another version."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.errors import StaleFence, StoreError, StoreUnavailable
from counterfoil.identity import START, Offset
from counterfoil.stores import connection, open_store
from counterfoil.stores.rows import verify
from counterfoil.stores.schema import MIGRATIONS, migrate
from tests.stores.child import NOBODY
from tests.stores.made import ME, new_id, note, summary_of
from tests.stores.places import child, fault_of, one_session

# ---- the place ------------------------------------------------------------------------------------------------


async def test_files_are_private_and_folders_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "state"
    store = open_store(folder)
    assert not folder.exists()
    lease = await store.acquire(new_id(), ME)
    await store.append(lease, START, [note("a")])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes.pop("state") == modes.pop("locks") == 0o700
    assert "counterfoil.db-wal" in modes
    assert set(modes.values()) == {0o600}
    await store.close()


@pytest.mark.parametrize("below", [".", "deeper"])
async def test_a_state_directory_that_is_a_file_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "state").write_text("")
    fault = await fault_of(tmp_path / "state" / below)
    assert isinstance(fault, StoreUnavailable)
    assert str(tmp_path / "state") in fault.message
    assert "not a directory" in fault.message


async def test_a_database_that_is_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "counterfoil.db").mkdir()
    fault = await fault_of(tmp_path)
    assert isinstance(fault, StoreUnavailable)
    assert "counterfoil.db" in fault.message


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that an unprivileged process can reach."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


async def test_a_folder_that_may_not_be_written_is_named(open_to_all: Path) -> None:
    open_to_all.chmod(0o555)
    lines = child(open_to_all / "state", "unprivileged", new_id())
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("StoreUnavailable the state directory")
        assert str(open_to_all / "state") in line
        assert "Permission denied (give another one with --state-dir" in line


async def test_a_database_that_may_not_be_written_is_read_and_named(open_to_all: Path) -> None:
    session = await one_session(open_to_all, "a")
    for path in (open_to_all, *open_to_all.rglob("*")):
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    (open_to_all / "counterfoil.db").chmod(0o444)
    acquired, read, listed = child(open_to_all, "unprivileged", session)
    assert acquired.startswith(f"StoreUnavailable {open_to_all}/counterfoil.db: attempt to write a readonly database (")
    assert read.startswith("fine [<StoredEvent")
    assert listed.startswith("fine [SessionSummary")


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    fault, counts, more = child(tmp_path, "limited", new_id())
    assert fault.startswith(f"StoreUnavailable {tmp_path}/counterfoil.db: ")
    assert "nothing that was recorded is lost" in fault
    acknowledged, found, wrong = counts.split()
    assert int(acknowledged) > 0
    assert found == acknowledged
    assert wrong == "None"
    assert int(more) == int(acknowledged) + 1


async def test_a_database_at_its_largest_size_takes_no_part_of_a_batch(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("a")])
    await store._writer.run(lambda db: db.execute("pragma max_page_count=16"))
    batch = [note("b", run=None), note("x" * 200_000)]
    with pytest.raises(StoreUnavailable, match="full"):
        await store.append(lease, Offset(1), batch, summary_of(session))
    rows = await store.read(session)
    assert len(rows) == 1
    assert await store.sessions() == []
    await store._writer.run(lambda db: db.execute("pragma max_page_count=100000"))
    assert verify(rows + await store.append(lease, Offset(1), batch)) is None
    await store.close()


async def test_a_failed_append_forgets_the_run_that_it_brought(tmp_path: Path) -> None:
    store, one, two = open_store(tmp_path), new_id(), new_id()
    first, second = await store.acquire(one, ME), await store.acquire(two, ME)
    with pytest.raises(StoreError):
        await store.append(first, START, [note("a"), note("b"), note("\ud800")])
    await store._writer.run(lambda db: db.execute("pragma max_page_count=16"))
    with pytest.raises(StoreUnavailable):
        await store.append(first, START, [note("a"), note("b"), note("x" * 200_000)])
    await store._writer.run(lambda db: db.execute("pragma max_page_count=100000"))
    await store.append(second, START, [note("other", run=note("").run_id)])
    rows = await store.append(first, START, [note("a"), note("b")])
    assert await store.read(one) == rows
    assert verify(await store.read(two)) is None
    await store.close()


async def test_another_process_that_holds_the_database_is_said(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    lease = await store.acquire(new_id(), ME)
    await store._writer.run(lambda db: db.execute("pragma busy_timeout=1"))
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.append(lease, START, [note("a")])
    other.execute("rollback")
    assert len(await store.append(lease, START, [note("a")])) == 1
    other.close()
    await store.close()


async def test_a_locked_database_holds_up_no_reader_and_the_append_goes_on_after_it(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    rows = await store.append(lease, START, [note("a")])
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("begin immediate")
    append = asyncio.ensure_future(store.append(lease, Offset(1), [note("b")]))
    for _ in range(20):
        assert await store.read(session) == rows
    assert not append.done()
    other.execute("rollback")
    other.close()
    rows += await append
    assert await store.read(session) == rows
    await store.close()


async def test_giving_back_on_a_locked_database_still_ends_the_lease(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("a")])
    await store._writer.run(lambda db: db.execute("pragma busy_timeout=1"))
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.release(lease)
    other.execute("rollback")
    other.close()
    with pytest.raises(StaleFence):
        await store.append(lease, Offset(1), [note("b")])
    again = await store.acquire(session, ME)
    assert len(await store.append(again, Offset(1), [note("b")])) == 1
    await store.close()


async def test_a_process_that_never_ends_opening_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await one_session(tmp_path, "a")
    monkeypatch.setattr(connection, "BUSY_TIMEOUT", 0.01)
    with (tmp_path / "locks" / "opening").open("r+") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fault = await fault_of(tmp_path)
    assert isinstance(fault, StoreUnavailable)
    assert "being opened by another process" in fault.message
    monkeypatch.undo()
    store = open_store(tmp_path)
    assert len(await store.read(session)) == 1
    await store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_disk_that_is_full_is_said_and_with_room_again_the_store_goes_on(small_disk: Path) -> None:
    store, session, end = open_store(small_disk), new_id(), START
    lease = await store.acquire(session, ME)
    with pytest.raises(StoreUnavailable, match="make room") as caught:
        for _ in range(1000):
            end = (await store.append(lease, end, [note("x" * 5000), note("y" * 5000)]))[-1].offset
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreUnavailable, match="make room"):
        (small_disk / "filler").write_bytes(b"")
        with (small_disk / "filler").open("ab", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(b"z" * 512):
                pass
        await store.acquire(new_id(), ME)
    rows = await store.read(session)
    assert (rows[-1].offset, verify(rows)) == (end, None)
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    rows += await store.append(lease, end, [note("again")])
    await store.close()
    store = open_store(small_disk)
    assert await store.read(session) == rows
    await store.close()


# ---- versions -------------------------------------------------------------------------------------------------


async def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    await one_session(tmp_path, "a")
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        db.execute(f"pragma user_version={len(MIGRATIONS) + 1}")
    fault = await fault_of(tmp_path)
    assert isinstance(fault, StoreUnavailable)
    assert "made by a newer version" in fault.message
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        assert db.execute("select count(*) from events").fetchone() == (1,)


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "counterfoil.db")
    db.execute("create table theirs(x)")
    db.close()
    before = (tmp_path / "counterfoil.db").read_bytes()
    fault = await fault_of(tmp_path)
    assert "made by another program" in fault.message
    assert (tmp_path / "counterfoil.db").read_bytes() == before


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"pragma table_info({table})")}


def test_an_older_database_is_brought_up_step_by_step_and_keeps_its_rows() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, "x")
    db.execute("insert into sessions(session_id) values('old')")
    later = (*MIGRATIONS, lambda db: db.execute("alter table sessions add column pinned integer not null default 0"))
    migrate(db, "x", later)
    assert "pinned" in _columns(db, "sessions")
    assert db.execute("select session_id, pinned from sessions").fetchall() == [("old", 0)]
    assert db.execute("pragma user_version").fetchone() == (len(MIGRATIONS) + 1,)
    migrate(db, "x", later)
    db.close()


async def test_a_database_from_before_letters_gets_them_and_keeps_its_sessions(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a", "b")
    with contextlib.closing(sqlite3.connect(tmp_path / "counterfoil.db")) as db:
        db.executescript("drop table letters; drop table mail; pragma user_version=1")
    store = open_store(tmp_path)
    rows = await store.read(session)
    assert len(rows) == 2 and verify(rows) is None
    number = await store.post(session, b"x")
    lease = await store.acquire(session, ME)
    await store.reply(lease, number, b"y")
    assert await store.replied(session, number) == b"y"
    await store.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was() -> None:
    def broken(db: sqlite3.Connection) -> None:
        db.execute("create table half(x)")
        db.execute("drop table nothing_like_it")

    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, "x")
    with pytest.raises(sqlite3.OperationalError):
        migrate(db, "x", (*MIGRATIONS, broken))
    assert not _columns(db, "half")
    assert db.execute("pragma user_version").fetchone() == (len(MIGRATIONS),)
    db.close()
