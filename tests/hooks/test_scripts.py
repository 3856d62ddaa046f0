"""Scripts that people own run unchanged: one of each kind, in a real run with real processes."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from counterfoil.engine import EngineSettings
from counterfoil.events import CallFinished, HookRecorded, PromptSource, UserPrompt, text_of
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.hooks.parse import parse_table
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.ports import HookPhase
from counterfoil.tools import BuiltinTools
from tests.support.harness import Rig, call, turn

SCRIPTS = Path(__file__).parent / "scripts"
DOCS = Path(__file__).parents[2] / "docs" / "hooks.md"


def hook(phase: HookPhase, command: str, matcher: str = "", condition: str | None = None) -> HookDefinition:
    return HookDefinition(
        name=command.rsplit("/", 1)[-1],
        tier="user",
        phase=phase,
        command=command,
        matcher=matcher,
        condition=condition,
    )


def rig_in(folder: Path, script: dict[str, Any], *definitions: HookDefinition, allow: tuple[str, ...] = ()) -> Rig:
    environment = {"PATH": os.environ["PATH"]}
    return Rig(
        script,
        toolset=BuiltinTools(folder, environment=environment),
        workspace=str(folder),
        settings=EngineSettings(rules=Rules(allow=allow)),
        hooks=lambda meta: Hooks(definitions, cwd=str(folder), environment=environment, place=Place()),
    )


def bash(*commands: str) -> dict[str, Any]:
    return {"turns": [turn(*(call("Bash", command=c) for c in commands)), {"text": "done"}]}


async def played(rig: Rig, mode: Any = "bypass") -> tuple[Any, list[Any], list[Any], list[Any]]:
    """The outcome, the results, the hook records, and what was added for the model."""
    async with await rig.session(mode) as session:
        outcome = await session.prompt("go")
    log = await rig.log(session.id)
    source: PromptSource = "harness"
    return (
        outcome,
        [e for e in log if isinstance(e, CallFinished)],
        [e.record for e in log if isinstance(e, HookRecorded)],
        [text_of(e.parts) for e in log if isinstance(e, UserPrompt) and e.source == source],
    )


async def test_a_guard_in_bash_blocks_with_exit_2(tmp_path: Path) -> None:
    rig = rig_in(tmp_path, bash("rm -rf x", "echo fine"), hook("PreToolUse", str(SCRIPTS / "guard.sh"), "Bash"))
    _, results, records, _ = await played(rig)
    assert [r.status for r in results] == ["blocked", "ok"] and results[0].executed == "no"
    (record,) = records
    assert (record.outcome, record.severity, record.exit_code) == ("blocked", "blocking", 2)
    assert record.message == "removing is not allowed here" and record.tool_call_id == results[0].tool_call_id


async def test_a_formatter_in_bash_runs_after_an_edit(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    script = {"turns": [turn(call("Write", file_path=str(file), content="one  \ntwo\t\n")), {"text": "done"}]}
    rig = rig_in(tmp_path, script, hook("PostToolUse", str(SCRIPTS / "formatter.sh"), "Write|Edit"))
    _, results, records, _ = await played(rig, "accept_edits")
    assert results[0].status == "ok" and file.read_text() == "one\ntwo\n" and records == []


async def test_a_context_adder_in_python_speaks_with_each_prompt(tmp_path: Path) -> None:
    rig = rig_in(tmp_path, {"turns": [{"text": "ok"}]}, hook("UserPromptSubmit", str(SCRIPTS / "context.py")))
    _, _, records, added = await played(rig)
    assert added == ["The release branch is frozen."] and [r.outcome for r in records] == ["added_context"]


async def test_an_input_rewriter_in_python_changes_what_runs(tmp_path: Path) -> None:
    rig = rig_in(tmp_path, bash("rm -rf x"), hook("PreToolUse", str(SCRIPTS / "rewriter.py"), "Bash"))
    _, results, records, _ = await played(rig)
    assert "safely: rm -rf x" in text_of(results[0].parts)
    (record,) = records
    assert record.outcome == "changed_input" and '+ "command": "echo safely: rm -rf x"' in record.diff


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_an_approver_in_node_answers_for_the_person(tmp_path: Path) -> None:
    command = f"node {SCRIPTS / 'approver.js'}"
    rig = rig_in(tmp_path, bash("echo hi"), hook("PermissionRequest", command, "Bash"))
    _, results, records, _ = await played(rig, "default")
    assert results[0].status == "ok" and [r.outcome for r in records] == ["allowed"]


async def test_a_deferrer_in_python_parks_the_call(tmp_path: Path) -> None:
    rig = rig_in(tmp_path, bash("echo hi"), hook("PreToolUse", str(SCRIPTS / "deferrer.py"), "Bash"))
    outcome, results, records, _ = await played(rig)
    assert (outcome.parked, outcome.stop_reason, results) == (True, "deferred", [])
    assert records[0].outcome == "asked" and "night shift" in records[0].message


def example(folder: Path, name: str) -> str:
    """The script `name` of the page, as a file that can be run."""
    blocks = re.findall(r"```(?:bash|python)\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (text,) = (block for block in blocks if f"# {name}:" in block)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_no_example_of_the_page_is_left_out() -> None:
    names = re.findall(r"^# ([\w.]+): ", DOCS.read_text(), re.MULTILINE)
    assert names == ["guard.sh", "rewriter.py", "formatter.sh", "context.py"]


def test_the_settings_of_the_page_are_hooks_without_a_warning() -> None:
    found = []
    for block in re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL):
        for phase, tables in tomllib.loads(block)["hooks"].items():
            for table in tables:
                read = parse_table(phase, table, tier="user", place="page")
                assert read.problems == ()
                found += [d.phase for d in read.definitions]
    assert found == ["PreToolUse", "PostToolUse", "UserPromptSubmit"]


async def test_the_guard_and_the_rewriter_of_the_page_run(tmp_path: Path) -> None:
    guard, rewriter = (hook("PreToolUse", example(tmp_path, n), "Bash") for n in ("guard.sh", "rewriter.py"))
    _, results, records, _ = await played(rig_in(tmp_path, bash("rm x", "echo hi"), guard, rewriter))
    assert [r.status for r in results] == ["blocked", "ok"]
    assert {r.outcome for r in records} == {"blocked", "changed_input"}


async def test_the_formatter_and_the_context_of_the_page_run(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    script = {"turns": [turn(call("Write", file_path=str(file), content="one  \n")), {"text": "done"}]}
    formatter = hook("PostToolUse", example(tmp_path, "formatter.sh"), "Write|Edit", "Write(*.txt)")
    context = hook("UserPromptSubmit", example(tmp_path, "context.py"))
    _, _, _, added = await played(rig_in(tmp_path, script, formatter, context), "accept_edits")
    assert file.read_text() == "one\n" and added == ["The release branch is frozen."]
