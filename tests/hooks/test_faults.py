"""A hook's fault is an answer, whatever it is; and what a hook is given is a copy."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from counterfoil.hooks import HookDefinition
from counterfoil.hooks.others import EVENT_CHARACTERS, url_allowed
from counterfoil.hooks.parse import parse_json, parse_table
from counterfoil.ports import HookPhase, Targets
from counterfoil.tools.variables import SessionVariables
from tests.hooks.test_runner import fire, hook, hooks_of
from tests.support.processes import runs

RELEASE = threading.Event()


def changes_what_it_gets(payload: dict[str, Any]) -> None:
    payload["tool_input"]["command"] = "rm -rf /"


def ends_the_program(payload: dict[str, Any]) -> None:
    sys.exit(3)


async def ends_the_program_later(payload: dict[str, Any]) -> None:
    sys.exit(3)


async def cancels_itself(payload: dict[str, Any]) -> None:
    raise asyncio.CancelledError


def hangs(payload: dict[str, Any]) -> None:
    RELEASE.wait(60)


def raises_a_timeout(payload: dict[str, Any]) -> None:
    raise TimeoutError("of its own")


def a_list(payload: dict[str, Any]) -> list[int]:
    return [1]


class Stops:
    async def __call__(self, payload: dict[str, Any]) -> dict[str, Any]:
        return {"continue": False}


stops = Stops()


def python(name: str, **fields: Any) -> HookDefinition:
    return HookDefinition(
        name=name, tier="user", phase="PreToolUse", kind="python", entry=f"{__name__}:{name}", **fields
    )


async def test_a_python_hook_gets_a_copy_and_changes_nothing_but_by_its_answer(tmp_path: Path) -> None:
    arguments = {"command": "ls"}
    (found,) = await fire(hooks_of(tmp_path, python("changes_what_it_gets")), {"tool_input": arguments})
    assert arguments == {"command": "ls"} and found.updated_input is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ends_the_program", "SystemExit"),
        ("ends_the_program_later", "SystemExit"),
        ("cancels_itself", "was cancelled"),
        ("raises_a_timeout", "of its own"),
        ("a_list", "returned list"),
        ("missing", "AttributeError"),
    ],
)
async def test_whatever_a_python_hook_does_is_an_answer(tmp_path: Path, name: str, why: str) -> None:
    found = await fire(hooks_of(tmp_path, python(name), hook("exit 2")))
    assert why in found[0].failure and found[1].blocked


async def test_an_async_callable_is_awaited(tmp_path: Path) -> None:
    (found,) = await fire(hooks_of(tmp_path, python("stops")))
    assert found.failure is None and found.proceed is False


async def test_a_python_hook_that_hangs_is_left_at_its_time_and_holds_up_nothing(tmp_path: Path) -> None:
    RELEASE.clear()
    (found,) = await fire(hooks_of(tmp_path, python("hangs", timeout=0.2)))
    left = [t for t in threading.enumerate() if t.name == "counterfoil-hook"]
    assert "did not end within 0.2 s" in found.failure and left and all(t.daemon for t in left)
    RELEASE.set()


async def test_faults_of_settings_and_of_the_model_are_answers(tmp_path: Path) -> None:
    async def ask(question: str, model: str) -> str:
        raise RuntimeError("no such model")

    local = {"kind": "http", "url": "http://127.0.0.1:1/"}
    odd = HookDefinition(name="o", tier="user", phase="PreToolUse", headers={"x": "é"}, **local)  # type: ignore[arg-type]
    nul = hook("a\0b")
    prompt = HookDefinition(name="p", tier="user", phase="PreToolUse", kind="prompt", prompt="ok? {braces}")
    found = await fire(hooks_of(tmp_path, odd, nul, prompt, ask_model=ask))
    assert all(a.failure for a in found) and "null byte" in found[1].failure and "no such model" in found[2].failure


async def test_a_prompt_hook_is_told_what_it_is_not_shown(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(question: str, model: str) -> str:
        asked.append(question)
        return '{"ok": true}'

    prompt = HookDefinition(name="p", tier="user", phase="PreToolUse", kind="prompt", prompt="ok?")
    await fire(hooks_of(tmp_path, prompt, ask_model=ask), {"tool_input": {"content": "x" * EVENT_CHARACTERS}})
    assert "more characters are not shown" in asked[0]


@contextmanager
def descriptors(room: int) -> Iterator[None]:
    """So many more files may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + room, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
