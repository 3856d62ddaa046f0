"""Going on with stored sessions: whose rules and whose server hold; and a follower that is slow."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.cli.compose import for_session
from counterfoil.config import Flags, ModelSettings, Settings
from counterfoil.engine import Watch
from tests.cli.support import Cli, bash
from tests.support.model_server import ModelServer

SAY = {"text": "Done."}


def test_the_rules_of_the_sessions_own_folder_hold_wherever_it_is_resumed(cli: Cli) -> None:
    script = cli.script({"text": "one"}, {"calls": [bash("touch made")]}, SAY)
    cli("run", "x", "--script", script)
    (cli.workspace / ".counterfoil").mkdir()
    (cli.workspace / ".counterfoil/config.toml").write_text('[permissions]\ndeny = ["Bash"]\n')
    elsewhere = str(cli.root / "home")
    resumed = cli(
        "run", "y", "--script", script, "--resume", "last", "--mode=bypass", "--workspace", elsewhere, "--output=json"
    )
    assert [c["status"] for c in resumed.json["calls"]] == ["denied"]
    assert not (cli.workspace / "made").exists()


def test_a_session_whose_folder_is_gone_is_one_line(cli: Cli) -> None:
    folder = cli.root / "gone"
    folder.mkdir()
    script = cli.script(SAY)
    cli("run", "x", "--script", script, "--workspace", str(folder))
    folder.rmdir()
    result = cli("run", "y", "--script", script, "--resume", "last")
    assert result.code == 2
    assert f"{folder} is not a folder" in result.err


@pytest.mark.parametrize(
    ("provider", "base_url", "flags", "expected"),
    [
        ("openai_chat", "http://h", Flags(), "http://h"),
        ("anthropic", "http://h", Flags(), ""),
        ("anthropic", "http://h", Flags(base_url="http://h"), "http://h"),
        ("anthropic", "http://h", Flags(provider="openai_chat"), "http://h"),
    ],
)
def test_a_base_url_from_the_environment_is_not_sent_another_providers_key(
    provider: str, base_url: str, flags: Flags, expected: str
) -> None:
    settings = Settings(state_dir=Path("/s"), model=ModelSettings(base_url=base_url))
    assert for_session(settings, flags, provider).model.base_url == expected


@pytest.fixture
def served() -> Iterator[ModelServer]:
    """A model server that runs beside the command line."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    server = ModelServer({"turns": [{"calls": [bash("touch made")]}, SAY]})
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_session_goes_on_at_the_server_that_it_began_at(cli: Cli, served: ModelServer) -> None:
    """And not at the vendor's, with all that was said so far."""
    where = ("--base-url", served.base_url, "--model", "m")
    assert cli("run", "x", "--ask=wait", *where).code == 75
    ask = cli("asks", "--json").json[0]["ask"]["ask_id"]
    cli("answer", ask, "allow")
    assert cli("resume", "last").out == "Done.\n"
    assert (cli.workspace / "made").exists()
    assert cli("run", "y", "--continue").code == 0
    fork = cli("sessions", "fork", "last").out.strip()
    assert cli("run", "z", "--resume", fork).code == 0
    assert len(served.bodies) == 4
    assert f"at {served.base_url}" in cli("inspect", "last").out


def test_a_base_url_that_is_given_now_is_the_one_from_now_on(cli: Cli, served: ModelServer) -> None:
    assert cli("run", "x", "--base-url", f"{served.root_url}/no/v1", "--model", "m").code == 1
    assert cli("run", "y", "--continue", "--base-url", served.base_url).code == 0
    assert cli("run", "z", "--continue").code == 0
    assert cli("run", "z", "--continue", "--provider=openai").code == 2


def test_a_patch_of_a_resumed_session_is_about_its_own_folder(cli: Cli) -> None:
    script = cli.script(SAY)
    cli("run", "x", "--script", script)
    (cli.root / "home/.git").mkdir()
    arguments = ("run", "y", "--script", script, "--resume", "last", "--patch", str(cli.root / "p"))
    result = cli(*arguments, "--workspace", str(cli.root / "home"))
    assert result.code == 2
    assert f"{cli.workspace} is in none" in result.err


