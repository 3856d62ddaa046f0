"""Hooks and rules from configuration files, through the command line; and what `config check` says of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from counterfoil.service.grants import Grants, StandingGrant
from tests.cli.support import Cli

BASH = {"calls": [{"tool": "Bash", "arguments": {"command": "echo hi"}}]}


def configure(cli: Cli, text: str, *, project: bool = False) -> Path:
    folder = cli.workspace / ".counterfoil" if project else cli.root / "home" / ".config" / "counterfoil"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


def run(cli: Cli, *arguments: str) -> list[dict[str, object]]:
    done = cli("run", "go", "--provider", "scripted", "--script", cli.script(BASH, {"text": "done"}), *arguments)
    assert done.code == 0, done.err
    calls: list[dict[str, object]] = cli("inspect", "last", "--json").json["calls"]
    return calls


def test_a_hook_of_the_users_file_blocks_and_inspect_shows_its_record(cli: Cli) -> None:
    configure(cli, '[[hooks.PreToolUse]]\nmatcher = "Bash"\nname = "guard"\ncommand = "echo no >&2; exit 2"\n')
    (call,) = run(cli, "--mode", "bypass")
    assert (call["status"], call["executed"]) == ("blocked", "no")
    text = cli("inspect", "last", str(call["tool_call_id"])).out
    assert "guard" in text and "blocked" in text and "no" in text


def test_a_hook_of_an_untrusted_project_never_runs_and_that_is_said(cli: Cli) -> None:
    configure(cli, f'[[hooks.PreToolUse]]\ncommand = "touch {cli.root}/ran; exit 2"\n', project=True)
    done = cli(
        "run", "go", "--provider", "scripted", "--script", cli.script(BASH, {"text": "done"}), "--mode", "bypass"
    )
    assert done.code == 0 and "isn't trusted, so this is ignored: 1 hook; `counterfoil trust`" in done.err
    assert not (cli.root / "ran").exists()


def test_a_projects_denies_and_asks_hold_and_its_allows_do_not(cli: Cli) -> None:
    configure(cli, '[permissions]\nallow = ["Bash(echo *)"]\n', project=True)
    assert run(cli)[0]["status"] == "denied", "asked, and in a pipe nobody can answer"
    configure(cli, '[permissions]\nask = ["Bash(echo *)"]\n', project=True)
    assert run(cli, "--allow", "Bash")[0]["status"] == "denied"
    configure(cli, '[permissions]\ndeny = ["Bash(echo *)"]\n', project=True)
    assert "rule Bash(echo *) (project" in str(run(cli, "--mode", "bypass")[0]["result"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[hooks.PreToolUse]]\nmatcher = "("\ncommand = "x"\n', "config.toml:1: hooks.PreToolUse: matcher '('"),
        ('\n[[hooks.Never]]\ncommand = "x"\n', "config.toml:2: hooks.Never: "),
        ('[[hooks.Stop]]\ncommand = "x"\n[[hooks.Stop]]\ntimeout = 3\n', "config.toml:3: hooks.Stop: a hook of type"),
        ('[[hooks.Stop]]\ncommand = "x"\nif = "Bash(("\n', "config.toml:1: hooks.Stop: rule"),
        ('[hooks]\nStop = "x"\n', "hooks.Stop: is written as [[hooks.EVENT]]"),
        ("hooks = 3\n", "hooks: must be a table"),
    ],
)
def test_a_hook_that_can_not_be_kept_is_a_fault_with_its_place(cli: Cli, text: str, said: str) -> None:
    configure(cli, text)
    shown = cli("config", "check")
    assert shown.code == 2 and said in shown.err
    assert cli("run", "go", "--provider", "scripted", "--script", cli.script({"text": "x"})).code == 2


def test_config_check_lists_hooks_and_rules_with_their_lines(cli: Cli) -> None:
    file = configure(cli, '[permissions]\ndeny = ["Bash(rm *)"]\n\n[[hooks.Stop]]\nname = "last word"\ncommand = "x"\n')
    shown = cli("config", "check")
    assert shown.code == 0 and f'"*: command x [last word]"  ({file}:4)' in shown.out and f"({file}:2)" in shown.out


@pytest.mark.parametrize(
    ("call", "flags", "said"),
    [
        ("Bash(git log && rm x)", ("--deny", "Bash(rm *)"), "deny: denied by rule Bash(rm *) (flag --deny): rm x"),
        ("Bash(git log)", ("--allow", "Bash(git log *)"), "allow: allowed by rule Bash(git log *)"),
        ("Read(.env)", ("--deny", "Read(.env)"), "deny: denied by rule Read(.env)"),
        ("Edit(.git/hooks/x)", ("--mode", "accept_edits"), "ask: protected"),
        ("WebFetch(example.com)", (), "ask: reaches example.com"),
        ("mcp__srv__do", ("--deny", "mcp__srv"), "deny: denied by rule mcp__srv"),
    ],
)
def test_config_check_says_what_would_be_decided(cli: Cli, call: str, flags: tuple[str, ...], said: str) -> None:
    shown = cli("config", "check", "--call", call, *flags)
    assert shown.code == 0 and shown.out.startswith(said), shown.out
    assert cli("config", "check", "--call", call, *flags, "--json").json["verdict"] == said.split(":")[0]


def test_r8_a_link_to_a_denied_file_is_denied(cli: Cli) -> None:
    (cli.workspace / ".env").write_text("SECRET=1\n")
    (cli.workspace / "plain.txt").symlink_to(".env")
    for call in ("Read(plain.txt)", "Bash(cat plain.txt)"):
        assert cli("config", "check", "--call", call, "--deny", "Read(.env)", "--mode", "bypass").out.startswith("deny")


def test_what_is_no_call_is_a_usage_error(cli: Cli) -> None:
    for text in ("Bash(git log", "", "TodoWrite(x)"):
        assert cli("config", "check", "--call", text).code == 2


def test_a_rule_learned_for_the_session_is_used_in_the_next_run_of_it_alone(cli: Cli) -> None:
    script = cli.script(BASH, {"text": "done"}, BASH, {"text": "done"})
    options = ("--provider", "scripted", "--script", script)
    assert cli("run", "go", *options, "--ask", "wait").code == 75
    (ask,) = cli("asks", "--json").json
    ask_id = ask["ask"]["ask_id"] if "ask" in ask else ask["ask_id"]
    assert cli("answer", ask_id, "allow", "--scope", "session").code == 0
    assert cli("resume", "last", "--script", script).code == 0
    assert cli("run", "again", "--continue", "--script", script).code == 0
    calls = cli("inspect", "last", "--json").json["calls"]
    assert [c["status"] for c in calls] == ["ok", "ok"] and calls[1]["asks"] == []
    assert "Bash(echo hi)  (session, learned from ask_" in cli("permissions", "list", "--session", "last").out
    assert run(cli)[0]["status"] == "denied", "another session asks again"
    assert "no rule was learned" in cli("permissions", "list", "--session", "last").out


def test_always_is_kept_for_the_folder_listed_and_revoked(cli: Cli) -> None:
    options = ("--provider", "scripted", "--script", cli.script(BASH, {"text": "done"}))
    assert cli("run", "go", *options, "--ask", "wait").code == 75
    assert "no rule was learned" in cli("permissions", "list").out
    (ask,) = cli("asks", "--json").json
    ask_id = ask["ask"]["ask_id"] if "ask" in ask else ask["ask_id"]
    assert cli("answer", ask_id, "allow", "--scope", "always").code == 0
    assert cli("resume", "last", "--script", options[3]).code == 0
    assert run(cli)[0]["status"] == "ok", "another session of the folder isn't asked"
    listed = cli("permissions", "list").out
    assert "Bash(echo hi)" in listed and ask_id in listed
    assert cli("permissions", "revoke", "Bash(echo hi)").code == 0
    assert run(cli)[0]["status"] == "denied"
    assert cli("permissions", "revoke", "Bash(echo hi)").code == 2


def test_always_never_covers_a_deny(cli: Cli) -> None:
    options = ("--provider", "scripted", "--script", cli.script(BASH, {"text": "done"}))
    assert cli("run", "go", *options, "--ask", "wait").code == 75
    (ask,) = cli("asks", "--json").json
    assert (
        cli("answer", ask["ask"]["ask_id"] if "ask" in ask else ask["ask_id"], "allow", "--scope", "always").code == 0
    )
    assert run(cli, "--deny", "Bash(echo *)")[0]["status"] == "denied"


def guarded(cli: Cli) -> Path:
    """A project with a hook script of its own, an allow rule, and a deny rule."""
    script = cli.workspace / "guard.sh"
    script.write_text("touch ran; exit 0\n")
    hook = '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "sh ./guard.sh"\n'
    configure(cli, f'[permissions]\nallow = ["Bash(echo *)"]\ndeny = ["WebFetch"]\n\n{hook}', project=True)
    return script


def test_a_trusted_project_runs_its_hooks_and_its_allow_rules_hold(cli: Cli) -> None:
    guarded(cli)
    assert run(cli)[0]["status"] == "denied" and not (cli.workspace / "ran").exists()
    shown = cli("trust", "--yes")
    assert shown.code == 0 and "sh ./guard.sh" in shown.out and "Bash(echo *)" in shown.out
    assert run(cli)[0]["status"] == "ok" and (cli.workspace / "ran").exists()
    assert "it is trusted as it is" in cli("trust").out and str(cli.workspace) in cli("trust", "--list").out
    assert cli("trust", "--revoke").code == 0
    assert run(cli)[0]["status"] == "denied"


@pytest.mark.parametrize("change", ["script", "config"])
def test_a_change_of_what_was_trusted_asks_again(cli: Cli, change: str) -> None:
    script = guarded(cli)
    assert cli("trust", "--yes").code == 0
    if change == "script":
        script.write_text("touch stolen\n")
    else:
        configure(cli, '[[hooks.PreToolUse]]\ncommand = "touch stolen"\n', project=True)
    assert run(cli)[0]["status"] == "denied"
    assert not (cli.workspace / "stolen").exists()
    assert "not trusted" in cli("trust").err or cli("trust").code == 2


def test_trust_never_covers_where_keys_go_and_never_bypass(cli: Cli) -> None:
    text = '[permissions]\nmode = "bypass"\n[providers.openai]\nwire = "openai"\nbase_url = "http://127.0.0.1:1/v1"\n'
    configure(cli, text, project=True)
    assert cli("trust", "--yes").code == 0
    shown = cli("config", "check").out
    assert '"bypass"' not in shown and "127.0.0.1:1" not in shown
    assert run(cli)[0]["status"] == "denied"


def test_in_a_pipe_trust_needs_a_word(cli: Cli) -> None:
    guarded(cli)
    shown = cli("trust")
    assert shown.code == 2 and "--yes" in shown.err
    assert cli("trust", "--list").out == ""


def test_a_revoked_rule_holds_no_more_in_the_session_that_learned_it(cli: Cli) -> None:
    script = cli.script(BASH, {"text": "done"}, BASH, {"text": "done"})
    assert cli("run", "go", "--provider", "scripted", "--script", script, "--ask", "wait").code == 75
    (ask,) = cli("asks", "--json").json
    ask_id = ask["ask"]["ask_id"] if "ask" in ask else ask["ask_id"]
    assert cli("answer", ask_id, "allow", "--scope", "always").code == 0
    assert cli("resume", "last", "--script", script).code == 0
    assert cli("permissions", "revoke", "Bash(echo hi)").code == 0
    assert cli("run", "again", "--continue", "--script", script).code == 0
    calls = cli("inspect", "last", "--json").json["calls"]
    assert [c["status"] for c in calls] == ["ok", "denied"]


def test_a_rule_of_a_session_is_listed_with_it_and_revoked_there(cli: Cli) -> None:
    script = cli.script(BASH, {"text": "done"}, BASH, {"text": "done"})
    assert cli("run", "go", "--provider", "scripted", "--script", script, "--ask", "wait").code == 75
    (ask,) = cli("asks", "--json").json
    ask_id, session = ask["ask"]["ask_id"], ask["ask"]["origin_session_id"]
    assert cli("answer", ask_id, "allow", "--scope", "session").code == 0
    assert cli("resume", "last", "--script", script).code == 0
    learned = {"rule": "Bash(echo hi)", "scope": "session", "ask_id": ask_id, "session_id": session, "learned_at": None}
    assert cli("permissions", "list", "--json").json == [learned]
    assert session in cli("permissions", "list").out
    assert cli("permissions", "list", "--workspace", str(cli.root / "home"), "--json").json == []
    wrong = cli("permissions", "revoke", "Bash(echo hi)")
    assert wrong.code == 2 and "--session" in wrong.err

    assert cli("permissions", "revoke", "Bash(echo hi)", "--session", session).out == "revoked: Bash(echo hi)\n"
    assert cli("permissions", "list", "--json").json == []
    assert cli("run", "again", "--continue", "--script", script).code == 0
    assert [c["status"] for c in cli("inspect", "last", "--json").json["calls"]] == ["ok", "denied"]
    changes = [line["event"] for line in cli("sessions", "export", session).lines]
    (change,) = [e for e in changes if e["kind"] == "grant.changed" and e.get("revoked")]
    assert change["decided_by"]["kind"] == "local" and change["ask_id"] == ask_id
    again = cli("permissions", "revoke", "Bash(echo hi)", "--session", session)
    assert again.code == 2 and f"was not learned for session {session}" in again.err


def test_a_session_that_cannot_be_read_hides_no_learned_rule(cli: Cli) -> None:
    cli("run", "go", "--script", cli.script({"text": "done"}))
    with sqlite3.connect(cli.state / "counterfoil.db") as db:
        db.execute("update events set recorded_at='then'")
    Grants(cli.state).add(str(cli.workspace), StandingGrant(rule="Bash(ls)"))
    listed = cli("permissions", "list")
    assert listed.code == 0 and "Bash(ls)" in listed.out and "can't be read" in listed.err


def test_a_rule_over_a_tool_that_is_not_there_and_a_file_that_is_not_read_are_said(cli: Cli) -> None:
    configure(cli, '[permissions]\ndeny = ["Wriet", "Bash", "mcp__x"]\n', project=True)
    shown = cli("config", "check")
    assert "'Wriet' names no tool" in shown.err
    assert "mcp__x'" not in shown.err and "'Bash'" not in shown.err
    below = cli.workspace / "part"
    below.mkdir()
    shown = cli("config", "check", "--workspace", str(below))
    assert "isn't read: the workspace is" in shown.err and f"--workspace {cli.workspace}" in shown.err


def test_a_host_written_so_that_a_rule_could_miss_it_is_no_host(cli: Cli) -> None:
    shown = cli("config", "check", "--call", "WebFetch(http://ev%69l.com/x)", "--allow", "WebFetch(domain:ev%69l.com)")
    assert shown.code == 2 or not shown.out.startswith("allow"), shown


def test_a_dropped_prompt_is_no_success(cli: Cli) -> None:
    configure(cli, '[[hooks.UserPromptSubmit]]\ncommand = "echo nope >&2; exit 2"\n')
    done = cli("run", "go", "--provider", "scripted", "--script", cli.script({"text": "done"}))
    assert (done.code, done.out) == (1, "") and "nope" in done.err
