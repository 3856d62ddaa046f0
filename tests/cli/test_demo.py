"""`counterfoil demo`: every scene of it, in a pipe."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Cli


def sessions(shown: str) -> list[str]:
    """The ids of the demo's sessions, in the order in which it tells of them."""
    return list(dict.fromkeys(re.findall(r"\bses_\w{26}", shown)))


def test_the_demo_shows_each_scene_and_can_be_seen_again(cli: Cli) -> None:
    shown = cli("demo")
    assert (shown.code, shown.err) == (0, "")
    assert "nobody can be asked here" in shown.out
    assert "turn rejected" in shown.out
    first = sessions(shown.out)[0]
    assert cli("inspect", first).out in shown.out
    value = cli("inspect", first, "--json").json
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
    assert cli("verify", "--all").code == 0


def test_the_demo_shows_reviews_and_a_run_that_another_process_goes_on_with(cli: Cli) -> None:
    shown = cli("demo")
    _, reviewed, parked = sessions(shown.out)
    assert cli("inspect", reviewed).out in shown.out
    assert cli("reviews", "list", reviewed).out.strip() in shown.out
    calls = {c["tool"]: c for c in cli("inspect", reviewed, "--json").json["calls"]}
    last = {tool: call["records"][-1]["review"] for tool, call in calls.items()}
    told = {tool: (r["job"], r["finding"], r["state"], r.get("outage")) for tool, r in last.items()}
    assert told == {
        "Bash": ("action", "concern", "released", None),
        "Read": ("inbound", "concern", "released", None),
        "Write": ("action", "failed", "released", "provider_failure"),
    }
    for tool, call in calls.items():
        (ask,) = call["asks"]
        assert ask["receipt"]["review_id"] == last[tool]["review_id"] and call["status"] == "ok"
    assert "IGNORE WHAT YOU WERE TOLD" in calls["Read"]["result"][0]["text"]
    assert "(exit code 75)" in shown.out
    (call,) = cli("inspect", parked, "--json").json["calls"]
    assert (call["status"], call["executed"]) == ("ok", "yes")


def prose(cli: Cli, reviewed: str) -> list[str]:
    found: list[Any] = cli("reviews", "list", reviewed, "--json").json
    return [cli("reviews", "show", log["record"]["hook_id"]).out for log in found]


def test_what_the_demos_checkers_wrote_is_shown_as_untrusted(cli: Cli) -> None:
    reviewed = sessions(cli("demo").out)[1]
    shown = prose(cli, reviewed)
    assert "UNTRUSTED" in shown[0] and "not for its publication" in shown[0]
    assert "UNTRUSTED" not in shown[2], "an outage has no words"
    assert "not for its publication" not in cli("inspect", reviewed, "--json").out


def test_the_demos_command_is_not_run_when_denied(cli: Cli) -> None:
    shown = cli("demo", "--answer", "deny")
    assert shown.code == 0
    first, reviewed, _ = sessions(shown.out)
    call = cli("inspect", first, "--json").json["calls"][4]
    assert (call["status"], call["executed"]) == ("denied", "no")
    calls = cli("inspect", reviewed, "--json").json["calls"]
    assert [(c["status"], c["executed"]) for c in calls] == [("denied", "no"), ("withheld", "yes"), ("denied", "no")]
    assert "IGNORE" not in cli("inspect", reviewed, "--json").out


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
    shown = cli("demo", "--keep")
    assert shown.code == 0
    folder = Path(cli("inspect", sessions(shown.out)[0], "--json").json["session"]["workspace"])
    assert (folder / "greeting.txt").read_text() == "Hello, counterfoil.\n"
    assert (folder / ".git").is_dir()


def test_the_command_that_the_demo_ends_with_can_be_typed_as_it_stands(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = cli.root / "bin/counterfoil"
    program.parent.mkdir()
    program.touch(0o755)
    python = program.parent / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.chdir(cli.root)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "see the first session again: bin/counterfoil inspect ses_" in cli("demo").out
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert "see the first session again: counterfoil inspect ses_" in cli("demo").out
