"""Runs: they go on by themselves; people steer and stop them, and single calls."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from counterfoil.errors import NotResumable, SessionBusy, UsageError
from counterfoil.events import (
    AskWithdrawn,
    CallFinished,
    CallStarted,
    RunFinished,
    RunStarted,
    UserPrompt,
    text_of,
)
from counterfoil.identity import ToolCallID
from tests.client.world import (
    GATED,
    WRITE,
    World,
    asked,
    begin,
    events,
    finished,
    globs,
    is_end,
    turns,
    until,
    whole_log,
)


async def test_a_prompt_returns_the_runs_id_and_the_run_goes_on_unwatched(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = (await client.create(mode="accept_edits")).session_id
    started = await client.prompt(session, "write it")
    end = await finished(client, session)
    assert (started.session_id, started.run_id) == (session, end.run_id)
    assert (end.stop_reason, end.text) == ("end_turn", "done")
    assert (world.workspace / "a.txt").read_text() == "x"
    log = await whole_log(client, session)
    assert [e.run_id for e in log if isinstance(e.event, RunStarted)] == [started.run_id]
    check = await client.verify_log(session)
    assert check.intact and check.events == len(log)


async def test_one_run_at_a_time_and_none_without_words(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    await asked(client, session)
    with pytest.raises(SessionBusy):
        await client.prompt(session, "again")
    other = (await client.create()).session_id
    for nothing in ("", "  \n"):
        with pytest.raises(UsageError):
            await client.prompt(other, nothing)
    assert not [e for e in await whole_log(client, other) if isinstance(e.event, RunStarted)]


async def test_two_prompts_at_once_start_one_run(world: World) -> None:
    client = (await world.serve(turns(*globs(3)))).client()
    session = (await client.create()).session_id
    both = await asyncio.gather(client.prompt(session, "a"), client.prompt(session, "b"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in both) == ["SessionBusy", "Started"]
    await finished(client, session)
    assert len([e for e in await whole_log(client, session) if isinstance(e.event, RunStarted)]) == 1


async def test_a_second_prompt_is_a_second_run_of_the_same_session(world: World) -> None:
    client = (await world.serve(turns())).client()
    session = await begin(client, "one")
    await finished(client, session)
    first = await whole_log(client, session)
    started = await client.prompt(session, "two")
    end = await finished(client, session, first[-1].offset or 0)  # type: ignore[arg-type]
    assert end.run_id == started.run_id
    assert (await whole_log(client, session))[: len(first)] == first


async def test_whoever_sees_the_end_of_a_run_may_prompt_or_delete_at_once(world: World) -> None:
    client = (await world.serve(turns())).client()
    session = (await client.create()).session_id
    async with asyncio.timeout(30), contextlib.aclosing(client.watch(session)) as watch:
        await client.prompt(session, "0")
        ends = 0
        async for frame in watch:
            if not is_end(frame):
                continue
            ends += 1
            if ends == 15:
                break
            await client.prompt(session, str(ends))
    await client.delete(session)


async def test_a_steer_reaches_the_model_in_the_run_that_goes_on(world: World) -> None:
    client = (await world.serve(turns(GATED))).client()
    world.make_gate()
    session = await begin(client, mode="bypass")
    await until(client, session, CallStarted)
    await client.steer(session, "be careful")
    with pytest.raises(UsageError):
        await client.steer(session, " ")
    await world.open_gate()
    await finished(client, session)
    prompts = [e.event for e in await whole_log(client, session) if isinstance(e.event, UserPrompt)]
    assert [(text_of(p.parts), p.source) for p in prompts] == [("go", "human"), ("be careful", "steer")]
    with pytest.raises(UsageError):
        await client.steer(session, "too late")


async def test_cancel_stops_what_runs_and_every_call_has_its_result(world: World) -> None:
    client = (await world.serve(turns(GATED))).client()
    world.make_gate()
    session = await begin(client, mode="bypass")
    call = (await until(client, session, CallStarted)).tool_call_id
    await client.cancel(session)
    assert (await finished(client, session)).stop_reason == "cancelled"
    (result,) = [e.event for e in await whole_log(client, session) if isinstance(e.event, CallFinished)]
    assert (result.tool_call_id, result.status) == (call, "cancelled")
    await client.cancel(session)
    assert (await client.get(session)).status == "cancelled"


async def test_cancel_takes_back_the_question_that_is_open(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    await client.cancel(session)
    assert (await finished(client, session)).stop_reason == "cancelled"
    assert (await until(client, session, AskWithdrawn)).ask_id == found.ask.ask_id
    assert await client.list_asks() == ()
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("begun", [True, False])
async def test_one_call_is_stopped_and_the_run_goes_on(world: World, begun: bool) -> None:
    client = (await world.serve(turns(GATED, WRITE))).client()
    world.make_gate()
    session = await begin(client, mode="bypass")
    call = (await until(client, session, CallStarted)).tool_call_id
    if begun:
        await world.gate_is_waited_at()
    await client.cancel_call(session, call)
    assert (await finished(client, session)).stop_reason == "end_turn"
    first, second = [e.event for e in await whole_log(client, session) if isinstance(e.event, CallFinished)]
    assert first.tool_call_id == call
    assert first.executed == "unknown" if begun else first.executed in ("no", "unknown")
    assert first.status != "ok" and "stopped by ada" in text_of(first.parts)
    assert second.status == "ok", "what came after it ran"
    with pytest.raises(UsageError):
        await client.cancel_call(session, call)


async def test_a_call_that_waits_for_a_person_is_refused_when_it_is_cancelled(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    with pytest.raises(UsageError):
        await client.cancel_call(session, ToolCallID("call_" + "0" * 32))
    await client.cancel_call(session, found.ask.tool_call_id)
    assert (await finished(client, session)).stop_reason == "end_turn"
    (result,) = [e.event for e in await whole_log(client, session) if isinstance(e.event, CallFinished)]
    assert (result.status, result.executed) == ("denied", "no")


async def test_there_is_nothing_to_resume_after_the_end(world: World) -> None:
    client = (await world.serve()).client()
    session = await begin(client)
    await finished(client, session)
    with pytest.raises(NotResumable):
        await client.resume(session)


async def test_a_parked_run_goes_on_in_the_next_service_and_runs_its_call_once(world: World) -> None:
    script = turns(WRITE)
    first = await world.serve(script)
    session = await begin(first.client())
    found = await asked(first.client(), session)
    await first.app.close()
    client = (await world.serve(script)).client()
    assert await client.list_asks() == (found,)
    started = await client.resume(session)
    await client.answer(found.ask.ask_id, "allow")
    end = await finished(client, session)
    assert (end.run_id, end.stop_reason) == (started.run_id, "end_turn")
    calls = [e for e in await whole_log(client, session) if isinstance(e.event, CallStarted | RunFinished)]
    assert [type(e.event) for e in calls] == [CallStarted, RunFinished]


async def test_inspecting_a_call_tells_all_of_it_and_of_no_other(world: World) -> None:
    client = (await world.serve(turns(WRITE, *globs(2)))).client()
    session = await begin(client)
    found = await asked(client, session)
    await client.answer(found.ask.ask_id, "allow")
    await finished(client, session)
    call = found.ask.tool_call_id
    told = await client.inspect_call(session, call)
    log = await whole_log(client, session)
    assert [type(e.event).__name__ for e in told] == [
        "CallAccepted", "AskOpened", "AskSettled", "CallStarted", "CallFinished",
    ]  # fmt: skip
    assert [e for e in log if e in told] == events(list(told))
    assert await client.inspect_call(session, ToolCallID("call_" + "0" * 32)) == ()
