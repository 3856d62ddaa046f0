"""`--connect`: the same commands at a server, which is a real process, over each of its doors."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from counterfoil.client.connect import connect, token_of
from counterfoil.errors import UsageError
from tests.cli.support import Cli, bash, one_line
from tests.support.server import Server

SCRIPT = {"turns": [{"text": "I look.", "calls": [bash("echo ran >> runs.txt")]}, {"text": "All done."}]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    home = tmp_path / "server"
    home.mkdir()
    made = Server(home, SCRIPT, "--grpc-port", "0")
    yield made
    made.end()


@pytest.fixture(params=["http", "grpc"])
def url(request: pytest.FixtureRequest, server: Server) -> str:
    return server.url if request.param == "http" else f"grpc://{server.grpc}"


def runs(tmp_path: Path) -> str:
    file = tmp_path / "server" / "w" / "runs.txt"
    return file.read_text() if file.exists() else ""


def test_a_prompt_a_question_an_answer_and_what_is_found_afterwards(cli: Cli, url: str, tmp_path: Path) -> None:
    parked = cli("run", "go", "--ask", "wait", "--connect", url)
    assert parked.code == 75 and "answer ask_" in parked.err and f"--connect {url}" in parked.err
    (found,) = cli("asks", "--json", "--connect", url).json
    ask = found["ask"]["ask_id"]
    assert ask in parked.err and runs(tmp_path) == ""
    assert cli("asks", "--connect", url).out.startswith(ask)
    answered = cli("answer", ask, "allow", "--key", "k", "--connect", url)
    assert answered.code == 0 and answered.out.startswith(f"allow: {ask} for {found['ask']['tool_call_id']}")
    again = cli("answer", ask, "allow", "--key", "k", "--connect", url)
    assert again.code == 0, "the same answer is one answer"
    assert "is settled: allow by" in one_line(cli("answer", ask, "deny", "--connect", url))

    resumed = cli("resume", "last", "--connect", url)
    assert resumed.code in (0, 1), resumed.err  # it may be over by now
    (session,) = cli("sessions", "list", "--json", "--connect", url).json
    (call,) = cli("inspect", "last", "--json", "--connect", url).json["calls"]
    assert (call["tool_call_id"], call["status"]) == (found["ask"]["tool_call_id"], "ok")
    assert runs(tmp_path) == "ran\n"
    assert "All done." in cli("sessions", "show", session["session_id"][:12], "--connect", url).out
    lines = cli("export", "last", "--connect", url).lines
    assert lines[0]["event"]["kind"] == "session.created" and lines[-1]["event"]["kind"] == "run.finished"
    assert "<html" in cli("export", "last", "--html", "--connect", url).out
    copy = cli("sessions", "fork", "last", "--title", "copy", "--connect", url).out.strip()
    assert cli("sessions", "rename", copy, "again", "--connect", url).code == 0
    assert "again" in cli("sessions", "list", "--connect", url).out
    assert cli("sessions", "delete", copy, "--yes", "--connect", url).out == f"deleted {copy}\n"
    assert "there is no session" in one_line(cli("sessions", "show", copy, "--connect", url))


@pytest.mark.parametrize(("word", "code", "status"), [("allow", 0, "ok"), ("deny", 0, "denied")])
def test_a_program_answers(cli: Cli, url: str, tmp_path: Path, word: str, code: int, status: str) -> None:
    done = cli("run", "go", "--ask", f"command:echo {word}", "--output", "json", "--connect", url)
    assert done.code == code, done.err
    assert [call["status"] for call in done.json["calls"]] == [status]
    assert done.json["text"] == "All done." and done.json["stop_reason"] == "end_turn"
    assert runs(tmp_path) == ("ran\n" if word == "allow" else "")


def test_a_run_outlives_its_server(cli: Cli, tmp_path: Path) -> None:
    """The command line waits, comes back by itself and sees the end of the run that somebody else lets go on."""
    home = tmp_path / "server"
    home.mkdir()
    first = Server(home, SCRIPT)
    port = first.port
    waits = tmp_path / "answer"
    program = tmp_path / "decide"
    program.write_text(f"#!/bin/sh\nwhile ! test -e {waits}; do sleep 0.1; done\ncat {waits}\n")
    program.chmod(0o755)
    running = cli.start("run", "go", "--ask", f"command:{program}", "--output", "jsonl", "--connect", first.url)
    try:
        assert running.stdout is not None
        for line in running.stdout:
            if json.loads(line)["event"]["kind"] == "ask.opened":
                break
        first.end(signal.SIGKILL)
        second = Server(home, SCRIPT, port=port)
        try:
            (found,) = cli("asks", "--json", "--connect", second.url).json
            assert cli("answer", found["ask"]["ask_id"], "allow", "--connect", second.url).code == 0
            out, err = running.communicate(timeout=30)
            assert running.returncode == 0, err
            assert json.loads(out.splitlines()[-1])["event"]["kind"] == "run.finished"
            assert runs(tmp_path) == "ran\n"
        finally:
            second.end()
    finally:
        running.kill()
        first.end()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("asks", "--connect", "http://127.0.0.1:1"), "can't be reached"),
        (("asks", "--connect", "grpc://127.0.0.1:1"), "can't be reached"),
        (("asks", "--connect", "unix:/nowhere/at/all"), "can't be reached"),
        (("asks", "--connect", "unix:"), "names no socket"),
        (("asks", "--connect", "127.0.0.1:8711"), "names no server"),
        (("asks", "--connect", "http://a:b@127.0.0.1"), "names no server"),
        (("asks", "--connect", "http://127.0.0.1:99999"), "is not a URL"),
        (("asks", "--connect", "http://127.0.0.1/x"), "only a host and a port"),
        (("asks", "--connect", "http://127.0.0.1", "--state-dir", "x"), "doesn't go with --connect"),
        (("run", "x", "--connect", "http://127.0.0.1", "--allow", "Bash"), "--allow doesn't go with --connect"),
        (("run", "x", "--connect", "http://127.0.0.1", "--continue"), "--continue doesn't go with --connect"),
        (("--connect", "http://127.0.0.1"), "needs a terminal"),
        (("--connect", "http://127.0.0.1", "asks"), "write `counterfoil asks --connect URL …`"),
        (("--session", "x"), "--session needs --connect"),
    ],
)
def test_what_can_not_be_is_said_in_a_line(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    done = cli(*arguments)
    assert says in one_line(done) and done.code in (1, 2)


def test_a_token_comes_from_the_environment_and_never_goes_out_in_the_clear(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("cft_secret\nmore")
    assert token_of({}) is None
    assert token_of({"COUNTERFOIL_TOKEN_FILE": str(file)}) == "cft_secret"
    assert token_of({"COUNTERFOIL_TOKEN": " a ", "COUNTERFOIL_TOKEN_FILE": str(file)}) == "a"
    for bad in ({"COUNTERFOIL_TOKEN_FILE": str(tmp_path / "none")}, {"COUNTERFOIL_TOKEN": "a\nb"}):
        with pytest.raises(UsageError):
            token_of(bad)
    for form in ("http://192.0.2.1:8711", "grpc://example.invalid:8712"):
        with pytest.raises(UsageError, match="in the clear") as refused:
            connect(form, {"COUNTERFOIL_TOKEN": "cft_secret"})
        assert "cft_secret" not in str(refused.value)


def test_tokens_decide_what_is_seen(cli: Cli, tmp_path: Path, monkeypatch: Any) -> None:
    home = tmp_path / "server"
    home.mkdir()
    state = str(home / "state")
    ada, eve = (cli("token", "create", name, "--state-dir", state).out.split()[0] for name in ("ada", "eve"))
    made = Server(home, SCRIPT, "--auth", "tokens")
    try:
        assert "a valid token is needed" in one_line(cli("asks", "--connect", made.url))
        monkeypatch.setenv("COUNTERFOIL_TOKEN", ada)
        assert cli("run", "go", "--ask", "wait", "--connect", made.url).code == 75
        (found,) = cli("asks", "--json", "--connect", f"grpc://{made.grpc}").json
        monkeypatch.setenv("COUNTERFOIL_TOKEN", eve)
        assert cli("asks", "--connect", made.url).out == "no open asks\n"
        refused = cli("answer", found["ask"]["ask_id"], "allow", "--connect", made.url)
        assert "no ask" in one_line(refused) and runs(tmp_path) == ""
        assert ada not in "".join(made.said) and eve not in "".join(made.said)
    finally:
        made.end()
