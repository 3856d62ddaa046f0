"""Hooks in a run: what they change, block, ask and add; each outcome a record with an id and a revision."""

from __future__ import annotations

import asyncio
import itertools
import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.engine import EngineSettings
from counterfoil.events import (
    AskOpened,
    AskSettled,
    CallEffective,
    CallFinished,
    CallStarted,
    GrantChanged,
    HookRecord,
    HookRecorded,
    ToolOriginal,
    UserPrompt,
    text_of,
)
from counterfoil.events.codec import decode_private
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.identity import START
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.ports import HookPhase
from tests.engine.test_asks import park_at_ask
from tests.support.harness import ME, Answerer, CountingTool, Rig, call, turn

HOOKS = types.SimpleNamespace()
_number = itertools.count()
Said = dict[str, Any] | None


def hook(phase: HookPhase, function: Callable[[dict[str, Any]], Said], **fields: Any) -> HookDefinition:
    """A Python hook that answers with what `function` returns."""
    name = f"h{next(_number)}"
    setattr(HOOKS, name, function)
    return HookDefinition(
        name=fields.pop("name", name),
        tier="user",
        phase=phase,
        kind="python",
        entry=f"{__name__}:HOOKS.{name}",
        **fields,
    )


def specific(phase: str, **fields: Any) -> Said:
    return {"hookSpecificOutput": {"hookEventName": phase, **fields}}


def pre(**fields: Any) -> Callable[[dict[str, Any]], Said]:
    return lambda event: specific("PreToolUse", **fields)


def rig_with(script: dict[str, Any], *definitions: HookDefinition, tools: Any = None, **options: Any) -> Rig:
    return Rig(
        script,
        *(tools or [CountingTool("act")]),
        hooks=lambda meta: Hooks(definitions, cwd="/", environment={}, place=Place()),
        **options,
    )


ONE = {"turns": [turn(call("act", a=1)), {"text": "done"}]}


