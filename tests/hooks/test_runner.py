"""Real hook processes: whatever they do, the answer comes, is visible, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from counterfoil.errors import ConfigError
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.hooks.parse import parse_json, parse_table
from counterfoil.policy.paths import Place
from counterfoil.ports import HookCall, HookPhase, Targets
from tests.support.processes import runs

SCRIPTS = Path(__file__).parent / "scripts"


def hook(command: str, **fields: Any) -> HookDefinition:
    phase: HookPhase = fields.pop("phase", "PreToolUse")
    return HookDefinition(name=command[:30] or "h", tier="user", phase=phase, command=command, **fields)


def hooks_of(tmp_path: Path, *definitions: HookDefinition, **options: Any) -> Hooks:
    environment = {"PATH": os.environ["PATH"]}
    return Hooks(definitions, cwd=str(tmp_path), environment=environment, place=Place(), **options)


async def fire(runner: Hooks, payload: dict[str, Any] | None = None, **fields: Any) -> list[Any]:
    given = {"session_id": "ses_x", "tool_name": "Bash", "tool_input": {}} | (payload or {})
    call = HookCall(phase=fields.pop("phase", "PreToolUse"), payload=given, match=fields.pop("match", "Bash"), **fields)
    return await asyncio.wait_for(runner.fire(call), 20)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/nowhere/at/all", "not found"),
        ("./plain.txt", "can't be executed"),
        ("exit 7", "exit code 7"),
        ("kill -SEGV $$", "signal 11"),
        ("echo '{broken'", "not"),
        ("sleep 60", "did not end within"),
    ],
)
async def test_h2_every_way_to_fail_is_named(tmp_path: Path, command: str, why: str) -> None:
    (tmp_path / "plain.txt").write_text("not a program")
    (found,) = await fire(hooks_of(tmp_path, hook(command, timeout=0.3 if "sleep" in command else 10)))
    assert found.failure is not None and why in found.failure


async def test_a_folder_that_is_gone_is_a_failure_and_no_exception(tmp_path: Path) -> None:
    (found,) = await fire(hooks_of(tmp_path / "gone", hook("true")))
    assert "can't be started" in found.failure


async def test_h5_five_megabytes_that_nobody_reads_break_nothing(tmp_path: Path) -> None:
    (found,) = await fire(hooks_of(tmp_path, hook("exit 0")), {"tool_input": {"content": "x" * 5_000_000}})
    assert found.failure is None and not found.blocked


async def test_five_megabytes_arrive_whole(tmp_path: Path) -> None:
    (found,) = await fire(hooks_of(tmp_path, hook("wc -c >&2; exit 2")), {"tool_input": {"content": "x" * 5_000_000}})
    assert int(found.reason) > 5_000_000


async def test_three_megabytes_of_output_are_cut_with_a_warning(tmp_path: Path) -> None:
    (found,) = await fire(hooks_of(tmp_path, hook("head -c 3000000 /dev/zero | tr '\\0' x")))
    assert found.failure is None and "left out" in found.warnings[0]


async def test_h6_a_background_child_that_keeps_the_output_open_delays_nothing_and_is_gone(tmp_path: Path) -> None:
    command = "sleep 300 & echo $! > child.pid; exit 0"
    (found,) = await fire(hooks_of(tmp_path, hook(command, timeout=15)))
    assert found.failure is None and found.duration_ms < 10_000
    assert not runs(int((tmp_path / "child.pid").read_text()))


async def test_cancelling_ends_the_hooks_processes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    runner = hooks_of(tmp_path, hook("echo $$ > ready; sleep 300"))
    firing = asyncio.ensure_future(fire(runner))
    pid = int(await asyncio.to_thread((tmp_path / "ready").read_text))
    firing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await firing
    assert not runs(pid)


async def test_answers_come_in_the_order_of_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    first = hook("cat gate > /dev/null; echo one >&2; exit 2")
    second = hook("echo > gate; echo two >&2; exit 2")
    found = await fire(hooks_of(tmp_path, first, second))
    assert [a.reason for a in found] == ["one", "two"]


async def test_the_environment_names_session_call_and_project_and_no_secret(tmp_path: Path) -> None:
    command = "env >&2; exit 2"
    (found,) = await fire(hooks_of(tmp_path, hook(command)), tool_call_id="call_1")
    assert "COUNTERFOIL_SESSION_ID=ses_x" in found.reason and "COUNTERFOIL_TOOL_CALL_ID=call_1" in found.reason
    assert f"CLAUDE_PROJECT_DIR={tmp_path}" in found.reason and "API_KEY" not in found.reason


@pytest.mark.parametrize(
    ("matcher", "name", "fires"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("mcp__srv__.*", "mcp__srv__do", True),
        ("mcp__srv__.*", "xmcp__srv__do", False),
        ("Note.*|Ba.h", "Bash", True),
    ],
)
async def test_h4_matchers(tmp_path: Path, matcher: str, name: str, fires: bool) -> None:
    found = await fire(hooks_of(tmp_path, hook("exit 2", matcher=matcher)), match=name)
    assert bool(found) == fires


def test_a_matcher_or_an_if_that_is_none_is_a_configuration_error(tmp_path: Path) -> None:
    for fields in ({"matcher": "("}, {"condition": "Bash(("}):
        with pytest.raises(ConfigError):
            hooks_of(tmp_path, hook("true", **fields))


async def test_if_looks_at_the_call(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("exit 2", condition="Bash(git *)"))
    assert await fire(runner, targets=Targets(command="cd x && git push"))
    assert not await fire(runner, targets=Targets(command="ls"))


async def test_once_fires_once_and_the_same_command_twice_runs_once(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("exit 2", once=True))
    assert len(await fire(runner)) == 1 and await fire(runner) == []
    twice = hooks_of(tmp_path, hook("exit 2"), hook("exit 2", matcher="Bash"))
    assert len(await fire(twice)) == 1


async def test_a_hook_in_the_background_decides_nothing_and_is_waited_for_at_the_end(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("echo ran > done.txt; exit 2", background=True))
    assert await fire(runner) == []
    await runner.close()
    assert (tmp_path / "done.txt").read_text() == "ran\n"


def deny(payload: dict[str, Any]) -> dict[str, Any]:
    """A Python hook."""
    output = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "python"}
    return {"hookSpecificOutput": output}


async def test_python_hooks_answer_and_their_faults_are_failures(tmp_path: Path) -> None:
    good = HookDefinition(name="p", tier="user", phase="PreToolUse", kind="python", entry=f"{__name__}:deny")
    bad = HookDefinition(name="q", tier="user", phase="PreToolUse", kind="python", entry=f"{__name__}:nothing")
    found = await fire(hooks_of(tmp_path, good, bad))
    assert found[0].permission == "deny" and "AttributeError" in found[1].failure


async def test_a_prompt_hook_never_takes_an_unclear_answer_for_a_yes(tmp_path: Path) -> None:
    definition = HookDefinition(name="p", tier="user", phase="PreToolUse", kind="prompt", prompt="Is it safe?")
    for text, expected in (('{"ok": true}', "fine"), ('{"ok": false, "reason": "no"}', "no"), ("sure!", "failure")):

        async def ask(question: str, model: str, text: str = text) -> str:
            assert "<event>" in question
            return text

        (found,) = await fire(hooks_of(tmp_path, definition, ask_model=ask))
        assert (found.failure is not None) == (expected == "failure") and found.blocked == (expected == "no")
    (missing,) = await fire(hooks_of(tmp_path, definition))
    assert missing.failure


async def test_http_hooks(tmp_path: Path) -> None:
    bodies = {"/json": b'{"continue": false, "stopReason": "enough"}', "/empty": b"", "/text": b"hello"}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = bodies.get(head.split()[1].decode())
        status = b"500 Bad" if body is None else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(body or b"")))
        writer.write(body or b"")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        definitions = [
            HookDefinition(name=p, tier="user", phase="PreToolUse", kind="http", url=f"http://127.0.0.1:{port}{p}")
            for p in ("/json", "/empty", "/text", "/error")
        ]
        found = await fire(hooks_of(tmp_path, *definitions))
    assert found[0].proceed is False and found[0].stop_reason == "enough"
    assert found[1].failure is None and "JSON" in found[2].failure and "500" in found[3].failure


def test_settings_in_both_forms_give_the_same_hook() -> None:
    handler = {"type": "command", "command": "x", "timeout": 3, "if": "Bash(git *)"}
    from_json = parse_json({"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}, tier="user", place="s.json")
    table = {"matcher": "Bash", "command": "x", "timeout": 3, "if": "Bash(git *)"}
    from_table = parse_table("PreToolUse", table, tier="user", place="c.toml:3")
    (one,), (two,) = from_json.definitions, from_table.definitions
    assert (one.handler, one.timeout, one.condition) == (two.handler, two.timeout, two.condition)
    assert two.place == "c.toml:3" and "s.json" in one.place


@pytest.mark.parametrize(
    "block",
    [
        [],
        {"PreToolUse": {}},
        {"PreToolUse": [{"hooks": [{"type": "carrier-pigeon"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "command"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": "soon"}]}]},
        {"PreToolUse": [{"hooks": ["x"]}]},
    ],
)
def test_settings_that_can_not_be_a_hook_are_fatal_problems(block: Any) -> None:
    read = parse_json(block, tier="user", place="s.json")
    assert read.definitions == () and any(fatal and "s.json" in text for fatal, text in read.problems)


def test_unknown_events_and_fields_are_warned_of() -> None:
    read = parse_json({"Never": [], "Stop": [{"hooks": [{"command": "x", "colour": 1}]}]}, tier="user", place="s")
    assert len(read.definitions) == 1 and [fatal for fatal, _ in read.problems] == [False, False]


def test_a_failing_blocking_hook_of_the_operator_blocks_by_default() -> None:
    (operator,) = parse_table("PreToolUse", {"command": "x"}, tier="operator", place="p").definitions
    (user,) = parse_table("PreToolUse", {"command": "x"}, tier="user", place="p").definitions
    assert (operator.on_failure, user.on_failure) == ("block", "allow")