async def test_h2_a_start_that_fails_at_any_step_is_an_answer_and_leaves_nothing_open(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("true"))
    await fire(runner)
    before = len(list(Path("/proc/self/fd").iterdir()))
    failed = 0
    for room in range(12):
        with descriptors(room):
            (found,) = await fire(runner)
        assert found.failure is None or "can't be started" in found.failure
        failed += found.failure is not None
    assert failed and len(list(Path("/proc/self/fd").iterdir())) == before


async def test_cancelling_at_any_step_of_a_start_leaves_no_process(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("echo $$ >> pids; exec sleep 300"))
    for steps in range(12):
        firing = asyncio.ensure_future(fire(runner))
        for _ in range(steps):
            await asyncio.sleep(0)
        firing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await firing
    pids = (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []
    assert not any(runs(int(pid)) for pid in pids)


async def test_a_hook_in_the_background_never_takes_the_place_of_one_that_decides(tmp_path: Path) -> None:
    for definitions in (
        (hook("exit 2", background=True), hook("exit 2")),
        (hook("exit 2"), hook("exit 2", background=True)),
    ):
        (found,) = await fire(hooks_of(tmp_path, *definitions))
        assert found.blocked


async def test_a_project_can_not_weaken_the_operators_hook_by_configuring_it_too(tmp_path: Path) -> None:
    weak = HookDefinition(name="w", tier="project", phase="PreToolUse", command="exit 9", timeout=0.001)
    strong = HookDefinition(name="s", tier="operator", phase="PreToolUse", command="exit 9", on_failure="block")
    for definitions in ((weak, strong), (strong, weak)):
        (found,) = await fire(hooks_of(tmp_path, *definitions))
        assert (found.definition.name, found.on_failure) == ("s", "block")


async def test_background_hooks_never_keep_one_waiting_that_decides(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    held = [hook(f"cat gate > /dev/null; : {n}", background=True) for n in range(20)]
    runner = hooks_of(tmp_path, *held, hook("exit 2"))
    assert [a.blocked for a in await fire(runner)] == [True]
    closing = asyncio.ensure_future(runner.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_what_a_background_hook_came_to_is_told_with_its_firing(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("exit 9", background=True))
    await fire(runner, tool_call_id="call_1")
    assert runner.wants("SessionEnd") and not runner.wants("SessionStart")
    await runner.close()
    assert runner.wants("Stop") and not runner.wants("SessionStart")
    ((call, said),) = runner.late()
    assert call.tool_call_id == "call_1" and "exit code 9" in (said.failure or "")
    assert runner.late() == [] and not runner.wants("Stop")


async def test_a_background_hook_that_is_ended_with_the_session_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.hooks.runner._CLOSING", 0.01)
    runner = hooks_of(tmp_path, hook("sleep 300", background=True))
    await fire(runner)
    await runner.close()
    ((_, said),) = runner.late()
    assert said.failure == "was ended: the session is closed"


@pytest.mark.parametrize("phase", ["PostToolUse", "PermissionDenied"])
async def test_if_looks_at_the_event_where_no_targets_are_named(tmp_path: Path, phase: HookPhase) -> None:
    runner = hooks_of(tmp_path, hook("exit 2", phase=phase, condition="Bash(git *)"))
    assert await fire(runner, {"tool_input": {"command": "git push"}}, phase=phase)
    assert not await fire(runner, {"tool_input": {"command": "ls"}}, phase=phase)
    assert not await fire(runner, {"tool_input": {"command": "git push"}}, phase=phase, targets=Targets(command="ls"))


async def test_if_on_a_path_of_the_event(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("exit 2", phase="PostToolUse", condition="Write(*.py)"))
    for name, fires in (("a.py", True), ("a.txt", False)):
        given = {"tool_name": "Write", "tool_input": {"file_path": str(tmp_path / name)}, "cwd": str(tmp_path)}
        assert bool(await fire(runner, given, phase="PostToolUse", match="Write")) == fires


async def test_a_matcher_on_an_event_without_names_does_not_keep_the_hook_from_firing(tmp_path: Path) -> None:
    runner = hooks_of(tmp_path, hook("exit 2", phase="Stop", matcher="anything"))
    assert await fire(runner, phase="Stop", match=None)
    read = parse_table("Stop", {"command": "x", "matcher": "y", "if": "Bash(ls)"}, tier="user", place="p")
    assert len(read.definitions) == 1 and [fatal for fatal, _ in read.problems] == [False, False]


async def test_the_file_for_variables_is_named_at_the_start_of_a_session_alone(tmp_path: Path) -> None:
    ask = 'test -n "$CLAUDE_ENV_FILE" && exit 2; exit 0'
    variables = SessionVariables(tmp_path / "variables.json", {})
    runner = hooks_of(tmp_path, hook(ask, phase="SessionStart"), hook(ask), variables=variables)
    (start,) = await fire(runner, phase="SessionStart", match="startup")
    (call,) = await fire(runner)
    assert start.blocked and not call.blocked


@pytest.mark.parametrize(
    ("url", "allowed", "yes"),
    [
        ("https://a.example/hook", ["https://a.example/hook"], True),
        ("https://a.example:443/hook?x=1", ["https://a.example/hook"], True),
        ("https://a.example/hooks/one", ["https://a.example/hooks/"], True),
        ("https://a.example/hooks/../admin", ["https://a.example/hooks/"], False),
        ("https://a.example/hooks/%2e%2e/admin", ["https://a.example/hooks/"], False),
        ("https://a.example/hooks-evil", ["https://a.example/hooks"], False),
        ("http://a.example/hook", ["https://a.example/hook"], False),
        ("https://a.example.evil/hook", ["https://a.example/"], False),
        ("https://a.example@evil/", ["https://a.example/"], False),
        ("https://a.example:444/", ["https://a.example/"], False),
        ("https://a.example:bad/", ["https://a.example/"], False),
        ("https://a.example/", [], False),
    ],
)
def test_where_http_hooks_may_post(url: str, allowed: list[str], yes: bool) -> None:
    assert url_allowed(url, allowed) == yes


async def test_a_projects_http_hook_needs_the_operators_or_the_users_word(tmp_path: Path) -> None:
    def http(tier: Any) -> HookDefinition:
        return HookDefinition(name=tier, tier=tier, phase="PreToolUse", kind="http", url="http://127.0.0.1:1/x")

    (alone,) = await fire(hooks_of(tmp_path, http("project")))
    (allowed,) = await fire(hooks_of(tmp_path, http("project"), allowed_urls=["http://127.0.0.1:1/"]))
    (users,) = await fire(hooks_of(tmp_path, http("user")))
    assert "allows this URL" in alone.failure
    assert "ConnectError" in allowed.failure and "ConnectError" in users.failure


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ({"type": ["command"], "command": "x"}, "can't run here"),
        ({"type": "command", "command": "   "}, "needs its `command`"),
        ({"command": "x", "timeout": float("nan")}, "timeout"),
        ({"command": "x", "timeout": float("inf")}, "timeout"),
        ({"command": "x", "timeout": 0}, "timeout"),
        ({"command": "x", "timeout": True}, "bool"),
    ],
)
def test_a_handler_that_can_not_be_kept_is_a_fatal_problem(handler: dict[str, Any], said: str) -> None:
    read = parse_json({"PreToolUse": [{"hooks": [handler]}]}, tier="user", place="s.json")
    assert read.definitions == () and any(fatal and said in text for fatal, text in read.problems)


@pytest.mark.parametrize(
    ("group", "fatal", "said"),
    [
        ({"matcher": "Bash", "command": "x"}, True, "has no `hooks`"),
        ({"mater": "Bash", "hooks": [{"command": "x"}]}, False, "`mater`"),
        ({"hooks": [{"command": "x", "matcher": "Bash"}]}, False, "`matcher`"),
        ({"hooks": [{"type": "command", "command": "x", "url": "u"}]}, False, "`url`"),
    ],
)
def test_settings_that_would_do_something_else_than_they_look_like_are_told(
    group: dict[str, Any], fatal: bool, said: str
) -> None:
    read = parse_json({"PreToolUse": [group]}, tier="user", place="s.json")
    assert any(f is fatal and said in text for f, text in read.problems)
