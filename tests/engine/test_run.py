"""The run as a whole: order of events, limits, rejection, retries, cancel, steer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from counterfoil.engine import EngineSettings
from counterfoil.errors import NotResumable, SessionBusy, ToolFailure, UsageError
from counterfoil.events import (
    CallAccepted,
    CallFinished,
    CallStarted,
    Limits,
    Notice,
    RunFinished,
    TextPart,
    TurnRejected,
    TurnStarted,
    UserPrompt,
    text_of,
)
from counterfoil.ports import ToolOutput
from counterfoil.state import PromptItem, TurnItem
from tests.support.harness import CountingTool, Rig, call, first, hang, turn


def results(log: list[Any]) -> list[CallFinished]:
    return [e for e in log if isinstance(e, CallFinished)]


def only(log: list[Any], kind: type[Any]) -> Any:
    (event,) = [e for e in log if isinstance(e, kind)]
    return event


async def test_a_text_answer_ends_the_run() -> None:
    rig = Rig({"turns": [{"text": "Hello."}]})
    async with await rig.session() as session:
        outcome = await session.prompt("hi")
    assert (outcome.stop_reason, outcome.text) == ("end_turn", "Hello.")
    assert await rig.kinds(session.id) == [
        "session.created",
        "run.started",
        "user.prompt",
        "turn.started",
        "assistant.message",
        "turn.finished",
        "run.finished",
    ]


async def test_a_call_is_accepted_started_and_finished_under_one_id() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", a=1)), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        await session.prompt("go")
    log = await rig.log(session.id)
    ids = {only(log, k).tool_call_id for k in (CallAccepted, CallStarted, CallFinished)}
    assert len(ids) == 1
    assert tool.runs == [(ids.pop(), {"a": 1})]
    assert only(log, CallFinished).executed == "yes"


async def test_results_are_recorded_in_call_order_whatever_the_finishing_order() -> None:
    gates = [asyncio.Event() for _ in range(3)]

    async def wait(ctx: Any, arguments: Any) -> str:
        place = arguments["n"]
        if place < 2:
            await gates[place].wait()
        if place > 0:
            gates[place - 1].set()
        return f"result {place}"

    tool = CountingTool("look", read_only=True, behaviour=wait)
    rig = Rig({"turns": [turn(*(call("look", n=n) for n in range(3))), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        await session.prompt("go")
    assert [text_of(r.parts) for r in results(await rig.log(session.id))] == ["result 0", "result 1", "result 2"]


async def test_a_mutating_call_runs_alone_and_reads_run_together() -> None:
    active = 0
    most: dict[str, int] = {"look": 0, "act": 0}

    async def note(ctx: Any, arguments: Any) -> str:
        nonlocal active
        active += 1
        most[arguments["who"]] = max(most[arguments["who"]], active)
        for _ in range(5):
            await asyncio.sleep(0)
        active -= 1
        return "ok"

    look = CountingTool("look", read_only=True, behaviour=note)
    act = CountingTool("act", behaviour=note)
    calls = [call(w, who=w) for w in ("look", "look", "act", "act", "look", "look", "look")]
    rig = Rig({"turns": [turn(*calls), {"text": "done"}]}, look, act)
    async with await rig.session() as session:
        await session.prompt("go")
    assert most == {"look": 3, "act": 1}


async def test_p5_the_same_provider_id_in_a_later_turn_is_another_call() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", id="call_0")), turn(call("act", id="call_0")), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    ids = [e.tool_call_id for e in await rig.log(session.id) if isinstance(e, CallAccepted)]
    assert len(set(ids)) == 2
    turns = [i for i in session.state.history.items if isinstance(i, TurnItem) and i.calls]
    assert [[r.tool_call_id for r in t.results] for t in turns] == [[ids[0]], [ids[1]]]


async def test_p6_a_turn_that_repeats_a_provider_id_is_rejected_whole_then_the_run_fails() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", id="call_0"), call("act", id="call_0"))]}, tool)
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    log = await rig.log(session.id)
    assert outcome.stop_reason == "malformed_turn"
    assert [e.code for e in log if isinstance(e, TurnRejected)] == ["duplicate_pairing"] * 2
    assert not [e for e in log if isinstance(e, CallAccepted)] and tool.runs == []
    assert all(isinstance(i, PromptItem) for i in session.state.history.items)


async def test_p6_a_rejected_turn_that_comes_back_right_goes_on() -> None:
    tool = CountingTool("act")
    bad, good = turn(call("act", id="x"), call("act", id="x")), turn(call("act", id="x"), call("act", id="y"))
    rig = Rig({"turns": [{"attempts": [bad, good]}, {"text": "done"}]}, tool)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    assert len(tool.runs) == 2


async def test_p10_a_stream_that_is_cut_records_no_call_and_is_asked_again() -> None:
    tool = CountingTool("act")
    cut = turn(call("act", a=1)) | {"cut": True}
    rig = Rig({"turns": [{"attempts": [cut, turn(call("act", a=1))]}, {"text": "done"}]}, tool)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    log = await rig.log(session.id)
    assert len([e for e in log if isinstance(e, CallAccepted)]) == 1 and len(tool.runs) == 1
    assert [(e.turn, e.attempt) for e in log if isinstance(e, TurnStarted)][:2] == [(1, 1), (1, 2)]


async def test_p11_the_same_tool_twice_in_one_turn_runs_twice_in_order() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", a=1), call("act", a=2)), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        await session.prompt("go")
    assert [arguments for _, arguments in tool.runs] == [{"a": 1}, {"a": 2}]
    assert [text_of(r.parts) for r in results(await rig.log(session.id))] == ["act run 1", "act run 2"]


async def test_a_rate_limit_waits_as_long_as_the_provider_wishes() -> None:
    limited = {"error": {"kind": "rate_limited", "retry_after": 7.0}}
    rig = Rig({"turns": [{"attempts": [limited, {"text": "ok"}]}]})
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    assert rig.clock.slept == [7.0]
    assert only(await rig.log(session.id), Notice).code == "provider_retry"


@pytest.mark.parametrize(("permanent", "tries"), [(True, 1), (False, 6)])
async def test_a_lasting_provider_error_ends_the_run_with_its_type(permanent: bool, tries: int) -> None:
    rig = Rig({"turns": [{"error": {"kind": "overloaded", "permanent": permanent}}]})
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    assert outcome.stop_reason == "provider_error" and outcome.error is not None
    assert (outcome.error.code, outcome.error.permanent) == ("overloaded", permanent)
    assert len([e for e in await rig.log(session.id) if isinstance(e, TurnStarted)]) == tries


async def test_an_empty_turn_is_nudged_a_bounded_number_of_times() -> None:
    rig = Rig({"turns": [{"text": ""}]})
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    log = await rig.log(session.id)
    assert [e.code for e in log if isinstance(e, TurnRejected)] == ["empty_turn"] * 2
    assert [e.code for e in log if isinstance(e, Notice)] == ["empty_turn"]


async def test_unknown_tools_and_bad_arguments_are_results_and_not_failures() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tool = CountingTool("act", parameters=schema)
    calls = [call("nope"), call("act", a="x"), {"tool": "act", "arguments": "[1]"}, {"tool": "act", "arguments": "{"}]
    rig = Rig({"turns": [turn(*calls), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    found = results(await rig.log(session.id))
    assert [(r.status, r.executed) for r in found] == [("error", "no")] * 4
    assert "no tool named 'nope'" in text_of(found[0].parts) and "a: " in text_of(found[1].parts)
    assert tool.runs == []


async def test_a_tool_that_fails_tells_the_model_and_the_run_goes_on() -> None:
    def fail(ctx: Any, arguments: Any) -> str:
        raise ToolFailure("no such file: x", executed="no")

    def crash(ctx: Any, arguments: Any) -> str:
        raise RuntimeError("bug")

    fails, bug = CountingTool("fails", behaviour=fail), CountingTool("bug", behaviour=crash)
    says = CountingTool("says", behaviour=lambda c, a: ToolOutput(parts=(TextPart(text="bad"),), is_error=True))
    rig = Rig({"turns": [turn(call("fails"), call("bug"), call("says")), {"text": "done"}]}, fails, bug, says)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    found = results(await rig.log(session.id))
    assert [(r.status, r.executed) for r in found] == [("error", "no"), ("error", "unknown"), ("error", "yes")]


async def test_a_tool_over_its_time_is_stopped_and_the_outcome_is_unknown() -> None:
    tool = CountingTool("slow", timeout=0.01, behaviour=hang)
    rig = Rig({"turns": [turn(call("slow")), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        await session.prompt("go")
    assert [(r.status, r.executed) for r in results(await rig.log(session.id))] == [("error", "unknown")]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_turns=3, max_repeated_turns=0), "max_turns"),
        (Limits(max_tool_calls=3, max_repeated_turns=0), "max_tool_calls"),
        (Limits(max_tokens=20, max_repeated_turns=0), "budget"),
        (Limits(max_consecutive_failures=3, max_repeated_turns=0), "no_progress"),
        (Limits(max_repeated_turns=3), "no_progress"),
    ],
)
async def test_each_limit_ends_the_run_with_its_reason(limits: Limits, reason: str) -> None:
    fails = reason == "no_progress" and limits.max_consecutive_failures == 3
    output = ToolOutput(parts=(TextPart(text="same"),), is_error=fails)
    tool = CountingTool("act", behaviour=lambda c, a: output)
    again = turn(call("act")) | {"usage": {"input_tokens": 8, "output_tokens": 2}}
    rig = Rig({"turns": [again] * 50}, tool)
    async with await rig.session(limits=limits) as session:
        outcome = await session.prompt("go")
    assert outcome.stop_reason == reason
    assert len(tool.runs) == (2 if reason == "budget" else 3)


async def test_calls_over_the_limit_within_one_turn_are_not_run() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(*(call("act", n=n) for n in range(5)))]}, tool)
    async with await rig.session(limits=Limits(max_tool_calls=2)) as session:
        outcome = await session.prompt("go")
    assert outcome.stop_reason == "max_tool_calls" and len(tool.runs) == 2
    assert [r.executed for r in results(await rig.log(session.id))] == ["yes", "yes", "no", "no", "no"]


async def test_s2_an_interrupt_with_three_calls_open_gives_three_results_before_the_next_prompt() -> None:
    tool = CountingTool("act", behaviour=hang)
    rig = Rig({"turns": [turn(call("act"), call("act"), call("act")), {"text": "fine"}]}, tool)
    async with await rig.session() as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await tool.started.wait()
        session.cancel()
        assert (await running).stop_reason == "cancelled"
        assert (await session.prompt("another thing")).text == "fine"
    log = await rig.log(session.id)
    assert [(r.status, r.executed) for r in results(log)] == [
        ("cancelled", "unknown"),
        ("cancelled", "no"),
        ("cancelled", "no"),
    ]
    first_turn, prompt = session.state.history.items[1:3]
    assert isinstance(first_turn, TurnItem) and len(first_turn.results) == 3
    assert isinstance(prompt, PromptItem) and text_of(prompt.parts) == "another thing"


async def test_cancelling_the_callers_task_cancels_the_run_and_records_it() -> None:
    tool = CountingTool("act", behaviour=hang)
    rig = Rig({"turns": [turn(call("act"))]}, tool)
    async with await rig.session() as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await tool.started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert session.state.run is None and session.state.status == "cancelled"


async def test_a_steer_in_the_middle_of_a_turn_reaches_the_model_after_the_results() -> None:
    async def steer(ctx: Any, arguments: Any) -> str:
        await session.steer("also this")
        return "ok"

    tool = CountingTool("act", behaviour=steer)
    rig = Rig({"turns": [turn(call("act")), {"text": "done"}]}, tool)
    session = await rig.session()
    async with session:
        await session.prompt("go")
    shape = [type(i).__name__ for i in session.state.history.items]
    assert shape == ["PromptItem", "TurnItem", "PromptItem", "TurnItem"]


async def test_a_steer_while_the_last_answer_streams_is_answered_too() -> None:
    rig = Rig({"turns": [{"text": "one", "wait": 0.05}, {"text": "two"}]})
    async with await rig.session() as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await first(session, TurnStarted)
        await session.steer("wait, also this")
        assert (await running).text == "two"


async def test_a_second_prompt_while_running_is_refused() -> None:
    tool = CountingTool("act", behaviour=hang)
    rig = Rig({"turns": [turn(call("act"))]}, tool)
    async with await rig.session() as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await tool.started.wait()
        with pytest.raises(SessionBusy):
            await session.prompt("again")
        session.cancel()
        await running


async def test_an_empty_prompt_and_a_needless_resume_are_refused() -> None:
    rig = Rig({"turns": []})
    async with await rig.session() as session:
        with pytest.raises(UsageError):
            await session.prompt("  \n")
        with pytest.raises(NotResumable):
            await session.resume()
        with pytest.raises(UsageError):
            await session.steer("x")


async def test_each_run_has_exactly_one_end() -> None:
    rig = Rig({"turns": [{"text": "a"}, {"error": {"permanent": True}}]})
    async with await rig.session() as session:
        await session.prompt("one")
        await session.prompt("two")
    ends = [e for e in await rig.log(session.id) if isinstance(e, RunFinished)]
    assert [e.stop_reason for e in ends] == ["end_turn", "provider_error"] and len({e.run_id for e in ends}) == 2


async def test_a_context_that_is_too_long_is_compacted_once_then_the_turn_is_asked_again() -> None:
    tool = CountingTool("act")
    too_long = {"error": {"kind": "context_length", "permanent": True}}
    turns = [turn(call("act", n=n)) for n in range(6)] + [{"attempts": [too_long, {"text": "done"}]}]
    rig = Rig({"turns": turns, "aside": "What happened so far."}, tool)
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    assert "compaction.done" in await rig.kinds(session.id)
    assert outcome.stop_reason == "end_turn"


async def test_history_is_compacted_at_the_ratio_of_the_window_and_ids_stay_in_the_log() -> None:
    tool = CountingTool("act")
    turns = [turn(call("act", n=n)) | {"usage": {"input_tokens": 100 * n, "output_tokens": 1}} for n in range(12)]
    settings = EngineSettings(context_window=lambda model: 1000, compaction_ratio=0.5, compaction_keep=2)
    rig = Rig({"turns": [*turns, {"text": "done"}], "aside": "Summary."}, tool, settings=settings)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    log = await rig.log(session.id)
    assert "compaction.done" in await rig.kinds(session.id)
    assert len({e.tool_call_id for e in log if isinstance(e, CallAccepted)}) == len(tool.runs) == 12
    assert len(session.state.history.items) < 12
    assert (await rig.engine.load(session.id)) == session.state


async def test_prompts_keep_their_source() -> None:
    rig = Rig({"turns": [{"text": "a"}]})
    async with await rig.session() as session:
        await session.prompt("one")
    assert only(await rig.log(session.id), UserPrompt).source == "human"


async def test_arguments_nested_without_bound_are_refused_and_the_run_goes_on() -> None:
    nested: list[Any] = []
    for _ in range(400):
        nested = [nested]
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", a=nested), call("act", a=[[1]])), {"text": "done"}]}, tool)
    async with await rig.session() as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
    refused, ran = results(await rig.log(session.id))
    assert (refused.status, refused.executed, ran.status) == ("error", "no", "ok")
    assert "nested too deeply" in text_of(refused.parts)
    assert len(tool.runs) == 1


async def test_a_turn_with_too_many_calls_is_not_said_to_have_ids_alike() -> None:
    rig = Rig({"turns": [turn(*[call("act")] * 200)]}, CountingTool("act"))
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    assert outcome.error is not None
    assert "200 calls in one turn" in outcome.error.message
    assert "ids" not in outcome.error.hint
