"""Every promise of the port `EventStore`, asked of each adapter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from counterfoil.errors import Conflict, SessionHeld, SessionNotFound, StaleFence, StoreError
from counterfoil.events import StoredEvent
from counterfoil.events.codec import encode_event, encode_private, event_of
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports import EventStore, Lease
from counterfoil.stores.memory import MemoryStore
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import SqliteStore
from tests.conformance.conftest import Adapter
from tests.stores.made import ME, RUN, YOU, created, new_id, note, summary_of, unknown


async def write(store: EventStore, lease: Lease, *texts: str) -> list[StoredEvent]:
    """Append notices at the end, each in an append of its own."""
    rows: list[StoredEvent] = []
    try:
        end = (await store.head(lease.session_id)).offset
    except SessionNotFound:
        end = START
    for text in texts:
        rows += await store.append(lease, end, [note(text)])
        end = rows[-1].offset
    return rows


# ---- appends and reads ----------------------------------------------------------------------------------------


async def test_what_is_appended_is_read_back_in_order_and_without_gaps(store: EventStore, lease: Lease) -> None:
    first = await store.append(lease, START, [created(lease.session_id, at=7), note("one", at=8, seq=3)])
    second = await store.append(lease, Offset(2), [note("two", at=9)])
    rows = await store.read(lease.session_id)
    assert rows == first + second
    assert [row.offset for row in rows] == [1, 2, 3]
    assert [(row.run_id, row.seq, row.recorded_at) for row in rows] == [(None, None, 7), (RUN, 3, 8), (RUN, 1, 9)]
    assert [row.kind for row in rows] == ["session.created", "notice", "notice"]
    assert [encode_event(event_of(row)) for row in rows] == [row.public for row in rows]


async def test_an_append_survives_closing(adapter: Adapter, lease: Lease) -> None:
    rows = await write(adapter.store, lease, "a", "b")
    store = await adapter.reopen()
    assert await store.read(lease.session_id) == rows


async def test_private_halves_stay_beside_and_out_of_the_public_bytes(store: EventStore, lease: Lease) -> None:
    stamped = note("hello", pairing="CANARY-1")
    await store.append(lease, START, [stamped, note("plain")])
    one, two = await store.read(lease.session_id)
    assert one.private == encode_private(stamped.entry.private)
    assert b"CANARY" in (one.private or b"")
    assert b"CANARY" not in one.public
    assert two.private is None


async def test_the_bytes_of_unknown_kinds_are_kept_exactly(adapter: Adapter, lease: Lease) -> None:
    body = b'{ "kind":"later.kind",\n "n":1.00, "u":"\\u00e9", "n":2 }'
    await adapter.store.append(lease, START, [unknown("later.kind", body)])
    store = await adapter.reopen()
    (row,) = await store.read(lease.session_id)
    assert (row.kind, row.public) == ("later.kind", body)


async def test_an_event_of_two_megabytes_is_kept(adapter: Adapter, lease: Lease) -> None:
    text = "0123456789abcdef" * (2 << 16) + "\u00e9\U0001f600\u0000"
    rows = await write(adapter.store, lease, text, "after")
    store = await adapter.reopen()
    assert await store.read(lease.session_id) == rows
    assert (await store.head(lease.session_id)).digest == rows[-1].digest


async def test_reading_goes_page_by_page(store: EventStore, lease: Lease) -> None:
    rows = await store.append(lease, START, [note(str(n)) for n in range(10)])
    session = lease.session_id
    assert await store.read(session, Offset(0), 4) == rows[:4]
    assert await store.read(session, Offset(4), 4) == rows[4:8]
    assert await store.read(session, Offset(8), 4) == rows[8:]
    assert await store.read(session, Offset(10), 4) == []
    assert await store.read(session, Offset(2**70)) == []
    assert await store.read(session, START, 0) == []


async def test_a_page_never_holds_rows_of_another_session(store: EventStore) -> None:
    leases = [await store.acquire(new_id(), ME) for _ in range(3)]
    for lease in leases:
        await write(store, lease, lease.session_id, "end")
    for lease in leases:
        for after in (-1, -(2**41), 0, 1, 2, 2**40, 2**41):
            rows = await store.read(lease.session_id, Offset(after))
            assert [row.offset for row in rows] == [n for n in (1, 2) if n > after]
            assert {row.session_id for row in rows} <= {lease.session_id}


async def test_the_head_is_the_last_row(store: EventStore, lease: Lease) -> None:
    for text in ("a", "b", "c"):
        (row,) = await write(store, lease, text)
        head = await store.head(lease.session_id)
        assert (head.offset, head.digest) == (row.offset, row.digest)


async def test_the_digests_chain_from_the_first_row(store: EventStore, lease: Lease) -> None:
    await write(store, lease, "a", "b")
    await store.append(lease, Offset(2), [note("c", pairing="x"), note("d", run=None, seq=None)])
    rows = await store.read(lease.session_id)
    assert verify(rows) is None
    assert all(len(row.digest) == 32 for row in rows)
    assert verify(rows[2:], rows[1].digest, Offset(3)) is None


async def test_equal_input_has_equal_rows_in_every_store(tmp_path: Path) -> None:
    session = new_id()
    kept = []
    sqlite, memory = SqliteStore(tmp_path), MemoryStore()
    for store in (sqlite, memory):
        lease = await store.acquire(session, ME)
        await store.append(lease, START, [created(session), note("é", pairing="p")])
        await store.append(lease, Offset(2), [unknown("x.y", b"{}"), note("end", run=None, seq=None, at=2**50)])
        kept.append(await store.read(session))
    await sqlite.close()
    assert kept[0] == kept[1]


# ---- all or nothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", [0, 1, 3, 2**50])
async def test_an_append_at_another_place_than_the_end_writes_nothing(
    store: EventStore, lease: Lease, expected: int
) -> None:
    rows = await write(store, lease, "a", "b")
    with pytest.raises(Conflict, match="ends at 2"):
        await store.append(lease, Offset(expected), [note("c"), note("d")], summary_of(lease.session_id))
    assert await store.read(lease.session_id) == rows
    with pytest.raises(SessionNotFound):
        await store.summary(lease.session_id)


async def test_a_batch_with_one_bad_event_writes_nothing(store: EventStore, lease: Lease) -> None:
    rows = await write(store, lease, "a")
    batch = [note("b", run=None, seq=None), note("c \udcff"), note("d")]
    with pytest.raises(StoreError, match="Unicode"):
        await store.append(lease, Offset(1), batch, summary_of(lease.session_id))
    assert await store.read(lease.session_id) == rows
    assert len(await write(store, lease, "b")) == 1


async def test_one_of_many_appends_at_the_same_place_wins(store: EventStore, lease: Lease) -> None:
    tasks = [store.append(lease, START, [note(f"{n}a"), note(f"{n}b")]) for n in range(20)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, list)]
    assert all(isinstance(result, Conflict) for result in results if result is not won)
    assert await store.read(lease.session_id) == won


async def test_appends_of_many_sessions_at_once_stay_apart(store: EventStore) -> None:
    async def one() -> tuple[SessionID, list[StoredEvent]]:
        lease = await store.acquire(new_id(), ME)
        rows = []
        for n in range(15):
            rows += await store.append(lease, Offset(2 * n), [note(f"{n}"), note(f"{n} again")])
        return lease.session_id, rows

    for session, rows in await asyncio.gather(*[one() for _ in range(8)]):
        assert await store.read(session) == rows
        assert verify(rows) is None


async def test_after_a_cancelled_append_the_log_is_whole_and_goes_on(store: EventStore, lease: Lease) -> None:
    end = 0
    for n in range(30):
        task = asyncio.ensure_future(store.append(lease, Offset(end), [note(f"{n}a"), note(f"{n}b")]))
        for _ in range(n % 4):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        try:
            end += len(await store.append(lease, Offset(end), [note("next"), note("next")]))
        except Conflict:
            end += 2
    rows = await store.read(lease.session_id)
    assert len(rows) == end == 60
    assert verify(rows) is None


# ---- leases ---------------------------------------------------------------------------------------------------


async def test_a_held_session_is_refused_and_the_holder_is_named(store: EventStore, lease: Lease) -> None:
    with pytest.raises(SessionHeld) as caught:
        await store.acquire(lease.session_id, YOU)
    for part in (lease.session_id, str(ME.pid), ME.host, ME.program):
        assert part in caught.value.message
    assert len(await write(store, lease, "still mine")) == 1


async def test_each_lease_has_a_higher_fence_even_where_nothing_was_written(store: EventStore) -> None:
    session, fences = new_id(), []
    for _ in range(3):
        lease = await store.acquire(session, ME)
        fences.append(lease.fence)
        await store.release(lease)
    assert fences == sorted(set(fences))


async def test_a_lease_names_its_session_and_holder(store: EventStore) -> None:
    session = new_id()
    lease = await store.acquire(session, YOU)
    assert (lease.session_id, lease.holder) == (session, YOU)


async def test_only_one_of_many_who_ask_at_once_gets_the_session(store: EventStore) -> None:
    session = new_id()
    results = await asyncio.gather(*[store.acquire(session, ME) for _ in range(10)], return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Lease"] + ["SessionHeld"] * 9


@pytest.mark.parametrize("next_holder", [False, True])
async def test_an_append_with_an_old_fence_writes_nothing(store: EventStore, lease: Lease, next_holder: bool) -> None:
    rows = await write(store, lease, "a")
    await store.save_snapshot(lease, Offset(1), b"old")
    await store.release(lease)
    new = await store.acquire(lease.session_id, YOU) if next_holder else None
    with pytest.raises(StaleFence):
        await store.append(lease, Offset(1), [note("b")], summary_of(lease.session_id))
    with pytest.raises(StaleFence):
        await store.save_snapshot(lease, Offset(1), b"new")
    with pytest.raises(StaleFence):
        await store.delete(lease)
    assert await store.read(lease.session_id) == rows
    assert await store.load_snapshot(lease.session_id) == (1, b"old")
    if new is not None:
        assert len(await write(store, new, "b")) == 1


async def test_a_lease_of_an_empty_session_is_over_when_it_is_given_back(store: EventStore, lease: Lease) -> None:
    await store.release(lease)
    again = await store.acquire(lease.session_id, YOU)
    with pytest.raises(StaleFence):
        await store.append(lease, START, [note("mine")])
    assert len(await store.append(again, START, [note("theirs")])) == 1


async def test_giving_back_twice_or_late_does_nothing(store: EventStore, lease: Lease) -> None:
    await write(store, lease, "a")
    await store.release(lease)
    await store.release(lease)
    again = await store.acquire(lease.session_id, YOU)
    await store.release(lease)
    with pytest.raises(SessionHeld):
        await store.acquire(lease.session_id, ME)
    assert len(await write(store, again, "b")) == 1


# ---- snapshots ------------------------------------------------------------------------------------------------


async def test_the_latest_snapshot_replaces_the_one_before(adapter: Adapter, lease: Lease) -> None:
    store = adapter.store
    await write(store, lease, "a", "b", "c")
    assert await store.load_snapshot(lease.session_id) is None
    await store.save_snapshot(lease, Offset(2), b"two")
    assert await store.load_snapshot(lease.session_id) == (2, b"two")
    await store.save_snapshot(lease, Offset(3), b"\x00" * 3_000_000)
    store = await adapter.reopen()
    assert await store.load_snapshot(lease.session_id) == (3, b"\x00" * 3_000_000)
    assert len(await store.read(lease.session_id)) == 3


async def test_there_is_no_snapshot_of_an_unknown_session(store: EventStore) -> None:
    assert await store.load_snapshot(new_id()) is None


# ---- list entries ---------------------------------------------------------------------------------------------


async def test_a_list_entry_is_replaced_by_the_append_that_brings_one(adapter: Adapter, lease: Lease) -> None:
    store, session = adapter.store, lease.session_id
    await store.append(lease, START, [note("a", at=5)], summary_of(session, "first"))
    assert (await store.summary(session)).title == "first"
    await store.append(lease, Offset(1), [note("b", at=6)])
    assert (await store.summary(session)).title == "first"
    await store.append(lease, Offset(2), [note("c", at=9)], summary_of(session, "second"))
    store = await adapter.reopen()
    entry = await store.summary(session)
    assert (entry.title, entry.updated_at, entry.session_id) == ("second", 9, session)
    assert await store.sessions() == [entry]


async def test_sessions_are_listed_by_their_last_activity(store: EventStore) -> None:
    leases = [await store.acquire(new_id(), ME) for _ in range(4)]
    for n, lease in enumerate(leases):
        await store.append(lease, START, [note("a", at=10 + n)], summary_of(lease.session_id, str(n)))
    await store.append(leases[1], Offset(1), [note("b", at=20)])
    assert [entry.title for entry in await store.sessions()] == ["1", "3", "2", "0"]
    assert [entry.title for entry in await store.sessions(limit=2)] == ["1", "3"]
    assert await store.sessions(limit=0) == []


async def test_a_session_without_events_is_not_there(store: EventStore, lease: Lease) -> None:
    await store.append(lease, START, [], summary_of(lease.session_id))
    for session in (lease.session_id, new_id(), SessionID("../../etc/passwd"), SessionID("")):
        for asked in (store.read(session), store.read(session, Offset(5)), store.head(session), store.summary(session)):
            with pytest.raises(SessionNotFound):
                await asked
    assert await store.sessions() == []


async def test_any_text_can_be_a_session_id(adapter: Adapter) -> None:
    for text in ("../../x", "a/b", "é", "x" * 5000, " ", "a\x00b", "%s'; drop table events"):
        lease = await adapter.store.acquire(SessionID(text), ME)
        rows = await write(adapter.store, lease, "a")
        assert await adapter.store.read(SessionID(text)) == rows
        with pytest.raises(SessionHeld):
            await adapter.store.acquire(SessionID(text), YOU)


# ---- deletion and the end -------------------------------------------------------------------------------------


async def test_deleting_leaves_nothing_and_touches_no_other(adapter: Adapter) -> None:
    store = adapter.store
    one, two, three = [await store.acquire(new_id(), ME) for _ in range(3)]
    for lease in (one, two, three):
        await store.append(lease, START, [note("a"), note("b")], summary_of(lease.session_id))
        await store.save_snapshot(lease, Offset(2), b"s")
    await store.delete(two)
    for _ in range(2):
        for asked in (store.read(two.session_id), store.head(two.session_id), store.summary(two.session_id)):
            with pytest.raises(SessionNotFound):
                await asked
        assert await store.load_snapshot(two.session_id) is None
        assert {entry.session_id for entry in await store.sessions()} == {one.session_id, three.session_id}
        for lease in (one, three):
            assert len(await store.read(lease.session_id)) == 2
            assert await store.load_snapshot(lease.session_id) == (2, b"s")
        store = await adapter.reopen()


async def test_a_deleted_session_can_be_made_again_and_old_leases_stay_stale(store: EventStore, lease: Lease) -> None:
    await write(store, lease, "a")
    await store.delete(lease)
    again = await store.acquire(lease.session_id, YOU)
    assert again.fence > lease.fence
    for refused in (store.append(lease, START, [note("b")]), store.delete(lease)):
        with pytest.raises(StaleFence):
            await refused
    rows = await store.append(again, START, [note("c")])
    assert await store.read(lease.session_id) == rows
    assert verify(rows) is None


async def test_closing_twice_is_no_matter(store: EventStore, lease: Lease) -> None:
    await write(store, lease, "a")
    await store.close()
    await store.close()
