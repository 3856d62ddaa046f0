"""The life of a SQLite store: closing, leases and lock files, deletion, loops that end, growth on disk."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
import warnings
from pathlib import Path

import pytest

from counterfoil.errors import Conflict, SessionHeld, StaleFence, StoreError
from counterfoil.identity import START, Offset
from counterfoil.ports import Lease
from counterfoil.stores import SqliteStore, locks, open_store
from counterfoil.stores.connection import WAL_LIMIT
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import _ENTRIES
from tests.stores.made import ME, new_id, note, summary_of


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
    for n in range(90):
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


async def test_closing_leaves_no_trace_of_sessions_without_events(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.acquire(new_id(), ME)
    lease = await store.acquire(new_id(), ME)
    await store.append(lease, START, [note("a")])
    await store.close()
    db = sqlite3.connect(tmp_path / "counterfoil.db")
    assert db.execute("select session_id, fence, holder from sessions").fetchall() == [(lease.session_id, None, None)]
    db.close()


async def test_closing_a_store_that_was_never_used_makes_nothing(tmp_path: Path) -> None:
    await open_store(tmp_path / "state").close()
    assert not (tmp_path / "state").exists()


async def test_a_lease_writes_only_through_the_store_that_gave_it(tmp_path: Path) -> None:
    one, two = open_store(tmp_path), open_store(tmp_path)
    lease = await one.acquire(new_id(), ME)
    await one.append(lease, START, [note("a")])
    for refused in (two.append(lease, Offset(1), [note("b")]), two.save_snapshot(lease, START, b""), two.delete(lease)):
        with pytest.raises(StaleFence):
            await refused
    assert len(await one.append(lease, Offset(1), [note("b")])) == 1
    await asyncio.gather(one.close(), two.close())


async def test_whoever_closes_second_waits_for_the_end_too(tmp_path: Path) -> None:
    store, go = open_store(tmp_path), threading.Event()
    lease = await store.acquire(new_id(), ME)
    await store.append(lease, START, [note("a")])
    store._writer.later(lambda db: go.wait())
    first = asyncio.ensure_future(store.close())
    second = asyncio.ensure_future(store.close())
    third = asyncio.ensure_future(store.close())
    await asyncio.wait([first, second, third], timeout=0.01)
    assert not (first.done() or second.done() or third.done())
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    go.set()
    await asyncio.gather(first, second)
    again = open_store(tmp_path)
    assert (await again.acquire(lease.session_id, ME)).fence > lease.fence
    await again.close()


async def test_a_close_that_was_cancelled_can_be_done_again(tmp_path: Path) -> None:
    store, go = open_store(tmp_path), threading.Event()
    lease = await store.acquire(new_id(), ME)
    store._writer.later(lambda db: go.wait())
    task = asyncio.ensure_future(store.close())
    await asyncio.wait([task], timeout=0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    go.set()
    await store.close()
    assert store._writer._worker._thread is None
    with pytest.raises(StoreError, match="closed"):
        await store.head(lease.session_id)


async def test_what_was_asked_for_before_closing_is_done(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    appends = [asyncio.ensure_future(store.append(lease, Offset(n), [note(str(n))])) for n in range(10)]
    await asyncio.sleep(0)
    await store.close()
    rows = [row for append in appends for row in await append]
    store = open_store(tmp_path)
    assert await store.read(session) == rows
    assert len(rows) == 10
    await store.close()


def test_a_loop_that_ends_with_an_append_in_flight_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    store, session, go = open_store(tmp_path), new_id(), threading.Event()

    async def begin() -> Lease:
        lease = await store.acquire(session, ME)
        store._writer.later(lambda db: go.wait())
        task = asyncio.ensure_future(store.append(lease, START, [note("a"), note("b")]))
        await asyncio.wait([task], timeout=0.01)
        assert not task.done()
        return lease  # and the loop is closed, the task cancelled

    async def go_on(lease: Lease) -> None:
        with pytest.raises(Conflict):
            await store.append(lease, START, [note("again")])
        rows = await store.read(session) + await store.append(lease, Offset(2), [note("c")])
        assert (len(rows), verify(rows)) == (3, None)
        await store.close()

    lease = asyncio.run(begin())
    go.set()
    asyncio.run(go_on(lease))


async def test_reading_beside_writing_sees_whole_batches(tmp_path: Path) -> None:
    store, other, session = open_store(tmp_path), open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    rows = await store.append(lease, START, [note("a"), note("b"), note("c")])

    async def watch(through: SqliteStore) -> None:
        seen = 0
        while seen < 120:
            told = await through.read(session)
            assert len(told) >= seen
            assert len(told) % 3 == 0
            assert verify(told) is None
            seen = len(told)

    async def write() -> None:
        end = rows[-1].offset
        while end < 120:
            end = (await store.append(lease, end, [note("a"), note("b"), note("c")]))[-1].offset

    await asyncio.gather(watch(store), watch(other), write())
    await asyncio.gather(store.close(), other.close())


@pytest.mark.parametrize("outside", [False, True])
async def test_the_wal_stays_bounded_beside_readers(tmp_path: Path, outside: bool) -> None:
    """A reader that goes on and on from one point of time keeps the WAL; when it ends, the WAL is cut."""
    store, session = open_store(tmp_path), new_id()
    lease = await store.acquire(session, ME)
    end = (await store.append(lease, START, [note("a")]))[-1].offset
    reader = sqlite3.connect(store.file, isolation_level=None)
    if outside:
        reader.execute("begin")
        reader.execute("select count(*) from events").fetchone()
    largest, wal = 0, tmp_path / "counterfoil.db-wal"
    for _ in range(60):
        end = (await store.append(lease, end, [note("x" * 100_000), note("y" * 100_000)]))[-1].offset
        assert len(await store.read(session, Offset(end - 2))) == 2
        largest = max(largest, wal.stat().st_size)
    assert (largest > WAL_LIMIT) == outside
    reader.close()
    for _ in range(3):
        end = (await store.append(lease, end, [note("z")]))[-1].offset
    assert wal.stat().st_size <= WAL_LIMIT
    assert (tmp_path / "counterfoil.db").stat().st_size > 11_000_000
    await store.close()


async def test_listing_looks_at_one_row_of_each_session(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.sessions()
    plan = await store._reader.run(lambda db: db.execute(f"explain query plan {_ENTRIES}").fetchall())
    steps = " | ".join(str(step[-1]) for step in plan)
    assert "SCAN e" not in steps
    assert "SEARCH e USING INTEGER PRIMARY KEY" in steps
    await store.close()


# ---- lock files -----------------------------------------------------------------------------------------------


def test_one_lock_at_a_time_while_its_file_comes_and_goes(tmp_path: Path) -> None:
    session, inside, most, taken = new_id(), 0, 0, 0
    guard = threading.Lock()

    def contend() -> None:
        nonlocal inside, most, taken
        for _ in range(300):
            lock = locks.take(tmp_path, session, ME)
            if isinstance(lock, locks.Lock):
                with guard:
                    inside += 1
                    most, taken = max(most, inside), taken + 1
                os.sched_yield()
                with guard:
                    inside -= 1
                lock.close()
            else:
                assert lock in (ME, None)

    threads = [threading.Thread(target=contend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, taken > 0) == (1, True)
    assert not list(tmp_path.iterdir())


async def test_a_holder_who_never_says_its_name_is_still_a_holder(tmp_path: Path) -> None:
    store, session = open_store(tmp_path), new_id()
    await store.sessions()
    with (tmp_path / "locks" / f"{session}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SessionHeld, match="just begun"):
            await store.acquire(session, ME)
        file.write('{"pid": 7, "host": "attic"}')
        file.flush()
        with pytest.raises(SessionHeld, match="process 7 on attic"):
            await store.acquire(session, ME)
    assert (await store.acquire(session, ME)).session_id == session  # the file of one who died
    await store.close()


async def test_letters_between_two_stores_on_one_directory_are_found_by_looking(tmp_path: Path) -> None:
    ours, theirs = open_store(tmp_path), open_store(tmp_path)
    lease = await ours.acquire(new_id(), ME)
    await ours.append(lease, START, [note("a")], summary_of(lease.session_id))
    waiting = asyncio.ensure_future(ours.wait_letters(lease.session_id))
    number = await theirs.post(lease.session_id, b"x")
    assert [one.number for one in await waiting] == [number]
    replied = asyncio.ensure_future(theirs.wait_reply(lease.session_id, number))
    await ours.reply(lease, number, b"y")
    assert await replied == b"y"
    await asyncio.gather(ours.close(), theirs.close())


async def test_however_many_wait_one_looks_and_nobody_when_nobody_waits(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    lease = await store.acquire(new_id(), ME)
    await store.append(lease, START, [note("a")])
    before = asyncio.all_tasks()
    waiting = [asyncio.ensure_future(store.wait_letters(lease.session_id)) for _ in range(20)]
    async with asyncio.timeout(20):
        while len(asyncio.all_tasks() - before) < 20 + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await store.letters(lease.session_id)
    assert len(asyncio.all_tasks() - before) == 20 + 1
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert asyncio.all_tasks() == before
    await store.close()
