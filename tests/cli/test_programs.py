"""`--ask=command:PROGRAM`: a program decides, and whatever goes wrong with it is no approval."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Cli, Result, bash
from tests.support.processes import runs

SAY = {"text": "All is done."}


def program(cli: Cli, text: str, name: str = "decider") -> str:
    """The option for a program of this Python text."""
    path = cli.root / name
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{text}\n")
    path.chmod(0o755)
    return f"--ask=command:{shlex.quote(str(path))}"


def go(cli: Cli, *options: str, command: str = "touch made") -> Result:
    return cli("run", "x", "--script", cli.script({"calls": [bash(command)]}, SAY), "--output=json", *options)


def receipt_of(result: Result) -> Any:
    return result.json["calls"][0]["asks"][0]["receipt"]


@pytest.mark.parametrize("printed", ["allow", " allow\\n\\n", '{"verdict": "allow"}', '{"verdict":"allow","more":1}'])
def test_a_program_allows_in_its_own_name(cli: Cli, printed: str) -> None:
    result = go(cli, program(cli, f"print('{printed}')"))
    assert result.code == 0
    assert receipt_of(result)["decided_by"] == {"kind": "program", "name": "decider"}
    assert (cli.workspace / "made").exists()


def test_a_program_denies_with_a_note_and_gets_the_ask_as_it_is_shown(cli: Cli) -> None:
    text = "ask = json.load(sys.stdin); open('asked', 'w').write(json.dumps(ask))\n"
    text += "print(json.dumps({'verdict': 'deny', 'note': 'not ' + ask['arguments']['command']}))"
    result = go(cli, program(cli, text))
    receipt = receipt_of(result)
    assert (receipt["verdict"], receipt["note"]) == ("deny", "not touch made")
    asked = json.loads((cli.workspace / "asked").read_text())
    shown = result.json["calls"][0]["asks"][0]["ask"]
    assert asked == {name: shown[name] for name in asked}
    assert {"ask_id", "tool", "arguments", "arguments_digest", "reason", "tool_call_id"} <= set(asked)
    assert not (cli.workspace / "made").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pass", "printed neither allow nor deny"),
        ("print('allow it')", "printed neither"),
        ("print('ALLOW')", "printed neither"),
        ("print('allow'); print('deny')", "printed neither"),
        ('print(\'{"verdict": "release"}\')', "printed neither"),
        ("sys.stdout.buffer.write(b'\\xff\\xfe')", "printed neither"),
        ("print('[' * 10000)", "printed neither"),
        ("print('allow' + ' ' * 20000)", "more than 16384 bytes"),
        ("print('allow'); sys.exit(3)", "exit code 3"),
        ("print('allow', flush=True); os.kill(os.getpid(), 9)", "signal 9"),
        ("print('allow', flush=True); time.sleep(600)", "within 0.5 s"),
        ("while True: print('allow')", "more than 16384 bytes"),
        ("print(json.dumps({'verdict': 'deny', 'note': 'n' * 5000}))", "longer than 4000"),
    ],
)
def test_whatever_else_a_program_does_leaves_the_question_open(cli: Cli, text: str, why: str) -> None:
    timeout = "0.5" if "sleep" in text else "30"
    result = go(cli, program(cli, text), "--ask-timeout", timeout)
    assert result.code == 75
    assert "decider gave no answer to ask_" in result.err and why in result.err
    assert not (cli.workspace / "made").exists()
    assert [one["state"] for one in cli("asks", "--json").json] == ["open"]


def test_what_a_program_started_is_gone_and_may_not_hold_up_the_answer(cli: Cli) -> None:
    text = "pid = os.fork()\nif not pid: time.sleep(600)\nopen('child', 'w').write(str(pid)); print('deny', flush=True)"
    result = go(cli, program(cli, text))
    assert receipt_of(result)["verdict"] == "deny"
    assert not runs(int((cli.workspace / "child").read_text()))


def test_a_program_sees_no_secrets(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-programs")
    monkeypatch.setenv("MY_TOKEN", "not-for-programs")
    go(cli, program(cli, "open('env', 'w').write(repr(dict(os.environ))); print('deny')"))
    assert "not-for-programs" not in (cli.workspace / "env").read_text()
    assert "HOME" in (cli.workspace / "env").read_text()


def test_a_program_has_arguments_and_is_found_by_name(cli: Cli) -> None:
    result = go(cli, "--ask=command:echo deny")
    assert receipt_of(result)["decided_by"] == {"kind": "program", "name": "echo"}


@pytest.mark.parametrize("value", ["command:", "command:no-such-program-here", "command:'", "perhaps", "", "command"])
def test_what_cannot_decide_is_refused_before_anything_runs(cli: Cli, value: str) -> None:
    assert go(cli, f"--ask={value}").code == 2
    assert cli("sessions", "list", "--json").json == []


def test_a_program_decides_in_resume_too(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    assert cli("run", "x", "--script", script, "--ask=wait").code == 75
    assert cli("resume", "last", "--script", script, "--ask=command:echo allow").code == 0
    assert (cli.workspace / "made").exists()


def test_an_answer_from_elsewhere_stops_the_program(cli: Cli) -> None:
    option = program(cli, "open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'ready'); time.sleep(600)")
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    process = cli.start("run", "x", "--script", script, option, "--mode=default")
    ready = Path(cli.workspace / "ready")
    while not ready.exists():
        assert process.poll() is None
    (ask,) = cli("asks", "--json").json
    assert cli("answer", ask["ask"]["ask_id"], "allow").code == 0
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"All is done.\n")
    assert b"answered elsewhere: allow" in err
    assert not runs(int(ready.read_text()))


def test_ctrl_c_stops_the_program(cli: Cli) -> None:
    option = program(cli, "open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'ready'); time.sleep(600)")
    process = cli.start("run", "x", "--script", cli.script({"calls": [bash("touch made")]}, SAY), option)
    ready = Path(cli.workspace / "ready")
    while not ready.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not runs(int(ready.read_text()))