def test_a_follower_that_is_too_slow_reads_on_in_the_log(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterfoil.engine.session.Watch", functools.partial(Watch, capacity=4))
    calls = [bash(f"echo {n}", f"c{n}") for n in range(20)]
    script = cli.script({"calls": calls}, {"calls": calls}, SAY)
    result = cli("run", "x", "--script", script, "--mode=bypass", "--output=jsonl")
    assert result.code == 0
    offsets = [line["offset"] for line in result.lines if "offset" in line]
    assert offsets == list(range(1, len(offsets) + 1))
    assert result.lines[-1]["event"]["kind"] == "run.finished"
    more = cli("run", "x", "--script", script, "--mode=bypass", "--output=jsonl", "--continue")
    assert next(line["offset"] for line in more.lines if "offset" in line) == offsets[-1] + 1
    denied = cli("run", "x", "--script", script, "--ask=deny", "--output=json").json
    assert {c["status"] for c in denied["calls"]} == {"denied"}


class _Lists(http.server.BaseHTTPRequestHandler):
    keys: list[str | None] = []

    def do_GET(self) -> None:
        if "endless" in self.path:
            self._endless()
            return
        self.keys.append(self.headers["authorization"])
        body = json.dumps({"data": [{"id": "b\x1b[2J"}, {"id": "a"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b" " * 100_000)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def lists() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Lists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_server_lists_its_own_models(cli: Cli, lists: str) -> None:
    result = cli("models", "--base-url", lists)
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == ["model", "a", "b␛[2J"]
    assert _Lists.keys[-1] is None


def test_a_list_of_models_without_an_end_is_given_up(cli: Cli, lists: str) -> None:
    result = cli("models", "--base-url", f"{lists}/endless")
    assert result.code == 1
    assert "can't be reached" in result.err


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_session_that_began_looser_goes_on_as_strict_as_the_operators_file(cli: Cli, verb: str) -> None:
    script = cli.script({"calls": [bash("eval x")]}, {"calls": [bash("touch made")]}, SAY)
    options = ("--script", script)
    deny = ("--deny", "Bash(y *)")  # with it, what can't be known is asked in mode bypass too
    assert cli("run", "x", *options, *deny, "--mode=bypass", "--max-turns=0", "--ask=wait").code == 75
    operator = cli.root / "operator.toml"
    operator.write_text('[permissions]\nmode = "default"\n[limits]\nmax_turns = 9\n')
    refused = cli("run", "x", *options, "--mode=bypass")
    assert refused.code == 2 and f"bypass is less strict than default, set in {operator}:2" in refused.err
    go = ("run", "y", "--continue") if verb == "run" else ("resume", "last", "--answer=deny")
    done = cli(*go, *options)
    assert done.code == 0 and "mode bypass of this session is less strict than the operator's: default" in done.err
    assert not (cli.workspace / "made").exists()
    shown = cli("inspect", "last", "--json").json["session"]
    assert shown["mode"] == "default"
    changes = [line["event"] for line in cli("sessions", "export", "last").lines]
    limits = [e["limits"]["max_turns"] for e in changes if e["kind"] == "session.updated" and e.get("limits")]
    assert limits == [9]
    assert "less strict" not in cli("run", "z", "--continue", *options).err


def test_an_approved_plan_leads_back_to_nothing_that_the_operator_forbids(cli: Cli) -> None:
    script = cli.script(*[SAY] * 4)
    cli("run", "x", "--script", script, "--mode=bypass")
    cli("run", "x", "--script", script, "--mode=plan", "--continue")
    (cli.root / "operator.toml").write_text('[permissions]\nmode = "default"\n')
    cli("run", "x", "--script", script, "--continue")
    modes = [line["event"].get("mode") for line in cli("sessions", "export", "last").lines]
    assert [m for m in modes if m] == ["bypass", "plan", "default", "plan"]


def test_a_new_prompt_says_which_question_it_withdraws(cli: Cli) -> None:
    script = cli.script({"calls": [bash("touch made")]}, SAY)
    assert cli("run", "x", "--script", script, "--ask=wait").code == 75
    ask = cli("asks", "--json").json[0]["ask"]["ask_id"]
    done = cli("run", "y", "--continue", "--script", script, "--output=json")
    lines = [line for line in done.err.splitlines() if "withdrawn" in line]
    assert lines == [f"counterfoil: {ask} about Bash is withdrawn: the new prompt ends the run that waited for it"]
    calls = cli("inspect", "last", "--json").json["calls"]
    assert [a["state"] for c in calls for a in c["asks"]] == ["withdrawn"]
    assert "withdrawn" not in cli("run", "z", "--continue", "--script", script).err


def test_what_a_flag_denied_is_denied_again_by_the_command_that_is_shown(cli: Cli) -> None:
    script = cli.script({"calls": [bash("mkdir q")]}, {"calls": [bash("touch Z")]}, {"text": "done"})
    config = cli.root / "home" / ".config" / "counterfoil" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[permissions]\nallow = ["Bash(touch *)"]\n')
    parked = cli("run", "go", "--script", script, "--ask", "wait", "--deny", "Bash(touch *)")
    assert parked.code == 75 and "this command line alone" in parked.err
    (ask,) = cli("asks", "--json").json
    assert f"counterfoil resume {ask['ask']['origin_session_id']} --deny 'Bash(touch *)'" in parked.err
    cli("answer", ask["ask"]["ask_id"], "allow")
    assert cli("resume", "last", "--script", script, "--deny", "Bash(touch *)").code == 0
    assert (cli.workspace / "q").is_dir() and not (cli.workspace / "Z").exists()
