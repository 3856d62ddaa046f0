"""Plan mode: read-only until a person approves the plan that was shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterfoil.events import AskOpened, CallFinished, Mode, SessionUpdated, Verdict, text_of
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.tools import BuiltinTools
from tests.support.harness import Answerer, Rig, call, turn

SCRIPT: dict[str, Any] = {
    "turns": [
        turn(call("Write", file_path="a.txt", content="early")),
        turn(call("PresentPlan", plan="1. write a.txt")),
        turn(call("Write", file_path="a.txt", content="late")),
        {"text": "done"},
    ]
}


async def planned(tmp_path: Path, verdict: Verdict, before: Mode = "accept_edits", **changes: Any) -> tuple[Rig, Any]:
    rig = Rig(SCRIPT, toolset=BuiltinTools(tmp_path, environment={}), workspace=str(tmp_path), **changes)
    session = await rig.session(before)
    await session.set_mode("plan")
    answerer = Answerer(session, verdict, note="not yet")
    await session.prompt("go")
    await answerer.stop()
    return rig, session


async def test_an_approved_plan_leads_back_to_the_mode_before(tmp_path: Path) -> None:
    rig, session = await planned(tmp_path, "allow")
    log = await rig.log(session.id)
    assert [e.status for e in log if isinstance(e, CallFinished)] == ["denied", "ok", "ok"]
    assert (tmp_path / "a.txt").read_text() == "late"
    (ask,) = [e.ask for e in log if isinstance(e, AskOpened)]
    assert (ask.tool, ask.arguments, ask.rule) == ("PresentPlan", {"plan": "1. write a.txt"}, None)
    assert [e.mode for e in log if isinstance(e, SessionUpdated)] == ["plan", "accept_edits"]


async def test_a_refused_plan_leaves_the_mode_and_the_note_reaches_the_model(tmp_path: Path) -> None:
    rig, session = await planned(tmp_path, "deny")
    finished = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert [e.status for e in finished] == ["denied", "denied", "denied"]
    assert "not yet" in text_of(finished[1].parts)
    assert not (tmp_path / "a.txt").exists()


async def test_no_rule_and_no_hook_leaves_plan_mode_for_the_person(tmp_path: Path) -> None:
    allow = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'"""
    definition = HookDefinition(name="yes", tier="user", phase="PreToolUse", matcher="PresentPlan", command=allow)
    rig, session = await planned(
        tmp_path,
        "deny",
        rules=Rules(allow=("PresentPlan",)),
        hooks=lambda meta: Hooks([definition], cwd=str(tmp_path), environment={"PATH": "/usr/bin:/bin"}, place=Place()),
    )
    assert sum(isinstance(e, AskOpened) for e in await rig.log(session.id)) == 1
    assert session.state.meta.mode == "plan"


@pytest.mark.parametrize("mode", ["default", "bypass"])
async def test_outside_plan_mode_there_is_no_plan_to_present(tmp_path: Path, mode: Mode) -> None:
    script = {"turns": [turn(call("PresentPlan", plan="p")), {"text": "done"}]}
    rig = Rig(script, toolset=BuiltinTools(tmp_path, environment={}), workspace=str(tmp_path))
    session = await rig.session(mode)
    await session.prompt("go")
    (finished,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert (finished.status, finished.executed) == ("error", "no")
    await session.close()
