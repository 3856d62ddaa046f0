"""What people are told when the SQLite store's place is unusable, full, damaged or of another version."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.errors import LogDamaged, StoreError, StoreUnavailable
from counterfoil.identity import START, Offset, SessionID
from counterfoil.stores import SqliteStore, open_store
from counterfoil.stores.rows import verify
from counterfoil.stores.schema import MIGRATIONS, migrate
from tests.stores.child import NOBODY
from tests.stores.made import ME, new_id, note, summary_of


def child(folder: Path, command: str, session: SessionID) -> list[str]:
    """Run child.py to its end and give the lines that it prints."""
    command_line = [sys.executable, "-m", "tests.stores.child", str(folder), command, session]
    root = Path(__file__).parents[2]
    return subprocess.run(command_line, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


async def one_session(folder: Path, *texts: str) -> SessionID:
    """A closed store with one session of these notices."""
    store, session = open_store(folder), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note(text) for text in texts], summary_of(session))
    await store.release(lease)
    await store.close()
    return session


async def fault_of(folder: Path) -> StoreError:
    """What opening a store there says."""
    store = open_store(folder)
    with pytest.raises(StoreError) as caught:
        await store.acquire(new_id(), ME)
    with pytest.raises(StoreError) as read:
        await store.sessions()
    assert str(read.value) == str(caught.value)
    await store.close()
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value


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


# ---- damage ---------------------------------------------------------------------------------------------------


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
    ("change", "offset"),
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
async def test_one_changed_row_is_found_by_its_offset(tmp_path: Path, change: str, offset: int) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note(f"row {n}", pairing="p") for n in range(1, 7)])
    assert verify(await store.read(session)) is None
    with sqlite3.connect(store.file) as db:
        db.execute(f"update events set {change} where place & 1023 = 3")
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


@pytest.mark.parametrize("change", ["public = 7", "digest = 'text'", "recorded_at = 'later'", "private = 1.5"])
async def test_values_of_wrong_types_are_damage_with_an_offset(tmp_path: Path, change: str) -> None:
    session = await one_session(tmp_path, "a", "b")
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        db.execute(f"update events set {change} where place & 1023 = 2")
    store = open_store(tmp_path)
    with pytest.raises(LogDamaged, match=r"row 2"):
        await store.read(session)
    await store.close()


async def test_a_list_entry_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    session = await one_session(tmp_path, "a")
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        db.execute("update sessions set summary = '{'")
    store = open_store(tmp_path)
    for asked in (store.sessions(), store.summary(session)):
        with pytest.raises(LogDamaged, match=session):
            await asked
    assert len(await store.read(session)) == 1
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
    with sqlite3.connect(tmp_path / "counterfoil.db") as db:
        db.execute("create table theirs(x)")
    fault = await fault_of(tmp_path)
    assert "made by another program" in fault.message


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


# ---- the object -----------------------------------------------------------------------------------------------


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.sessions()
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.sessions()


async def test_leases_end_with_closing(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("a")])
    await store.close()
    store = open_store(tmp_path)
    again = await store.acquire(session, ME)
    assert again.fence > lease.fence
    await store.close()


async def test_lock_files_go_with_the_lease(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    one, two, three = [await store.acquire(new_id(), ME) for _ in range(3)]
    await store.append(one, START, [note("a")])
    await store.append(two, START, [note("a")])
    assert len(list((tmp_path / "locks").glob("*.lock"))) == 3
    await store.release(one)
    await store.delete(two)
    assert [path.stem for path in (tmp_path / "locks").glob("*.lock")] == [three.session_id]
    await store.close()
    assert not list((tmp_path / "locks").glob("*.lock"))


async def test_a_session_taken_for_a_caller_who_is_gone_is_given_back(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.sessions()
    for steps in range(4):
        session = new_id()
        task = asyncio.ensure_future(store.acquire(session, ME))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        lease = await store.acquire(session, ME)
        await store.append(lease, START, [note("a")])
    await store.close()


async def test_what_is_deleted_is_not_left_in_the_file(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("SECRET-WORD " * 5000, pairing="SECRET-WORD")], summary_of(session))
    await store.save_snapshot(lease, Offset(1), b"SECRET-WORD" * 2000)
    other = await store.acquire(new_id(), ME)
    await store.append(other, START, [note("stays")])
    await store.delete(lease)
    await store.close()
    left = (tmp_path / "counterfoil.db").read_bytes()
    assert b"SECRET-WORD" not in left
    assert session.encode() not in left
    assert b"stays" in left
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["counterfoil.db"]


async def test_bytes_on_disk_are_at_most_twice_those_of_the_events(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    rows = []
    for n in range(60):
        rows += await store.append(lease, Offset(4 * n), [note("x" * 50 * (m + 1), pairing="p") for m in range(4)])
    await store.save_snapshot(lease, rows[-1].offset, os.urandom(5000))
    await store.close()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size <= 2 * sum(len(row.public) + len(row.private or b"") for row in rows)


async def test_a_store_is_not_used_across_a_fork(tmp_path: Path) -> None:
    store, session = SqliteStore(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note("a")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tried here
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            store.read(session).send(None)
        except StoreError as fault:
            code = 0 if "forked" in fault.message else 2
        finally:
            os._exit(code)
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(await store.append(lease, Offset(1), [note("b")])) == 1
    await store.close()
