"""Watching: what is told live, what is replayed, and any mix of both after a break, is the log."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.client.interface import AskEnded, CaughtUp, Client, Frame, Gap, OpenAsk
from counterfoil.engine.watch import Watch
from counterfoil.errors import CounterfoilError, SessionNotFound, UsageError
from counterfoil.events import AskOpened, Envelope, MessageDelta, RunFinished
from counterfoil.identity import START, Offset, SessionID
from counterfoil.scrollback import Scrollback
from tests.client.world import (
    DOORS,
    WRITE,
    World,
    asked,
    begin,
    events,
    finished,
    frames_until,
    globs,
    is_caught_up,
    is_end,
    turns,
    whole_log,
)


def seen_in(session: SessionID, told: list[Envelope]) -> tuple[object, ...]:
    """What a person sees after these events."""
    seen = Scrollback(session).extend(told)
    return seen.entries, seen.calls, seen.open_asks, seen.session, seen.through


async def test_a_watch_from_the_start_tells_the_log_and_then_goes_on_live(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    async with asyncio.timeout(20), contextlib.aclosing(client.watch(session)) as watch:
        told: list[Frame] = []
        async for frame in watch:
            told.append(frame)
            if is_caught_up(frame):
                await client.answer(found.ask.ask_id, "allow")
            if is_end(frame):
                break
    assert events(told) == await whole_log(client, session)
    borders = [n for n, frame in enumerate(told) if isinstance(frame, CaughtUp)]
    assert len(borders) == 1
    before = events(told[: borders[0]])
    assert before[-1].offset == told[borders[0]].offset  # type: ignore[union-attr]
    assert isinstance(before[-1].event, AskOpened)


async def test_a_watch_from_the_middle_tells_what_comes_after_it(world: World) -> None:
    client = (await world.serve(turns(*globs(3)))).client()
    session = await begin(client)
    await finished(client, session)
    log = await whole_log(client, session)
    for after in (0, 1, len(log) // 2, len(log) - 1, len(log)):
        told = await frames_until(client, session, is_caught_up, Offset(after))
        assert events(told) == log[after:]
        assert told[-1] == CaughtUp(offset=Offset(len(log)))
    with pytest.raises(UsageError):
        await frames_until(client, session, is_caught_up, Offset(-1))


async def test_transient_events_come_between_and_are_in_no_log(world: World) -> None:
    client = (await world.serve(turns(*globs(2)))).client()
    session = (await client.create()).session_id
    async with asyncio.timeout(20), contextlib.aclosing(client.watch(session)) as watch:
        told = [await anext(watch), await anext(watch)]
        assert isinstance(told[-1], CaughtUp)
        await client.prompt(session, "go")
        async for frame in watch:
            told.append(frame)
            if is_end(frame):
                break
    deltas = [f for f in told if isinstance(f, Envelope) and isinstance(f.event, MessageDelta)]
    assert "".join(d.event.text for d in deltas if isinstance(d.event, MessageDelta)).startswith("I'll look.")
    assert all(d.offset is None and d.session_id == session for d in deltas)
    assert events(told) == await whole_log(client, session)
    seqs = [f.seq for f in told if isinstance(f, Envelope) and f.seq is not None]
    assert seqs == sorted(seqs) and len(set(seqs)) == len(seqs)


async def broken_watch(client: Client, session: SessionID, chance: random.Random, told: list[Envelope]) -> None:
    """Watch to the end of the run, over connections that break anywhere and overlap; `told` has all of it."""
    last = 0
    while True:
        after = max(0, last - chance.randint(0, 4))
        room = chance.randint(1, 9)
        async with contextlib.aclosing(client.watch(session, Offset(after))) as watch:
            async for frame in watch:
                if not isinstance(frame, Envelope):
                    continue
                told.append(frame)
                if frame.offset is not None:
                    last = max(last, frame.offset)
                if is_end(frame):
                    return
                room -= 1
                if not room:
                    break


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_watches_that_break_anywhere_show_what_the_log_shows(world: World, seed: int, elsewhere: bool) -> None:
    """Also from a service that doesn't drive the session, over the same store."""
    script = turns(*globs(10))
    service = await world.serve(script)
    client = service.client()
    watching = (await world.serve(script)).client() if elsewhere else client
    session = await begin(client)
    told: list[Envelope] = []
    async with asyncio.timeout(60):
        await broken_watch(watching, session, random.Random(seed), told)
    log = await whole_log(client, session)
    offsets = {e.offset: e for e in told if e.offset is not None}
    assert [offsets[e.offset] for e in log if e.offset is not None] == log
    assert seen_in(session, told) == seen_in(session, log)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cuts_of_a_finished_session_put_together_show_the_same(
    recorded: tuple[SessionID, list[Envelope], Client, asyncio.Runner], cuts: list[tuple[int, int]]
) -> None:
    session, log, client, runner = recorded

    async def take(after: int, count: int) -> list[Envelope]:
        told = events(await frames_until(client, session, is_caught_up, Offset(min(after, len(log)))))
        assert told == log[min(after, len(log)) :]
        return told[:count]

    pieces: list[Envelope] = []
    for after, count in cuts:
        pieces += runner.run(take(min(after, (pieces[-1].offset or 0) if pieces else 0), count))
    pieces += runner.run(take((pieces[-1].offset or 0) if pieces else 0, len(log)))
    assert seen_in(session, pieces) == seen_in(session, log)


