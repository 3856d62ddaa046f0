"""Hooks in a whole run: what `if` looks at, and what stays of each outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from counterfoil.engine import Session
from counterfoil.events import CallFinished, GrantChanged, HookRecord, HookRecorded, Notice, ToolOriginal, text_of
from counterfoil.events.codec import decode_private, event_of
from counterfoil.hooks import HookDefinition
from counterfoil.identity import START, result_digest
from counterfoil.policy.permissions import Rules
from counterfoil.ports import HookPhase, Targets, ToolContext
from tests.engine.test_hooks import ONE, hook, records, rig_with, specific
from tests.support.harness import Answerer, CountingTool, Rig, call, turn


class Remote(CountingTool):
    """A tool whose arguments don't show what it touches: only the tool itself knows."""

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        if arguments.get("broken"):
            raise ValueError("nobody knows")
        return Targets(domain=f"{arguments['where']}.example.org")


def said(phase: str) -> Any:
    return lambda event: {"systemMessage": phase}


@pytest.mark.parametrize("phase", ["PostToolUse", "PostToolUseFailure", "PermissionDenied"])
@pytest.mark.parametrize(("where", "fires"), [("docs", True), ("other", False)])
async def test_if_looks_at_what_the_call_touched_also_after_it(phase: HookPhase, where: str, fires: bool) -> None:
    def fails(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        if phase == "PostToolUseFailure":
            raise RuntimeError("no")
        return "fine"

    rules = Rules(deny=("WebFetch",)) if phase == "PermissionDenied" else Rules()
    script = {"turns": [turn(call("WebFetch", where=where)), {"text": "done"}]}
    about = hook(phase, said(phase), condition="WebFetch(domain:docs.example.org)")
    rig = rig_with(script, about, tools=[Remote("WebFetch", behaviour=fails)], rules=rules)
    async with await rig.session() as session:
        await session.prompt("go")
    assert [r.message for r in await records(rig, session)] == ([phase] if fires else [])


async def test_targets_that_can_not_be_determined_lose_no_hook_that_has_no_if() -> None:
    script = {"turns": [turn(call("WebFetch", broken=True)), {"text": "done"}]}
    rig = rig_with(script, hook("PermissionDenied", said("told")), tools=[Remote("WebFetch")])
    async with await rig.session() as session:
        await session.prompt("go")
    assert [r.message for r in await records(rig, session)] == ["told"]


def replaces(text: str) -> Any:
    return lambda event: specific("PostToolUse", updatedToolOutput=text)


async def originals(rig: Rig, session: Session) -> list[tuple[Any, Any]]:
    rows = await rig.store.read(session.id, START, 1000)
    return [(event_of(row), decode_private(row.private)) for row in rows if row.kind == "hook.recorded"]


async def test_the_original_is_kept_where_two_hooks_replace_the_output() -> None:
    tool = CountingTool("act", behaviour=lambda c, a: "the tool's own")
    both = [hook("PostToolUse", replaces(text)) for text in ("first", "second")]
    rig = rig_with(ONE, *both, tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    (result,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    (one, kept), (two, between) = await originals(rig, session)
    assert isinstance(one, HookRecorded) and isinstance(two, HookRecorded)
    assert isinstance(kept, ToolOriginal) and isinstance(between, ToolOriginal)
    assert [text_of(p) for p in (kept.parts, between.parts, result.parts)] == ["the tool's own", "first", "second"]
    chain = [one.record.before, one.record.after, two.record.before, two.record.after]
    assert chain == [result_digest(p) for p in (kept.parts, between.parts, between.parts, result.parts)]


async def test_what_a_background_hook_came_to_is_published_while_the_run_goes_on() -> None:
    done = asyncio.Event()

    async def slow(event: dict[str, Any]) -> dict[str, Any] | None:
        done.set()
        return specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="too late")

    async def waits(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        await done.wait()
        return "ran"

    tool = CountingTool("act", behaviour=waits)
    rig = rig_with(ONE, hook("PreToolUse", cast(Any, slow), background=True), tools=[tool])
    async with await rig.session() as session:
        await session.prompt("go")
    (notice,) = [e for e in await rig.log(session.id) if isinstance(e, Notice)]
    assert notice.code == "hook_late" and notice.severity == "warning"
    assert f"PreToolUse of call {tool.runs[0][0]}" in notice.text and "not used: `deny` too late" in notice.text
    assert await records(rig, session) == []


async def test_what_a_background_hook_came_to_at_the_very_end_is_published_before_the_session_closes(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "gate")
    fails = HookDefinition(
        name="slow",
        tier="user",
        phase="PostToolUse",
        command=f"cat {tmp_path / 'gate'} > /dev/null; exit 3",
        background=True,
    )
    rig = rig_with(ONE, fails)
    session = await rig.session()
    await session.prompt("go")
    assert not [e for e in await rig.log(session.id) if isinstance(e, Notice)]
    opened = asyncio.ensure_future(asyncio.to_thread((tmp_path / "gate").write_text, "go"))
    await session.close()
    await opened
    (notice,) = [e for e in await rig.log(session.id) if isinstance(e, Notice)]
    assert "hook slow (PostToolUse of call" in notice.text and "exit code 3" in notice.text


LOGS = {"turns": [turn(call("Bash", command="git log -1")), turn(call("Bash", command="git log -2")), {"text": "done"}]}


class Shell(CountingTool):
    """Bash that runs nothing."""

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        return Targets(command=str(arguments["command"]))


def allows(**fields: Any) -> Any:
    return lambda event: specific("PermissionRequest", decision={"behavior": "allow", **fields})


def echoes(event: dict[str, Any]) -> dict[str, Any] | None:
    answered: dict[str, Any] | None = allows(updatedPermissions=event["permission_suggestions"])(event)
    return answered


async def learned(*hooks: HookDefinition, rules: Rules) -> tuple[list[GrantChanged], list[HookRecord], list[str]]:
    rig = rig_with(LOGS, *hooks, tools=[Shell("Bash")], rules=rules)
    session = await rig.session("default")
    answerer = Answerer(session, "deny")
    await session.prompt("go")
    await answerer.stop()
    log = await rig.log(session.id)
    results = [str(e.status) for e in log if isinstance(e, CallFinished)]
    return [e for e in log if isinstance(e, GrantChanged)], await records(rig, session), results


ASKED = Rules()


async def test_a_rule_that_a_person_could_learn_is_learned_for_the_session_from_a_hook() -> None:
    (grant,), told, results = await learned(hook("PermissionRequest", echoes, name="echo"), rules=ASKED)
    assert (grant.rule, grant.scope, grant.ask_id) == ("Bash(git log *)", "session", None)
    assert (grant.decided_by.kind, grant.decided_by.name) == ("policy", "hook echo")
    assert [(r.outcome, r.message) for r in told] == [
        ("allowed", "hook echo"),
        ("notice", "has the rule Bash(git log *) learned for this session"),
    ]
    assert results == ["ok", "ok"]


@pytest.mark.parametrize(
    "update",
    [
        {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}]},
        {"type": "addRules", "behavior": "allow", "rules": ["Bash(git *)"]},
        {"type": "addRules", "behavior": "deny", "rules": ["Bash(git log *)"]},
        {"type": "addRules", "behavior": "allow", "rules": [7]},
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "addDirectories", "directories": ["/"]},
        "all of it",
    ],
)
async def test_a_wider_rule_a_mode_or_a_folder_is_not_had_and_that_is_said(update: Any) -> None:
    wide = hook("PermissionRequest", allows(updatedPermissions=[update]))
    grants, told, results = await learned(wide, rules=ASKED)
    assert grants == [] and results == ["ok", "ok"]
    warned = [r.message for r in told if r.severity == "warning"]
    assert len(warned) == 2 and all(
        "not used" in text or "only Bash(git log *) can be learned" in text for text in warned
    )


@pytest.mark.parametrize("denied_first", [True, False])
async def test_no_rule_is_learned_where_another_hook_denies(denied_first: bool) -> None:
    deny = hook("PermissionRequest", lambda event: specific("PermissionRequest", decision={"behavior": "deny"}))
    both = [hook("PermissionRequest", echoes), deny]
    grants, told, results = await learned(*(reversed(both) if denied_first else both), rules=ASKED)
    assert grants == [] and results == ["denied", "denied"]
    assert any("is not learned: nothing was allowed" in r.message for r in told)


async def test_no_rule_is_learned_of_arguments_that_nobody_was_shown() -> None:
    rewrite = hook("PermissionRequest", allows(updatedInput={"command": "git log -3"}))
    grants, told, _ = await learned(hook("PermissionRequest", echoes), rewrite, rules=ASKED)
    assert grants == [] and any("no rule can be learned from this call" in r.message for r in told)


async def test_a_learned_rule_never_covers_a_denial() -> None:
    denied = Rules(deny=("Bash(git log -2)",))
    _, _, results = await learned(hook("PermissionRequest", echoes), rules=denied)
    assert results == ["ok", "denied"]
