"""A run that is cancelled, once or twice, by its session or its caller, at each step of the event loop in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from counterfoil import events as ev
from counterfoil.engine import RunOutcome, Session
from counterfoil.errors import AskWithdrawn
from counterfoil.events import AskOpened
from counterfoil.identity import START
from counterfoil.policy.permissions import Rules
from counterfoil.stores.rows import verify
from tests.scenarios.improviser import DyingMemory, Fuse
from tests.scenarios.test_sessions_machine import AtOnce, check_history_everywhere
from tests.support.harness import ME, CountingTool, Rig, call, first, turn

STEPS = 130
"""More than the run has: the last ones find it over."""
SCRIPT = {"turns": [turn(call("look"), call("look"), call("act"), text="So."), turn(call("asked")), {"text": "Done."}]}
Stop = Callable[[Session, "asyncio.Future[Any]"], Any]


def once(session: Session, driving: asyncio.Future[Any]) -> None:
    session.cancel()


def caller(session: Session, driving: asyncio.Future[Any]) -> None:
    driving.cancel()


async def twice(session: Session, driving: asyncio.Future[Any]) -> None:
    session.cancel()
    for _ in range(4):
        await asyncio.sleep(0)
    session.cancel()


async def closed(session: Session, driving: asyncio.Future[Any]) -> None:
    await session.close()


async def slow(ctx: Any, arguments: Any) -> str:
    await asyncio.sleep(0)
    return "ok"


async def answers(session: Session) -> None:
    async with session.watch() as stream:
        async for envelope in stream:
            if isinstance(envelope.event, AskOpened) and envelope.event.ask.ask_id in session.state.asks:
                await session.answer(envelope.event.ask.ask_id, "allow", principal=ME)


@pytest.mark.parametrize("stop", [once, caller, twice, closed])
async def test_a_run_that_is_cancelled_at_any_step_has_one_end_and_says_which_run_it_was(stop: Stop) -> None:
    asyncio.get_running_loop().set_default_executor(AtOnce())
    ends: set[str] = set()
    for step in range(STEPS):
        ends.add(await cancelled_at(step, stop))
    assert ends == {"cancelled", "end_turn"}


async def cancelled_at(step: int, stop: Stop) -> str:
    """Cancel at this step; then check the log and give the session another prompt. How the first run ended."""
    rig = Rig(
        SCRIPT,
        CountingTool("look", read_only=True, behaviour=slow),
        CountingTool("act", behaviour=slow),
        CountingTool("asked", behaviour=slow),
        store=DyingMemory(Fuse()),
        rules=Rules(allow=("act",), ask=("asked",)),
    )
    session = await rig.session("default")
    answering = asyncio.ensure_future(answers(session))
    driving = asyncio.ensure_future(session.prompt("go"))
    for _ in range(step):
        await asyncio.sleep(0)
    done = stop(session, driving)
    if isinstance(done, Awaitable):
        await done
    (outcome,) = await asyncio.gather(driving, return_exceptions=True)
    await session.close()
    await answering
    log = await rig.log(session.id)
    begun = [e for e in log if isinstance(e, ev.RunStarted)]
    ended = [e for e in log if isinstance(e, ev.RunFinished)]
    if isinstance(outcome, asyncio.CancelledError):
        assert stop is caller and len(begun) == len(ended) <= 1
    elif stop is closed and not begun:
        assert isinstance(outcome, RunOutcome) and outcome.stop_reason == "store_error", (
            "the session was closed before it was given the prompt"
        )
    else:
        assert not isinstance(outcome, BaseException), outcome
        assert [outcome.run_id] == [e.run_id for e in begun] == [e.run_id for e in ended]
        assert outcome.stop_reason == ended[0].stop_reason
    assert [e.tool_call_id for e in log if isinstance(e, ev.CallAccepted)] == [
        e.tool_call_id for e in log if isinstance(e, ev.CallFinished)
    ]
    async with await rig.engine.open(session.id) as again:
        watching = asyncio.ensure_future(answers(again))
        assert (await again.prompt("and now?")).stop_reason == "end_turn"
        check_history_everywhere(again.state)
    await watching
    assert verify(await rig.store.read(session.id, START, 1000)) is None
    return ended[0].stop_reason if ended else "cancelled"


async def test_an_answer_whose_sender_is_cancelled_meanwhile_is_not_half_given() -> None:
    """As when the connection drops through which it came: the ask is open, or it is answered and the run goes on."""
    given: set[bool] = set()
    for step in range(12):
        asked = CountingTool("asked")
        rig = Rig(
            {"turns": [turn(call("asked")), {"text": "Done."}]},
            asked,
            store=DyingMemory(Fuse()),
            rules=Rules(ask=("asked",)),
        )
        async with await rig.session("default") as session:
            opening = asyncio.ensure_future(first(session, AskOpened))
            await asyncio.sleep(0)
            driving = asyncio.ensure_future(session.prompt("go"))
            ask_id = (await opening).ask.ask_id
            sending = asyncio.ensure_future(session.answer(ask_id, "allow", principal=ME))
            for _ in range(step):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            given.add(ask_id not in session.state.asks)
            if ask_id in session.state.asks:
                await session.answer(ask_id, "allow", principal=ME)
            assert (await driving).text == "Done."
        assert len(asked.runs) == 1
    assert given == {True, False}


async def test_an_answer_and_a_cancellation_at_once_leave_a_log_that_can_be_gone_on_with() -> None:
    for step in range(12):
        rig = Rig(
            {"turns": [turn(call("asked")), {"text": "Done."}]},
            CountingTool("asked", behaviour=slow),
            store=DyingMemory(Fuse()),
            rules=Rules(ask=("asked",)),
        )
        async with await rig.session("default") as session:
            opening = asyncio.ensure_future(first(session, AskOpened))
            await asyncio.sleep(0)
            driving = asyncio.ensure_future(session.prompt("go"))
            ask_id = (await opening).ask.ask_id
            sending = asyncio.ensure_future(session.answer(ask_id, "allow", principal=ME))
            stopping = asyncio.ensure_future(_later(step, session.cancel))
            await asyncio.gather(sending, driving, stopping, return_exceptions=True)
            told = sending.exception()
            assert told is None or isinstance(told, AskWithdrawn), told
            assert session.state.run is None and session.state == await rig.engine.load(session.id)


async def _later(steps: int, do: Callable[[], None]) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)
    do()


async def test_two_compactions_at_once_replace_history_once() -> None:
    rig = Rig({"turns": [{"text": "One."}], "aside": "A summary."}, CountingTool("act"), store=DyingMemory(Fuse()))
    async with await rig.session() as session:
        for _ in range(4):
            await session.prompt("go")
        done = await asyncio.gather(session.compact(), session.compact())
        assert sorted(done) == [False, True]
        assert session.state == await rig.engine.load(session.id)
    assert (await rig.kinds(session.id)).count("compaction.done") == 1