async def records(rig: Rig, session: Any) -> list[HookRecord]:
    return [e.record for e in await rig.log(session.id) if isinstance(e, HookRecorded)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_h1_a_change_holds_whatever_a_silent_hook_beside_it_says(order: tuple[int, int]) -> None:
    tool = CountingTool("act")
    both = [hook("PreToolUse", lambda event: {}), hook("PreToolUse", pre(updatedInput={"a": 2}))]
    rig = rig_with(ONE, *(both[i] for i in order), tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    assert [arguments for _, arguments in tool.runs] == [{"a": 2}]
    (record,) = await records(rig, session)
    assert (record.outcome, record.severity, record.origin_session_id) == ("changed_input", "notable", session.id)
    (effective,) = [e for e in await rig.log(session.id) if isinstance(e, CallEffective)]
    assert effective.hook_id == record.hook_id and record.after == effective.arguments_digest
    assert record.tool_call_id == effective.tool_call_id == tool.runs[0][0]


async def test_two_changes_apply_in_order_each_with_a_record_and_the_second_is_a_warning() -> None:
    tool = CountingTool("act")
    changes = [hook("PreToolUse", pre(updatedInput={"a": n})) for n in (2, 3)]
    rig = rig_with(ONE, *changes, tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    assert tool.runs[0][1] == {"a": 3}
    assert [(r.outcome, r.severity) for r in await records(rig, session)] == [
        ("changed_input", "notable"),
        ("changed_input", "warning"),
    ]


async def test_a8_what_was_rewritten_is_what_is_shown_and_what_runs() -> None:
    tool = CountingTool("act")
    rewrite = hook("PreToolUse", pre(updatedInput={"a": 2}))
    ask = hook("PreToolUse", pre(permissionDecision="ask", permissionDecisionReason="look at it"))
    rig = rig_with(ONE, rewrite, ask, tools=[tool])
    session = await rig.session("bypass")
    answerer = Answerer(session)
    await session.prompt("go")
    await answerer.stop()
    (opened,) = [e.ask for e in await rig.log(session.id) if isinstance(e, AskOpened)]
    (settled,) = [e.receipt for e in await rig.log(session.id) if isinstance(e, AskSettled)]
    assert opened.arguments == {"a": 2} == tool.runs[0][1] and opened.reason == "look at it"
    assert settled.arguments_digest == opened.arguments_digest


@pytest.mark.parametrize(
    ("said", "status"),
    [({"permissionDecision": "deny", "permissionDecisionReason": "no"}, "blocked"), ({}, "ok")],
)
async def test_a_denial_of_a_hook_blocks_the_call(said: dict[str, Any], status: str) -> None:
    tool = CountingTool("act")
    allow = hook("PreToolUse", pre(permissionDecision="allow"))
    rig = rig_with(ONE, allow, hook("PreToolUse", pre(**said)), tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    (result,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert result.status == status and len(tool.runs) == (status == "ok")


async def test_an_allow_skips_the_question_and_never_a_rule() -> None:
    for rules, runs in ((Rules(), 1), (Rules(ask=("act",)), 0), (Rules(deny=("act",)), 0)):
        tool = CountingTool("act")
        allow = hook("PreToolUse", pre(permissionDecision="allow"))
        rig = rig_with(ONE, allow, tools=[tool], settings=EngineSettings(rules=rules))
        session = await rig.session("default")
        answerer = Answerer(session, "deny")
        await session.prompt("go")
        await answerer.stop()
        assert len(tool.runs) == runs


async def test_changed_arguments_are_checked_against_schema_and_rules_again() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    tool = CountingTool("act", parameters=schema)
    rig = rig_with(ONE, hook("PreToolUse", pre(updatedInput={"a": "x"})), tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    (result,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert (result.status, result.executed) == ("error", "no") and tool.runs == []


@pytest.mark.parametrize(("on_failure", "runs"), [("allow", 1), ("block", 0)])
async def test_a_hook_that_fails_is_visible_and_on_failure_decides(on_failure: Any, runs: int) -> None:
    def broken(event: dict[str, Any]) -> Said:
        raise RuntimeError("bug")

    tool = CountingTool("act")
    rig = rig_with(ONE, hook("PreToolUse", broken, on_failure=on_failure), tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    found = await records(rig, session)
    assert found[0].outcome == "failed" and "bug" in found[0].message and len(tool.runs) == runs


async def test_a_deferred_call_waits_under_its_ids_until_somebody_answers() -> None:
    tool = CountingTool("act")
    fired: list[str] = []

    def defer(event: dict[str, Any]) -> Said:
        fired.append(event["tool_use_id"])
        return specific("PreToolUse", permissionDecision="defer", permissionDecisionReason="later")

    rig = rig_with(ONE, hook("PreToolUse", defer), tools=[tool])
    async with await rig.session() as session:
        outcome = await session.prompt("go")
        assert (outcome.parked, outcome.stop_reason) == (True, "deferred")
        (ask,) = session.state.asks.values()
        assert ask.deferred and ask.tool_call_id == fired[0]
    async with await rig.engine.open(session.id) as again:
        await again.answer(ask.ask_id, "allow", principal=ME)
        assert (await again.resume()).stop_reason == "end_turn"
    assert tool.runs == [(ask.tool_call_id, {"a": 1})] and len(fired) == 1


async def test_a_restart_neither_runs_a_hook_again_nor_forgets_what_it_said() -> None:
    tool = CountingTool("act")
    fired: list[int] = []

    def twice(event: dict[str, Any]) -> Said:
        fired.append(1)
        more = {"updatedInput": {"a": event["tool_input"]["a"] + 1}}
        return specific("PreToolUse", permissionDecision="ask", **more)

    rig = rig_with(ONE, hook("PreToolUse", twice), tools=[tool])
    session = await rig.session("bypass")
    ask = await park_at_ask(session)
    await session.close()
    async with await rig.engine.open(session.id) as again:
        await again.answer(ask.ask_id, "allow", principal=ME)
        await again.resume()
    assert tool.runs[0][1] == {"a": 2} and len(fired) == 1


async def test_a_result_that_a_hook_replaces_is_kept_privately() -> None:
    tool = CountingTool("act", behaviour=lambda c, a: "the secret is 42")
    replace = hook("PostToolUse", lambda event: specific("PostToolUse", updatedToolOutput="[redacted]"))
    rig = rig_with(ONE, replace, tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    (result,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert text_of(result.parts) == "[redacted]"
    rows = await rig.store.read(session.id, START, 1000)
    assert not any(b"the secret" in row.public for row in rows)
    (kept,) = [decode_private(r.private) for r in rows if r.kind == "hook.recorded" and r.private]
    assert isinstance(kept, ToolOriginal) and text_of(kept.parts) == "the secret is 42"


async def test_context_reaches_the_model_after_the_results() -> None:
    add = hook("PostToolUse", lambda event: specific("PostToolUse", additionalContext="mind the gap"))
    rig = rig_with(ONE, add)
    async with await rig.session() as session:
        await session.prompt("go")
    shape = [type(i).__name__ for i in session.state.history.items]
    assert shape == ["PromptItem", "TurnItem", "PromptItem", "TurnItem"]


async def test_a_prompt_that_a_hook_drops_is_not_recorded_and_the_run_says_so() -> None:
    drop = hook("UserPromptSubmit", lambda event: {"decision": "block", "reason": f"not {event['prompt']}"})
    rig = rig_with({"turns": [{"text": "never"}]}, drop)
    async with await rig.session() as session:
        outcome = await session.prompt("that")
    assert outcome.stop_reason == "hook_stopped" and outcome.error is not None and outcome.error.message == "not that"
    assert not [e for e in await rig.log(session.id) if isinstance(e, UserPrompt)]
    assert (await rig.engine.load(session.id)).run is None


async def test_session_start_speaks_once_and_knows_its_source() -> None:
    sources: list[str] = []

    def start(event: dict[str, Any]) -> Said:
        sources.append(event["source"])
        return specific("SessionStart", additionalContext="hello")

    rig = rig_with({"turns": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}, hook("SessionStart", start))
    async with await rig.session() as session:
        await session.prompt("one")
        await session.prompt("two")
    async with await rig.engine.open(session.id) as again:
        await again.prompt("three")
    assert sources == ["startup", "resume"]


async def test_continue_false_stops_the_run_after_the_call() -> None:
    tool = CountingTool("act")
    stop = hook("PostToolUse", lambda event: {"continue": False, "stopReason": "enough"})
    rig = rig_with({"turns": [turn(call("act")), turn(call("act"))]}, stop, tools=[tool])
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    assert outcome.stop_reason == "hook_stopped" and outcome.error is not None and outcome.error.message == "enough"
    assert len(tool.runs) == 1


async def test_a_stop_hook_makes_the_agent_go_on_a_bounded_number_of_times() -> None:
    active: list[bool] = []

    def more(event: dict[str, Any]) -> Said:
        active.append(event["stop_hook_active"])
        return {"decision": "block", "reason": "run the tests first"}

    rig = rig_with({"turns": [{"text": f"done {n}"} for n in range(20)]}, hook("Stop", more))
    async with await rig.session() as session:
        outcome = await session.prompt("go")
    assert outcome.stop_reason == "end_turn" and active == [False] + [True] * 7 and outcome.text == "done 8"


def approve_with_five(event: dict[str, Any]) -> Said:
    decision = {"behavior": "allow", "updatedInput": {"a": 5}}
    return specific("PermissionRequest", decision=decision)


async def test_a_permission_request_is_answered_by_a_hook_and_deny_rules_stay() -> None:
    for rules, runs in ((Rules(), 1), (Rules(deny=("act",)), 0)):
        tool = CountingTool("act")
        answer = hook("PermissionRequest", approve_with_five)
        rig = rig_with(ONE, answer, tools=[tool], settings=EngineSettings(rules=rules))
        async with await rig.session("default") as session:
            await session.prompt("go")
        assert [a for _, a in tool.runs] == [{"a": 5}] * runs


async def test_every_event_about_a_call_has_its_id_and_the_transcript_has_public_ids_alone(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    transcripts: list[str] = []

    def note(event: dict[str, Any]) -> Said:
        seen.append((event["hook_event_name"], event["tool_use_id"]))
        transcripts.append(Path(event["transcript_path"]).read_text())
        return None

    phases: tuple[HookPhase, ...] = ("PreToolUse", "PostToolUse")
    script = {"turns": [turn(call("act", id="SECRET-id")), {"text": "done"}]}
    rig = rig_with(script, *(hook(p, note) for p in phases), transcripts=str(tmp_path))
    async with await rig.session() as session:
        await session.prompt("go")
    (start,) = [e for e in await rig.log(session.id) if isinstance(e, CallStarted)]
    assert seen == [("PreToolUse", start.tool_call_id), ("PostToolUse", start.tool_call_id)]
    assert "call.started" in transcripts[1] and "SECRET" not in transcripts[1]
    whole = (tmp_path / f"{session.id}.jsonl").read_text().splitlines()
    assert len(whole) == len(await rig.log(session.id)) and all(json.loads(line)["event"] for line in whole)


async def test_revisions_of_concurrent_records_differ_and_go_on_after_a_restart() -> None:
    look = CountingTool("look", read_only=True)
    calls = [call("look", n=n) for n in range(8)]
    add = hook("PostToolUse", lambda event: specific("PostToolUse", additionalContext="x"))
    rig = rig_with({"turns": [turn(*calls), {"text": "a"}, turn(*calls), {"text": "b"}]}, add, tools=[look])
    async with await rig.session() as session:
        await session.prompt("one")
    async with await rig.engine.open(session.id) as again:
        await again.prompt("two")
    found = [r.revision for r in await records(rig, session)]
    assert found == sorted(found) and len(set(found)) == len(found) == 16


async def test_always_learns_the_rule_that_was_shown_and_it_can_be_used_at_once() -> None:
    tool = CountingTool("act")
    learned: list[GrantChanged] = []
    settings = EngineSettings(on_grant=lambda meta, change: learned.append(change))
    script = {"turns": [turn(call("act", a=1)), turn(call("act", a=2)), {"text": "done"}]}
    rig = Rig(script, tool, settings=settings)
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
        assert ask.rule == "act"
        await session.answer(ask.ask_id, "allow", principal=ME, scope="always")
        assert (await session.resume()).stop_reason == "end_turn"
    assert len(tool.runs) == 2 and [(g.rule, g.scope, g.ask_id) for g in learned] == [("act", "always", ask.ask_id)]
    assert [k for k in await rig.kinds(session.id) if k == "ask.opened"] == ["ask.opened"]


async def test_the_person_is_notified_while_the_ask_is_open() -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    tool = CountingTool("act")

    def note(event: dict[str, Any]) -> Said:
        loop.call_soon_threadsafe(told.set)
        return None

    rig = rig_with(ONE, hook("Notification", note), tools=[tool])
    async with await rig.session("default") as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await asyncio.wait_for(told.wait(), 10)
        (ask_id,) = session.state.asks
        await session.answer(ask_id, "allow", principal=ME)
        assert (await running).stop_reason == "end_turn"


async def test_a_transcript_that_can_not_be_written_is_given_up_and_the_run_goes_on(tmp_path: Path) -> None:
    def note(event: dict[str, Any]) -> Said:
        return None

    rig = rig_with(ONE, hook("PreToolUse", note), transcripts=str(tmp_path))
    async with await rig.session() as session:
        publisher = session._ctx.publisher
        assert publisher.transcript is not None
        publisher.transcript._file.close()
        publisher.transcript._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
        assert (await session.prompt("go")).stop_reason == "end_turn"
        assert publisher.transcript is None
    assert (await rig.engine.load(session.id)) == session.state
