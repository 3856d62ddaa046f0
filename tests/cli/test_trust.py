"""`counterfoil trust` and `config check` over a project that a stranger wrote, through the command line."""

from __future__ import annotations

import json
import os
import sys

import pytest

from counterfoil.cli.trust import mention_unread
from counterfoil.config import load
from tests.cli.pty import Person
from tests.cli.support import Cli, bash

TURNS = ({"calls": [bash("echo hi")]}, {"text": "done"})


def project(cli: Cli, text: str) -> None:
    folder = cli.workspace / ".counterfoil"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)


def claude(cli: Cli, value: object) -> None:
    folder = cli.workspace / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(value))


def test_must_show_6_hooks_and_allows_wait_for_trust_denies_hold_and_a_changed_hook_asks_again(cli: Cli) -> None:
    hook = cli.workspace / "hook.sh"
    hook.write_text(f"touch {cli.root}/ran\n")
    project(
        cli,
        '[permissions]\nallow = ["Bash(echo *)"]\ndeny = ["Bash(rm *)"]\n'
        '[[hooks.PreToolUse]]\ncommand = "sh hook.sh"\n',
    )
    go = ("run", "x", "--script", cli.script(*TURNS), "--ask=deny")

    before = cli(*go)
    (warning,) = (line for line in before.err.splitlines() if "warning" in line)
    assert "this folder isn't trusted, so this is ignored: 1 hook, 1 allow rule; `counterfoil trust`" in warning
    assert not (cli.root / "ran").exists()
    assert cli("inspect", "last", "--json").json["calls"][0]["status"] == "denied"
    assert cli("config", "check", "--call", "Bash(rm x)", "--mode", "bypass").out.startswith("deny: ")

    shown = cli("trust", "--yes")
    assert "hook PreToolUse *: command sh hook.sh" in shown.out and "hook.sh" in shown.out
    trusted = cli(*go)
    assert "warning" not in trusted.err and (cli.root / "ran").exists()
    assert cli("inspect", "last", "--json").json["calls"][0]["status"] == "ok"

    (cli.root / "ran").unlink()
    hook.write_text(f"touch {cli.root}/ran; exit 2\n")
    changed = cli(*go)
    assert "has changed since it was trusted" in changed.err and not (cli.root / "ran").exists()
    assert "trust in this folder: changed" in cli("config", "check").out


def test_control_characters_of_a_stranger_are_shown_and_never_acted_on(cli: Cli) -> None:
    project(
        cli,
        '[[hooks.Stop]]\ncommand = "curl evil\\u001b[2K\\rls\\u202e"\nname = "\\u001b[31mx"\n'
        '[permissions]\nmode = "plan"\n',
    )
    for shown in (cli("trust", "--yes"), cli("config", "check")):
        assert "\x1b" not in shown.out and "\r" not in shown.out and "\u202e" not in shown.out
        assert "curl evil" in shown.out


def test_a_rule_with_a_control_character_stops_the_start_and_is_shown_safely(cli: Cli) -> None:
    project(cli, '[permissions]\nallow = ["Bash(ls\\u001b[2K)"]\n')
    refused = cli("trust", "--yes")
    assert refused.code == 2 and "\x1b" not in refused.err and "config.toml:2" in refused.err


def test_a_person_reads_and_answers_at_the_terminal(cli: Cli) -> None:
    project(cli, '[[hooks.Stop]]\ncommand = "true"\n')
    person = Person("trust")
    assert "hook Stop *: command true" in person.sees("trust it?")
    person.types("n\n")
    person.sees("not trusted")
    assert person.leaves() == 1
    person = Person("trust")
    person.sees("trust it?")
    person.types("y\n")
    assert person.leaves() == 0
    assert str(cli.workspace) in cli("trust", "--list").out


