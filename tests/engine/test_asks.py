"""Asks: an approval releases exactly the call that was shown, and survives whatever comes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from counterfoil.engine import EngineSettings, asks
from counterfoil.errors import AskIsSettled, AskNotFound, AskWithdrawn, FoldError, UsageError
from counterfoil.events import (
    AskOpened,
    AskSettled,
    CallEffective,
    CallFinished,
    CallStarted,
    Event,
    StoredEvent,
    text_of,
)
from counterfoil.events import AskWithdrawn as AskWithdrawnEvent
from counterfoil.events.codec import encode_event, kind_of
from counterfoil.identity import START, HookID, Offset, arguments_digest
from counterfoil.policy.permissions import Rules
from counterfoil.state import SessionState, fold
from counterfoil.tools import BuiltinTools
from tests.support.harness import ME, Answerer, CountingTool, Rig, call, first, turn


def one_call(**arguments: Any) -> dict[str, Any]:
    return {"turns": [turn(call("act", **arguments)), {"text": "done"}]}


async def opened(session: Any) -> Any:
    return (await first(session, AskOpened)).ask


async def park_at_ask(session: Any) -> Any:
    """Drive a new run to its ask and leave it there; the ask."""
    watch = session.watch()
    running = asyncio.ensure_future(session.prompt("go"))
    async for envelope in watch:
        if isinstance(envelope.event, AskOpened):
            ask = envelope.event.ask
            break
    session.park()
    assert (await running).parked
    return ask


async def test_an_ask_shows_exactly_what_runs_after_it() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(a=1), tool)
    session = await rig.session("default")
    answerer = Answerer(session)
    await session.prompt("go")
    await answerer.stop()
    log = await rig.log(session.id)
    (ask,) = [e.ask for e in log if isinstance(e, AskOpened)]
    (receipt,) = [e.receipt for e in log if isinstance(e, AskSettled)]
    (start,) = [e for e in log if isinstance(e, CallStarted)]
    assert tool.runs == [(ask.tool_call_id, ask.arguments)]
    assert ask.arguments_digest == receipt.arguments_digest == start.arguments_digest
    assert receipt.tool_call_id == ask.tool_call_id and receipt.decided_by == ME
    assert ask.origin_session_id == receipt.origin_session_id == session.id


async def test_a_denied_call_never_starts_and_the_note_reaches_the_model() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    session = await rig.session("default")
    answerer = Answerer(session, "deny", note="use the other one")
    await session.prompt("go")
    await answerer.stop()
    (result,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert (result.status, result.executed) == ("denied", "no") and "use the other one" in text_of(result.parts)
    assert tool.runs == []


async def test_asks_are_put_one_at_a_time_in_call_order() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", n=1), call("act", n=2), call("act", n=3)), {"text": "done"}]}, tool)
    session = await rig.session("default")
    answerer = Answerer(session)
    await session.prompt("go")
    await answerer.stop()
    order = [k for k in await rig.kinds(session.id) if k.startswith("ask.") or k == "call.started"]
    assert order == ["ask.opened", "ask.settled", "call.started"] * 3
    assert [a["n"] for _, a in tool.runs] == [1, 2, 3]


async def test_a3_a_parked_ask_is_still_open_with_its_id_after_a_restart() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(a=1), tool)
    session = await rig.session("default")
    ask = await park_at_ask(session)
    await session.close()
    assert (await rig.store.summary(session.id)).open_asks == 1

    again = await rig.engine.open(session.id)
    answerer = Answerer(again)
    resumed = asyncio.ensure_future(again.resume())
    await again.answer(ask.ask_id, "allow", principal=ME)
    assert (await resumed).stop_reason == "end_turn"
    await answerer.stop()
    assert tool.runs == [(ask.tool_call_id, {"a": 1})]
    assert (await rig.kinds(session.id)).count("ask.opened") == 1
    assert (await rig.kinds(session.id)).count("run.started") == 1


async def test_a2_an_answer_stored_before_a_restart_is_used_without_asking_again() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    session = await rig.session("default")
    ask = await park_at_ask(session)
    await session.answer(ask.ask_id, "allow", principal=ME)
    await session.close()
    again = await rig.engine.open(session.id)
    async with again:
        assert (await again.resume()).stop_reason == "end_turn"
    assert len(tool.runs) == 1 and (await rig.kinds(session.id)).count("ask.opened") == 1


async def test_a5_of_two_answers_at_once_one_wins_and_the_other_gets_its_receipt() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
        answers = await asyncio.gather(
            session.answer(ask.ask_id, "allow", principal=ME),
            session.answer(ask.ask_id, "deny", principal=ME),
            return_exceptions=True,
        )
        assert isinstance(answers[1], AskIsSettled) and answers[1].receipt == answers[0]


async def test_a6_an_answer_for_an_old_ask_leaves_the_new_one_alone() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", n=1)), turn(call("act", n=2)), {"text": "done"}]}, tool)
    async with await rig.session("default") as session:
        old = await park_at_ask(session)
        await session.answer(old.ask_id, "deny", principal=ME)
        asked = asyncio.ensure_future(opened(session))
        resumed = asyncio.ensure_future(session.resume())
        new = await asked
        with pytest.raises(AskIsSettled):
            await session.answer(old.ask_id, "allow", principal=ME)
        assert set(session.state.asks) == {new.ask_id} and tool.runs == []
        session.cancel()
        await resumed


async def test_arguments_that_change_after_an_ask_withdraw_it_and_the_old_answer_releases_nothing() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(n=1), tool)
    async with await rig.session("default") as session:
        old = await park_at_ask(session)
        changed = {"n": 2}
        (waiting,) = session.state.open_calls()
        change = CallEffective(
            tool_call_id=old.tool_call_id,
            arguments=changed,
            arguments_digest=arguments_digest(changed),
            hook_id=HookID("hook_1"),
        )
        with pytest.raises(FoldError):
            fold([*(await rig.store.read(session.id, START, 999)), *_row_of(change, session.state)])
        await asks.withdraw(session._ctx, waiting, "its arguments changed")
        await session._ctx.publish(change)
        asked = asyncio.ensure_future(opened(session))
        resumed = asyncio.ensure_future(session.resume())
        new = await asked
        with pytest.raises(AskWithdrawn):
            await session.answer(old.ask_id, "allow", principal=ME)
        assert (new.tool_call_id, new.arguments) == (old.tool_call_id, changed)
        assert new.ask_id != old.ask_id and new.arguments_digest != old.arguments_digest
        assert tool.runs == []
        await session.answer(new.ask_id, "allow", principal=ME)
        await resumed
    assert tool.runs == [(old.tool_call_id, changed)]


def _row_of(event: Event, state: SessionState) -> list[StoredEvent]:
    """The row that would follow."""
    assert state.run is not None
    return [
        StoredEvent(
            session_id=state.meta.session_id,
            offset=Offset(state.offset + 1),
            run_id=state.run.run_id,
            seq=None,
            kind=kind_of(event),
            public=encode_event(event),
            private=None,
            digest=b"",
            recorded_at=0,
        )
    ]


async def test_answering_twice_with_one_key_and_verdict_is_one_answer() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
        one = await session.answer(ask.ask_id, "allow", principal=ME, idempotency_key="k")
        assert await session.answer(ask.ask_id, "allow", principal=ME, idempotency_key="k") == one
        with pytest.raises(AskIsSettled):
            await session.answer(ask.ask_id, "deny", principal=ME, idempotency_key="k")
    assert (await rig.kinds(session.id)).count("ask.settled") == 1


async def test_cancelling_withdraws_the_ask_and_a_late_answer_changes_nothing() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        running = asyncio.ensure_future(session.prompt("go"))
        ask = await opened(session)
        session.cancel()
        assert (await running).stop_reason == "cancelled"
        with pytest.raises(AskWithdrawn):
            await session.answer(ask.ask_id, "allow", principal=ME)
    assert tool.runs == []


async def test_an_unknown_ask_and_a_verdict_that_was_not_offered_are_refused() -> None:
    rig = Rig(one_call(), CountingTool("act"))
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
        with pytest.raises(AskNotFound):
            await session.answer("ask_of_somebody_else", "allow", principal=ME)  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            await session.answer(ask.ask_id, "release", principal=ME)
        assert set(session.state.asks) == {ask.ask_id}


async def test_a_new_prompt_on_a_parked_session_withdraws_the_ask_and_closes_the_call() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        await park_at_ask(session)
        assert (await session.prompt("something else")).text == "done"
    log = await rig.log(session.id)
    assert [e for e in log if isinstance(e, AskWithdrawnEvent)]
    (result,) = [e for e in log if isinstance(e, CallFinished)]
    assert (result.status, result.executed) == ("interrupted", "no") and tool.runs == []


async def test_a_mode_that_no_longer_asks_withdraws_the_ask_on_resume() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        await park_at_ask(session)
        await session.set_mode("bypass")
        assert (await session.resume()).stop_reason == "end_turn"
    assert len(tool.runs) == 1 and "ask.withdrawn" in await rig.kinds(session.id)


async def test_a_deny_rule_made_after_an_approval_still_denies() -> None:
    tool = CountingTool("act")
    rig = Rig(one_call(), tool)
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
        await session.answer(ask.ask_id, "allow", principal=ME)
    rig.engine.parts = type(rig.engine.parts)(
        **{f: getattr(rig.engine.parts, f) for f in rig.engine.parts.__struct_fields__ if f != "settings"},
        settings=EngineSettings(rules=Rules(deny=("act",))),
    )
    async with await rig.engine.open(session.id) as again:
        await again.resume()
    assert tool.runs == []


async def test_an_answer_to_an_ask_of_an_earlier_run_is_told_how_that_was_settled() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", n=1)), {"text": "one"}, turn(call("act", n=2)), {"text": "two"}]}, tool)
    async with await rig.session("default") as session:
        old = await park_at_ask(session)
        await session.answer(old.ask_id, "deny", principal=ME, idempotency_key="k")
        await session.resume()
        new = await park_at_ask(session)
        assert (await session.answer(old.ask_id, "deny", principal=ME, idempotency_key="k")).verdict == "deny"
        with pytest.raises(AskIsSettled):
            await session.answer(old.ask_id, "allow", principal=ME)
        assert set(session.state.asks) == {new.ask_id} and tool.runs == []


async def test_an_approval_isnt_used_for_a_call_that_would_touch_something_else_by_now(tmp_path: Path) -> None:
    """The words are the same; the folder that they name has become a link into a protected one."""
    (tmp_path / "d").mkdir()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    script = {"turns": [turn(call("Write", file_path="d/f", content="x")), {"text": "done"}]}
    rig = Rig(script, toolset=BuiltinTools(tmp_path, environment={}), workspace=str(tmp_path))
    async with await rig.session("default") as session:
        old = await park_at_ask(session)
        await session.answer(old.ask_id, "allow", principal=ME)
        (tmp_path / "d").rmdir()
        (tmp_path / "d").symlink_to(tmp_path / ".git" / "hooks")
        asked = asyncio.ensure_future(opened(session))
        resumed = asyncio.ensure_future(session.resume())
        new = await asked
        assert new.ask_id != old.ask_id and "protected" in new.reason
        await session.answer(new.ask_id, "deny", principal=ME)
        await resumed
    assert not (tmp_path / ".git" / "hooks" / "f").exists()
