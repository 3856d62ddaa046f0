"""Every promise of the port `EventStore` about letters, asked of each adapter."""

from __future__ import annotations

import asyncio

import pytest

from counterfoil.errors import SessionNotFound, StaleFence, StoreError
from counterfoil.identity import START, Offset
from counterfoil.ports import EventStore, Lease
from counterfoil.ports.store import KEPT_REPLIES, LETTER_BYTES, UNREAD_LETTERS, LetterNo
from counterfoil.stores.rows import verify
from tests.conformance.conftest import Adapter
from tests.stores.made import ME, YOU, new_id, note


@pytest.fixture
async def lease(store: EventStore) -> Lease:
    """A held session with one event."""
    held = await store.acquire(new_id(), ME)
    await store.append(held, START, [note("a")])
    return held


async def test_letters_are_kept_in_order_until_their_reply(adapter: Adapter, lease: Lease) -> None:
    session = lease.session_id
    numbers = [await adapter.store.post(session, body) for body in (b"one", b"two \x00\xff", b"")]
    assert numbers == sorted(set(numbers))
    store = await adapter.reopen()
    assert [(one.number, one.body) for one in await store.letters(session)] == list(
        zip(numbers, (b"one", b"two \x00\xff", b""), strict=True)
    )
    if adapter.name == "sqlite":
        lease = await store.acquire(session, ME)
    await store.reply(lease, numbers[1], b"")
    assert [one.number for one in await store.letters(session)] == [numbers[0], numbers[2]]
    store = await adapter.reopen()
    assert await store.replied(session, numbers[1]) == b""
    assert await store.replied(session, numbers[0]) is None


async def test_a_letter_needs_no_lease_and_a_session_with_events(store: EventStore, lease: Lease) -> None:
    await store.release(lease)
    number = await store.post(lease.session_id, b"to whoever comes")
    empty = (await store.acquire(new_id(), ME)).session_id
    for session in (empty, new_id()):
        for asked in (store.post(session, b"x"), store.letters(session), store.replied(session, number)):
            with pytest.raises(SessionNotFound):
                await asked
    assert [one.number for one in await store.letters(lease.session_id)] == [number]


async def test_only_the_holder_replies_and_the_first_reply_stays(store: EventStore, lease: Lease) -> None:
    session = lease.session_id
    number = await store.post(session, b"x")
    await store.release(lease)
    again = await store.acquire(session, YOU)
    with pytest.raises(StaleFence):
        await store.reply(lease, number, b"old")
    assert await store.replied(session, number) is None
    await store.reply(again, number, b"first")
    await store.reply(again, number, b"second")
    assert await store.replied(session, number) == b"first"


async def test_letters_of_another_session_are_out_of_reach(store: EventStore, lease: Lease) -> None:
    other = await store.acquire(new_id(), YOU)
    await store.append(other, START, [note("b")])
    number = await store.post(lease.session_id, b"x")
    await store.reply(other, number, b"not yours")
    assert await store.replied(lease.session_id, number) is None
    with pytest.raises(StoreError, match="no letter"):
        await store.replied(other.session_id, number)
    assert await store.letters(other.session_id) == []


async def test_letters_are_bounded_in_size_and_number(store: EventStore, lease: Lease) -> None:
    session = lease.session_id
    with pytest.raises(StoreError, match="too long"):
        await store.post(session, b"x" * (LETTER_BYTES + 1))
    numbers = [await store.post(session, b"x" * LETTER_BYTES)]
    numbers += [await store.post(session, b"x") for _ in range(UNREAD_LETTERS - 1)]
    with pytest.raises(StoreError, match="wait for a reply"):
        await store.post(session, b"one too many")
    with pytest.raises(StoreError, match="too long"):
        await store.reply(lease, numbers[0], b"x" * (LETTER_BYTES + 1))
    await store.reply(lease, numbers[0], b"done")
    assert await store.post(session, b"room again") > numbers[-1]


async def test_old_replies_are_removed_and_letters_without_one_never(store: EventStore, lease: Lease) -> None:
    session = lease.session_id
    waiting = await store.post(session, b"waits")
    numbers = []
    for _ in range(KEPT_REPLIES + 3):
        numbers.append(await store.post(session, b"x"))
        await store.reply(lease, numbers[-1], b"r")
    for number in numbers[:3]:
        with pytest.raises(StoreError, match="no letter"):
            await store.replied(session, number)
    assert {await store.replied(session, number) for number in numbers[3:]} == {b"r"}
    assert [one.number for one in await store.letters(session)] == [waiting]


async def test_letters_change_neither_log_nor_digests(store: EventStore, lease: Lease) -> None:
    head = await store.head(lease.session_id)
    await store.reply(lease, await store.post(lease.session_id, b"x"), b"y")
    assert await store.head(lease.session_id) == head
    rows = await store.read(lease.session_id)
    assert verify(rows + await store.append(lease, Offset(1), [note("b")])) is None


async def test_letters_go_with_their_session(store: EventStore, lease: Lease) -> None:
    session = lease.session_id
    number = await store.post(session, b"x")
    waiting = [asyncio.ensure_future(store.wait_reply(session, number)) for _ in range(2)]
    await asyncio.sleep(0)
    await store.delete(lease)
    for one in waiting:
        with pytest.raises(SessionNotFound):
            await one
    again = await store.acquire(session, ME)
    await store.append(again, START, [note("b")])
    assert await store.letters(session) == []
    assert await store.post(session, b"y") > number


# ---- waiting --------------------------------------------------------------------------------------------------


async def test_who_waits_gets_what_is_there_and_what_comes(store: EventStore, lease: Lease) -> None:
    session = lease.session_id
    first = await store.post(session, b"there")
    (letter,) = await store.wait_letters(session)
    replying = asyncio.ensure_future(store.wait_reply(session, first))
    await store.reply(lease, letter.number, b"re")
    assert await replying == b"re" == await store.wait_reply(session, first)
    coming = asyncio.ensure_future(store.wait_letters(session))
    await asyncio.sleep(0)
    assert not coming.done()
    second = await store.post(session, b"comes")
    assert [one.number for one in await coming] == [second]


async def test_many_wait_and_each_gets_its_own(store: EventStore) -> None:
    leases = [await store.acquire(new_id(), ME) for _ in range(5)]
    for lease in leases:
        await store.append(lease, START, [note("a")])
    waiting = [asyncio.ensure_future(store.wait_letters(lease.session_id)) for lease in leases]
    numbers = [await store.post(lease.session_id, lease.session_id.encode()) for lease in reversed(leases)]
    for lease, task, number in zip(leases, waiting, reversed(numbers), strict=True):
        assert [(one.number, one.body) for one in await task] == [(number, lease.session_id.encode())]


async def test_who_stops_waiting_disturbs_nobody(store: EventStore, lease: Lease) -> None:
    one, two = (asyncio.ensure_future(store.wait_letters(lease.session_id)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    await store.post(lease.session_id, b"x")
    assert len(await two) == 1


async def test_who_waits_for_what_is_not_there_is_told(store: EventStore, lease: Lease) -> None:
    with pytest.raises(SessionNotFound):
        await store.wait_letters(new_id())
    with pytest.raises(StoreError, match="no letter"):
        await store.wait_reply(lease.session_id, LetterNo(99))


async def test_who_waits_when_the_store_is_closed_is_told(adapter: Adapter, lease: Lease) -> None:
    waiting = asyncio.ensure_future(adapter.store.wait_letters(lease.session_id))
    await asyncio.sleep(0)
    await adapter.store.close()
    with pytest.raises(StoreError, match="closed"):
        await waiting