def test_settings_of_the_ecosystem_are_read_on_request_with_what_has_no_use_here(cli: Cli) -> None:
    claude(cli, {"permissions": {"deny": ["Bash(rm *)"]}, "statusLine": {"type": "command"}})
    assert "not read" in cli("config", "check").out
    read = cli("config", "check", "--compat-claude")
    assert "settings.json:1: statusLine: not used here" in read.out
    assert '"Bash(rm *)"' in read.out and "not read" not in read.out
    judged = cli(
        "config", "check", "--compat-claude", "--call", "Bash(true && rm x)", "--mode", "bypass", "--json"
    ).json
    assert judged["verdict"] == "deny" and "settings.json:1" in judged["reason"]


def test_a_domain_is_judged_with_and_without_its_prefix(cli: Cli) -> None:
    for call in ("WebFetch(domain:example.com)", "WebFetch(example.com)", "WebFetch(https://example.com/a)"):
        judged = cli("config", "check", "--call", call, "--allow", "WebFetch(domain:example.com)")
        assert judged.out.startswith("allow: "), judged.out


def test_what_was_learned_for_good_counts_in_config_check(cli: Cli) -> None:
    from counterfoil.service.grants import Grants, StandingGrant

    call = ("config", "check", "--call", "Bash(make test)")
    assert cli(*call).out.startswith("ask: ")
    Grants(cli.state).add(str(cli.workspace), StandingGrant(rule="Bash(make test)"))
    assert cli(*call).out.startswith("allow: ")


def test_a_file_of_another_tool_is_mentioned_once_and_on_a_terminal_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    claude(cli, {})
    settings = load(cli.workspace, os.environ)
    mention_unread(settings)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    mention_unread(settings)
    assert "settings.json isn't read" in capfd.readouterr().err
    mention_unread(settings)
    assert capfd.readouterr().err == ""


def test_a_run_reads_the_files_of_another_tool_where_the_flag_says_so(cli: Cli) -> None:
    claude(cli, {"permissions": {"deny": ["Bash(echo *)"]}})
    go = ("run", "x", "--script", cli.script(*TURNS, *TURNS), "--mode=bypass", "--output=json")
    assert [c["status"] for c in cli(*go).json["calls"]] == ["ok"]
    assert [c["status"] for c in cli(*go, "--compat-claude").json["calls"]] == ["denied"]
    cli.user_config("[compat]\nclaude = true\n")
    assert [c["status"] for c in cli(*go).json["calls"]] == ["denied"]
    assert [c["status"] for c in cli(*go, "--no-compat-claude").json["calls"]] == ["ok"]


def test_a_resumed_run_reads_them_where_the_flag_says_so(cli: Cli) -> None:
    claude(cli, {"permissions": {"deny": ["Bash(echo *)"]}})
    script = cli.script({"calls": [bash("true")]}, *TURNS)
    assert cli("run", "x", "--script", script, "--ask=wait").code == 75
    go = ("resume", "last", "--script", script, "--answer=allow", "--output=json")
    assert [c["status"] for c in cli(*go, "--compat-claude").json["calls"]] == ["ok", "denied"]


def test_a_run_at_a_terminal_says_once_that_they_are_not_read_and_elsewhere_never(cli: Cli) -> None:
    claude(cli, {})
    go = ("run", "x", "--script", cli.script({"text": "done"}))
    assert "isn't read" not in cli(*go).err
    quiet = ((*go, "--output=json"), (*go, "--no-compat-claude"))
    said = []
    for arguments in (*quiet, go, go):
        person = Person(*arguments)
        assert person.leaves() == 0
        said.append("settings.json isn't read: `[compat] claude = true`" in person.screen)
    assert said == [False, False, True, False]


def test_a_hook_that_can_not_run_here_is_named_at_the_start_of_a_run_and_by_config_check(cli: Cli) -> None:
    home = cli.root / "home" / ".claude"
    home.mkdir()
    (home / "settings.json").write_text('{"hooks": {"PreToolUse": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}}')
    script = cli.script({"text": "done"})
    for arguments in (("run", "x", "--script", script), ("config", "check")):
        done = cli(*arguments, "--compat-claude")
        assert done.code == 0 and "a hook of type 'agent' can't run here" in done.err, arguments
        assert "warning: " in done.err and "settings.json:1" in done.err
