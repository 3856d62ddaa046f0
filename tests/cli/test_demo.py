"""`counterfoil demo`: every scene of it, in a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.support import Cli


def test_the_demo_shows_each_scene_and_can_be_seen_again(cli: Cli) -> None:
    shown = cli("demo")
    assert (shown.code, shown.err) == (0, "")
    assert "nobody can be asked here" in shown.out
    assert "turn rejected" in shown.out
    again = cli("inspect", "last")
    assert again.out in shown.out
    value = cli("inspect", "last", "--json").json
    calls = value["calls"]
    assert [c["tool"] for c in calls] == ["Read", "Read", "Glob", "Edit", *["Bash"] * 5]
    assert [c["status"] for c in calls] == [*["ok"] * 6, "blocked", "denied", "ok"]
    assert len({c["tool_call_id"] for c in calls}) == 9
    assert "the greeting is right" in calls[4]["result"][0]["text"]
    assert calls[4]["asks"][0]["receipt"]["decided_by"] == {"kind": "policy", "name": "demo in a pipe"}
    rewritten, blocked, denied, again_asked = calls[5:]
    assert rewritten["effective"] == {"command": "cat -n greeting.txt", "description": "Show the greeting"}
    assert "1\tHello, counterfoil." in rewritten["result"][0]["text"]
    assert (blocked["executed"], denied["executed"]) == ("no", "no")
    assert "nothing is removed in the demo" in blocked["result"][0]["text"]
    assert "rule Bash(curl *)" in denied["result"][0]["text"] and denied["records"] == []
    assert again_asked["asks"] == [], "the rule that was learned from the first answer allows it"
    assert not Path(value["session"]["workspace"]).exists()
    assert cli("verify", "last").code == 0


def test_the_demos_command_is_not_run_when_denied(cli: Cli) -> None:
    assert cli("demo", "--answer", "deny").code == 0
    call = cli("inspect", "last", "--json").json["calls"][4]
    assert (call["status"], call["executed"]) == ("denied", "no")


def test_the_demo_runs_without_git(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = cli.root / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "grep"):
        found = next(Path(p) / name for p in os.environ["PATH"].split(":") if (Path(p) / name).exists())
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    shown = cli("demo")
    assert shown.code == 0
    assert "git isn't installed" in shown.out


def test_the_demos_workspace_is_kept_when_asked(cli: Cli) -> None:
    assert cli("demo", "--keep").code == 0
    folder = Path(cli("inspect", "last", "--json").json["session"]["workspace"])
    assert (folder / "greeting.txt").read_text() == "Hello, counterfoil.\n"
    assert (folder / ".git").is_dir()


def test_the_command_that_the_demo_ends_with_can_be_typed_as_it_stands(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = cli.root / "bin/counterfoil"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(program.parent / "python"))
    monkeypatch.chdir(cli.root)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "see it again: bin/counterfoil inspect ses_" in cli("demo").out
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert "see it again: counterfoil inspect ses_" in cli("demo").out
