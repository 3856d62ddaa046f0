"""`counterfoil run` and `resume`: outputs, questions, exit codes, patches, signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import Cli, bash

SAY = {"text": "All done.\nReally."}


def test_text_is_the_answer_alone(cli: Cli) -> None:
    result = cli("run", "hello", "--script", cli.script({"text": "I look", "calls": [bash("true")]}, SAY), "--ask=deny")
    assert (result.code, result.out, result.err) == (0, "All done.\nReally.\n", "")


def test_json_is_one_object_with_every_field(cli: Cli) -> None:
    script = cli.script({"calls": [bash("echo hi")]}, SAY)
    result = cli("run", "hello", "--script", script, "--mode", "bypass", "--output", "json")
    value = result.json
    assert result.code == 0
    assert (value["stop_reason"], value["text"], value["error"]) == ("end_turn", "All done.\nReally.", None)
    (call,) = value["calls"]
    assert (call["tool"], call["status"], call["executed"]) == ("Bash", "ok", "yes")
    assert (call["records"], call["effective"], call["origin_session_id"]) == ([], None, value["session_id"])
    assert value["usage"]["requests"] == 2


def test_jsonl_is_every_envelope_from_the_first_to_the_last(cli: Cli) -> None:
    result = cli("run", "hello", "--script", cli.script(SAY), "--output", "jsonl")
    kinds = [line["event"]["kind"] for line in result.lines]
    assert (kinds[0], kinds[-1]) == ("session.created", "run.finished")
    assert "message.delta" in kinds
    offsets = [line["offset"] for line in result.lines if "offset" in line]
    assert offsets == list(range(1, len(offsets) + 1))


def test_what_is_denied_is_not_run_and_says_so(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    (call,) = cli("run", "x", "--script", script, "--ask=deny", "--output", "json").json["calls"]
    assert (call["status"], call["executed"]) == ("denied", "no")
    assert call["asks"][0]["receipt"]["decided_by"] == {"kind": "policy", "name": "--ask=deny"}
    assert not (cli.workspace / "made").exists()
    cli("run", "x", "--script", script, "--allow", "Bash")
    assert (cli.workspace / "made").exists()


def test_a_deny_rule_wins_over_an_allow_rule(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    value = cli("run", "x", "--script", script, "--allow", "Bash", "--deny", "Ba*", "--output", "json").json
    assert value["calls"][0]["status"] == "denied"
    assert not (cli.workspace / "made").exists()


def test_a_parked_run_is_answered_and_goes_on_in_other_processes(cli: Cli) -> None:
    script = cli.script({"calls": [bash("echo once >> made")]}, SAY)
    parked = cli("run", "x", "--script", script, "--ask=wait", "--output", "json")
    assert parked.code == 75
    assert parked.json["parked"] is True
    assert parked.json["stop_reason"] is None
    (ask,) = cli("asks", "--json").json
    assert ask["ask"]["ask_id"] == parked.json["asks"][0]["ask_id"]
    assert cli("resume", "last", "--script", script, "--ask=wait").code == 75
    answered = cli("answer", ask["ask"]["ask_id"], "allow", "--note", "go on")
    assert answered.code == 0
    assert "resume" in answered.out
    assert cli("answer", ask["ask"]["ask_id"], "allow").code == 1
    resumed = cli("resume", "last", "--script", script)
    assert (resumed.code, resumed.out) == (0, "All done.\nReally.\n")
    assert (cli.workspace / "made").read_text() == "once\n"
    assert cli("asks").out == "no open asks\n"
    assert cli("resume", "last", "--script", script).code == 1


def test_resume_answers_the_open_question_by_flag(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch one")]}, {"calls": [bash("touch two")]}, SAY)
    assert cli("run", "x", "--script", script, "--ask=wait").code == 75
    value = cli("resume", "last", "--script", script, "--answer=deny", "--output=json").json
    assert [c["status"] for c in value["calls"]] == ["denied", "denied"]
    assert not (cli.workspace / "one").exists()


@pytest.mark.parametrize(("way", "code"), [(["--continue"], 0), (["--resume", "last"], 0)])
def test_a_session_goes_on_with_a_new_prompt(cli: Cli, way: list[str], code: int) -> None:
    script = cli.script({"text": "one"}, {"text": "two"})
    first = cli("run", "x", "--script", script, "--output", "json").json
    second = cli("run", "y", "--script", script, "--output", "json", *way)
    assert second.code == code
    assert second.json["session_id"] == first["session_id"]
    assert second.json["text"] == "two"
    assert second.json["calls"] == []


def test_continue_is_about_this_folder(cli: Cli) -> None:
    script = cli.script(SAY)
    cli("run", "x", "--script", script)
    (cli.root / "other").mkdir()
    result = cli("run", "y", "--script", script, "--continue", "--workspace", str(cli.root / "other"))
    assert result.code == 2
    assert "no session was made in" in result.err


def test_the_prompt_comes_from_arguments_and_standard_input(cli: Cli, tmp_path: Path) -> None:
    def prompt_of(*arguments: str, stdin: bytes) -> str:
        cli("run", *arguments, "--script", cli.script(SAY), stdin=stdin)
        entries = cli("inspect", "last", "--json").json["entries"]
        return str(entries[0]["parts"][0]["text"])

    assert prompt_of(stdin=b"piped") == "piped"
    assert prompt_of("-", stdin=b"dashed") == "dashed"
    assert prompt_of("-", stdin=b"not \xff text") == "not \ufffd text"
    given = tmp_path / "given"
    given.write_text("log lines")
    with given.open("rb") as file:
        process = cli.start("run", "explain", "--script", cli.script(SAY), stdin=file)
        assert process.wait(30) == 0
    process.communicate()
    entries = cli("inspect", "last", "--json").json["entries"]
    assert entries[0]["parts"][0]["text"] == "explain\n\nlog lines"


def test_limits_end_a_run_with_its_reason(cli: Cli) -> None:
    script = cli.script(*[{"calls": [{"tool": "Glob", "arguments": {"pattern": f"*{n}"}}]} for n in range(5)], SAY)
    result = cli("run", "x", "--script", script, "--max-turns", "2")
    assert (result.code, result.out) == (1, "")
    assert "the limit is 2" in result.err
    assert len(result.err.splitlines()) == 1


def test_a_failing_provider_ends_in_one_line(cli: Cli) -> None:
    turn = {"error": {"kind": "auth", "message": "the key is wrong", "permanent": True}}
    result = cli("run", "x", "--script", cli.script(turn))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("counterfoil: ")
    assert "the key is wrong" in result.err
    assert len(result.err.splitlines()) == 1
    value = cli("run", "x", "--script", cli.script(turn), "--output", "json").json
    assert value["stop_reason"] == "provider_error"
    assert value["error"]["permanent"] is True


# ---- patches ----------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout


def test_a_patch_holds_what_the_run_changed_and_nothing_else(cli: Cli) -> None:
    git(cli.workspace, "init", "-q")
    for name, text in {"kept": "old\n", "mine": "mine\n", "gone": "gone\n", ".gitignore": "ignored\n"}.items():
        (cli.workspace / name).write_text(text)
    git(cli.workspace, "add", "-A")
    git(cli.workspace, "commit", "-q", "-m", "begin")
    (cli.workspace / "mine").write_text("mine, changed before the run\n")
    (cli.workspace / "untracked").write_text("mine too\n")
    before = git(cli.workspace, "status", "--porcelain=v2")
    objects = sorted((cli.workspace / ".git/objects").rglob("*"))
    command = "echo new > kept; rm gone; printf '\\000\\001' > binary; echo x > ignored; mkdir d; echo n > 'd/new file'"
    patch = cli.root / "run.patch"
    script = cli.script({"calls": [bash(command)]}, SAY)
    assert cli("run", "x", "--script", script, "--mode=bypass", "--patch", str(patch)).code == 0
    assert sorted((cli.workspace / ".git/objects").rglob("*")) == objects
    text = patch.read_text()
    assert {line.split()[-1] for line in text.splitlines() if line.startswith("diff --git")} == {
        "b/kept",
        "b/gone",
        "b/binary",
        'file"' if '"b/d/new file"' in text else "file",
    }
    git(cli.workspace, "apply", "-R", str(patch))
    assert git(cli.workspace, "status", "--porcelain=v2") == before


def test_a_patch_without_git_is_refused_before_anything_runs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    arguments = ("run", "x", "--script", script, "--mode=bypass", "--patch", str(cli.root / "p"))
    outside = cli(*arguments)
    assert (outside.code, outside.out) == (2, "")
    assert "needs a git repository" in outside.err
    monkeypatch.setenv("PATH", str(cli.root))
    without = cli(*arguments)
    assert without.code == 2
    assert "git isn't installed" in without.err
    assert len(without.err.splitlines()) == 1
    assert not (cli.workspace / "made").exists()
    assert cli("sessions", "list").out == "no sessions\n"


# ---- signals and pipes ------------------------------------------------------------------------------------------


def _until(condition: Path) -> None:
    end = time.monotonic() + 30
    while not condition.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_first_interrupt_records_what_was_done(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch begun; sleep 100")]}, SAY)
    process = cli.start("run", "x", "--script", script, "--mode=bypass", "--output=json")
    _until(cli.workspace / "begun")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    value = json.loads(out)
    assert value["stop_reason"] == "cancelled"
    assert value["calls"][0]["status"] == "cancelled"
    assert b"Traceback" not in err
    assert cli("verify", "last").code == 0
    assert cli("run", "go on", "--script", script, "--continue").code == 0


def test_the_second_interrupt_ends_the_process_at_once(cli: Cli) -> None:
    script = cli.script({"calls": [bash("trap '' INT TERM; echo $$ > pid; mv pid begun; sleep 100")]}, SAY)
    process = cli.start("run", "x", "--script", script, "--mode=bypass")
    _until(cli.workspace / "begun")
    group = int((cli.workspace / "begun").read_text())
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert _ended(group)


def _ended(group: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        if all("\nState:\tZ" in status for status in _statuses(group)):
            return True
        time.sleep(0.05)
    return False


def _statuses(group: int) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(path.parent.name)) == group:
                found.append(path.read_text())
    return found


def test_nobody_reading_any_more_is_quiet(cli: Cli) -> None:
    script = cli.script(*[{"text": "x" * 1000, "calls": [bash("true")]} for _ in range(200)], SAY)
    process = cli.start("run", "x", "--script", script, "--mode=bypass", "--output=jsonl")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(30) == 1
    shown = cli.start("sessions", "export", "last")
    assert shown.stdout is not None
    assert shown.stderr is not None
    shown.stdout.close()
    assert shown.stderr.read() == b""
    assert cli("inspect", "last", "--json").json["session"]["status"] == "cancelled"


def test_a_scripted_provider_of_the_configuration_needs_no_flag(cli: Cli) -> None:
    script = cli.script({"text": "from the file"})
    config = cli.root / "home" / ".config" / "counterfoil" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[providers.play]\nwire = "scripted"\nbase_url = "{script}"\n[model]\nprovider = "play"\n')
    shown = cli("run", "go", "--model", "m")
    assert (shown.code, "from the file" in shown.out) == (0, True), shown.err
