"""Whatever is wrong with what is given: one clear line, the right exit code, no traceback, nothing lost."""

from __future__ import annotations

import http.server
import os
import resource
import threading
from collections.abc import Iterator

import pytest

from tests.cli.support import Cli, bash, one_line

SAY = {"text": "Done."}


class _Refuses(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = b'{"error":{"message":"Incorrect API key provided: CANARY-KEY","code":"invalid_api_key"}}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a server that answers 401 to everything."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "x", "--provider", "opnai", "--model", "m"], "no provider is called 'opnai' (did you mean `openai`?"),
        (["run", "x"], "no provider is chosen"),
        (["run", "x", "--provider", "openai", "--model", "m"], "provider 'openai' needs a key (set $OPENAI_API_KEY)"),
        (["run", "x", "--base-url", "http://127.0.0.1:1"], "no model is chosen"),
        (["run", "x", "--base-url", "nowhere", "--model", "m"], "--base-url: 'nowhere' is not an http or https URL"),
        (["run", "x", "--script", "missing.yaml"], "missing.yaml: No such file or directory"),
        (["run", "x", "--script", "s", "--deny", "Bash(rm *"], "the closing parenthesis is missing"),
        (["run", "x", "--resume", "last", "--continue"], "exclude each other"),
        (["run", "x", "--script", "s", "--workspace", "missing"], "is not a folder"),
        (["run", "x", "--output", "xml"], "Invalid value for '--output'"),
        (["run", "--frobnicate"], "No such option"),
        (["run", "x", "--resume", "nonsense"], "'nonsense' is not a session"),
        (["inspect"], "Missing argument"),
        (["answer", "ask_0"], "Missing argument 'allow|deny'. Choose from: allow, deny (`"),
        (["inspect", "ses_1"], "'ses_1' is not a session"),
        (["verify"], "one of SESSION and --all is needed"),
        (["sessions", "export", "ses_1"], "is not a session"),
        (["frobnicate"], "No such command"),
    ],
)
def test_what_cannot_be_meant_is_usage(cli: Cli, arguments: list[str], said: str) -> None:
    result = cli(*arguments)
    assert said in one_line(result)
    assert result.code == 2


@pytest.mark.parametrize(
    "arguments",
    [["inspect", "last"], ["inspect", "ses_0000"], ["resume", "ses_0000"], ["answer", "ask_0", "allow"]],
)
def test_what_is_not_there_has_failed(cli: Cli, arguments: list[str]) -> None:
    result = cli(*arguments)
    assert one_line(result)
    assert result.code == 1


def test_an_empty_prompt_is_usage(cli: Cli) -> None:
    for stdin in (b"", b" \n"):
        assert "the prompt is empty" in one_line(cli("run", "--script", cli.script(SAY), stdin=stdin))


def test_a_typo_in_the_configuration_names_its_place(cli: Cli) -> None:
    path = cli.user_config('[model]\nnme = "x"\n')
    result = cli("run", "x", "--script", cli.script(SAY))
    assert one_line(result) == f"counterfoil: {path}:2: model.nme: is not a known field (did you mean `name`?)"
    assert result.code == 2
    checked = cli("config", "check")
    assert checked.code == 2
    assert f"{path}:2: model.nme" in checked.err


def test_an_unreachable_server_is_one_line_and_the_run_is_kept(cli: Cli) -> None:
    cli.user_config('[providers.here]\nwire = "openai_chat"\nbase_url = "http://127.0.0.1:1/v1"\n')
    models = cli("models", "--provider", "here")
    assert "can't be reached" in one_line(models)
    assert models.code == 1


@pytest.mark.parametrize("wire", ["openai_chat", "openai", "anthropic"])
def test_a_wrong_key_is_one_line_without_the_key(
    cli: Cli, refusing: str, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "CANARY-KEY")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "CANARY-KEY")
    result = cli("run", "x", "--provider", wire, "--base-url", refusing, "--model", "m")
    assert "CANARY" not in one_line(result)
    assert result.code == 1
    assert cli("sessions", "list", "--json").json[0]["status"] == "failed"
    listed = cli("models", "--provider", wire, "--base-url", refusing)
    assert "401" in one_line(listed)
    assert "CANARY" not in listed.err
    assert listed.code == 1


@pytest.mark.parametrize("state", ["/proc/nowhere", "/dev/null/x"])
def test_a_state_directory_that_cannot_be_written_is_one_line(cli: Cli, state: str) -> None:
    result = cli("run", "x", "--script", cli.script(SAY), "--state-dir", state)
    assert f"the state directory {state} can't be used" in one_line(result)
    assert result.code == 1


def test_a_full_state_directory_stops_the_run_and_loses_nothing(cli: Cli) -> None:
    script = cli.script(*[{"calls": [bash(f"head -c 30000 /dev/zero | tr '\\0' x; echo {n}")]} for n in range(40)], SAY)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    process = cli.start("run", "x", "--script", script, "--mode=bypass", preexec_fn=small_files)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = err.decode().splitlines()
    assert line.startswith("counterfoil: ")
    assert out == b""
    assert cli("verify", "last").code == 0
    resumed = cli("resume", "last", "--script", script)
    assert resumed.code == 0
    assert cli("verify", "last").code == 0


def test_a_prompt_of_5_mb_is_kept_whole(cli: Cli) -> None:
    prompt = b"word \xc3\xa9 " * 620_000
    result = cli("run", "--script", cli.script(SAY), stdin=prompt)
    assert (result.code, result.out, result.err) == (0, "Done.\n", "")
    entries = cli("inspect", "last", "--json").json["entries"]
    assert entries[0]["parts"][0]["text"] == prompt.decode()


def test_the_unforeseen_leaves_a_crash_file_and_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("CANARY")

    cli("run", "x", "--script", cli.script(SAY))
    monkeypatch.setattr("counterfoil.cli.reading.rows", fail)
    result = cli("inspect", "last")
    assert result.code == 1
    assert "an unexpected fault: RuntimeError" in one_line(result)
    (crash,) = (cli.state / "crashes").iterdir()
    assert str(crash) in result.err
    assert "CANARY" in crash.read_text()
    assert crash.stat().st_mode & 0o077 == 0


def test_a_fault_of_a_tool_is_kept_with_its_traceback_and_not_printed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.tools.walk.read_small", lambda *_: 1 / 0)
    calls = [{"tool": "Glob", "arguments": {"pattern": pattern}} for pattern in "ab"]
    result = cli("run", "x", "--script", cli.script({"calls": calls}, SAY), "--output=json")
    assert [call["status"] for call in result.json["calls"]] == ["error", "error"]
    assert (result.code, result.err) == (0, "")
    kept = "".join(file.read_text() for file in (cli.state / "crashes").iterdir())
    assert kept.count("ZeroDivisionError: ") == 2


@pytest.mark.parametrize("name", [".git/HEAD", ".gitignore", ".counterfoil/config.toml"])
def test_a_pipe_in_the_workspace_where_a_file_is_looked_for_hangs_nothing(cli: Cli, name: str) -> None:
    path = cli.workspace / name
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    calls = [{"tool": "Glob", "arguments": {"pattern": "*"}}]
    process = cli.start("run", "x", "--script", cli.script({"calls": calls}, SAY))
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == (2 if "config" in name else 0)