@pytest.fixture(params=sorted(DOORS))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """A finished session, its log, and a client whose loop the test runs."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()

        async def play() -> tuple[SessionID, list[Envelope], Client]:
            world = World(tmp_path_factory.mktemp("recorded"), request.param, stack)
            client = (await world.serve(turns(*globs(4)))).client()
            session = await begin(client)
            await finished(client, session)
            return session, await whole_log(client, session), client

        session, log, client = runner.run(play())
        yield session, log, client, runner
        runner.run(stack.aclose())


async def test_two_watchers_are_told_the_same_and_one_that_leaves_disturbs_nobody(world: World) -> None:
    client = (await world.serve(turns(*globs(8)))).client()
    session = (await client.create()).session_id

    async def watch() -> list[Frame]:
        return await frames_until(client, session, is_end)

    async def leave() -> list[Frame]:
        return await frames_until(client, session, lambda f: isinstance(f, Envelope) and f.offset == 5)

    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(watch()), group.create_task(watch()), group.create_task(leave())]
        await client.prompt(session, "go")
    log = await whole_log(client, session)
    assert [events(task.result()) for task in watching] == [log, log, log[:5]]


async def test_a_watcher_that_reads_nothing_slows_nobody_and_misses_no_logged_event(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = Watch.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "capacity", 5)
    client = (await world.serve(turns(*globs(12)))).client()
    session = (await client.create()).session_id
    told: list[Frame] = []
    async with asyncio.timeout(30), contextlib.aclosing(client.watch(session)) as slow:
        while not told or not is_caught_up(told[-1]):
            told.append(await anext(slow))
        await client.prompt(session, "go")
        await finished(client, session)
        async for frame in slow:
            told.append(frame)
            if is_end(frame):
                break
    log = await whole_log(client, session)
    assert events(told) == log, "each once and in order, whatever was lost in between"
    gaps = [n for n, frame in enumerate(told) if isinstance(frame, Gap)]
    if world.door != "local" and not gaps:
        return  # the wire's own buffers took so much
    assert gaps, "it was told that it was too slow"
    last = events(told[: gaps[0]])[-1].offset
    assert told[gaps[0]] == Gap(last_offset=last or START)
    assert any(is_caught_up(frame) for frame in told[gaps[0] :]) or is_end(told[-1])


async def test_whoever_joins_while_a_run_goes_on_sees_the_same_in_the_end(world: World) -> None:
    client = (await world.serve(turns(*globs(10)))).client()
    session = await begin(client)
    joined = await asyncio.gather(*(frames_until(client, session, is_end, Offset(n)) for n in range(0, 20, 3)))
    log = await whole_log(client, session)
    assert [events(one) for one in joined] == [log[n:] for n in range(0, 20, 3)]


async def test_a_session_that_isnt_there_cant_be_watched(world: World) -> None:
    client = (await world.serve()).client()
    with pytest.raises(SessionNotFound):
        await frames_until(client, SessionID("ses_" + "0" * 26), is_end)


async def test_the_inbox_tells_what_is_open_what_opens_and_what_ends(world: World) -> None:
    service = await world.serve(turns(WRITE))
    client, eve = service.client(), service.client("eve")
    first = await begin(client, title="first")
    await asked(client, first)
    async with asyncio.timeout(20), contextlib.aclosing(client.watch_all()) as inbox:
        open_already = await anext(inbox)
        assert isinstance(open_already, OpenAsk)
        assert (open_already.session_id, open_already.session_title) == (first, "first")
        await asked(eve, await begin(eve))
        second = await begin(client, title="second")
        opens = await anext(inbox)
        assert isinstance(opens, OpenAsk) and opens.session_id == second, "and nothing of another's session"
        await client.answer(open_already.ask.ask_id, "deny")
        assert await anext(inbox) == AskEnded(ask_id=open_already.ask.ask_id, session_id=first)


async def test_draining_parks_the_question_and_tells_every_watcher(world: World) -> None:
    script = turns(WRITE)
    service = await world.serve(script)
    client = service.client()
    session = await begin(client)
    found = await asked(client, session)
    idle = (await client.create()).session_id
    told: list[Frame] = []
    live = asyncio.Semaphore(0)

    async def watch(of: SessionID) -> str:
        try:
            async for frame in client.watch(of):
                told.append(frame)
                if is_caught_up(frame):
                    live.release()
        except CounterfoilError as fault:
            return fault.code
        return "ended"

    async def inbox() -> str:
        try:
            async for _ in client.watch_all():
                pass
        except CounterfoilError as fault:
            return fault.code
        return "ended"

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        watches = [group.create_task(watch(session)), group.create_task(watch(idle)), group.create_task(inbox())]
        for _ in range(2):
            await live.acquire()
        await service.app.close()
    assert [task.result() for task in watches] == ["shutting_down"] * 3
    with pytest.raises(CounterfoilError, match="shutting down"):
        await client.prompt(session, "more")
    again = (await world.serve(script)).client()
    assert await again.list_asks() == (found,), "the question waits"
    await again.answer(found.ask.ask_id, "allow")
    last = [f.offset for f in told if isinstance(f, Envelope) and f.session_id == session and f.offset is not None][-1]
    rest = await frames_until(again, session, is_end, last)
    assert isinstance(events(rest)[-1].event, RunFinished)
    assert (world.workspace / "a.txt").read_text() == "x"
