"""`counterfoil serve` as a real process: killed, restarted, drained; and what it refuses to start as."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = [pytest.mark.crash]

ROOT = Path(__file__).parents[2]
SCRIPT = {"turns": [{"calls": [{"tool": "Bash", "arguments": {"command": "echo ran >> runs.txt"}}]}, {"text": "done"}]}


class Process:
    """One server process of a state directory."""

    def __init__(self, folder: Path, *more: str) -> None:
        (folder / "w").mkdir(exist_ok=True)
        (folder / "script.json").write_text(json.dumps(SCRIPT))
        env = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERFOIL_")}
        arguments = [
            "serve",
            "--grpc-port",
            "-1",
            "--state-dir",
            str(folder / "state"),
            "--workspace",
            str(folder / "w"),
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "counterfoil", *arguments, "--script", str(folder / "script.json"), *more],
            env=env | {"PYTHONPATH": str(ROOT / "src"), "HOME": str(folder), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def url(self) -> str:
        """Where it serves, once it says so."""
        assert self.process.stdout is not None
        seen = ""
        for line in self.process.stdout:
            seen += line
            found = re.match(r"HTTP on (\S+)", line)
            if found:
                return found[1]
        raise AssertionError(seen)

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; the exit code and the rest of what it said."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    made: list[Process] = []

    def start(*more: str) -> Process:
        made.append(Process(tmp_path, "--provider", "scripted", "--model", "m", *more))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


def wait_for(client: httpx.Client, session: str, kind: str) -> Any:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with client.stream("GET", f"/v1/sessions/{session}/events", timeout=20) as response:
            for line in response.iter_lines():
                if line.startswith("data:") and kind in (data := json.loads(line[5:])):
                    return data[kind]
    raise AssertionError(f"no {kind}")


def begin(client: httpx.Client) -> tuple[str, Any]:
    session = client.post("/v1/sessions", json={}).json()["session"]["sessionId"]
    client.post(f"/v1/sessions/{session}/prompt", json={"parts": [{"text": {"text": "go"}}]}).raise_for_status()
    return session, wait_for(client, session, "askOpened")["ask"]


def test_a_killed_server_comes_back_and_the_answer_runs_the_call_once(processes: Any, tmp_path: Path) -> None:
    first = processes("--port", "0")
    with httpx.Client(base_url=first.url()) as client:
        session, ask = begin(client)
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    second = processes("--port", "0")
    with httpx.Client(base_url=second.url()) as client:
        (found,) = client.get("/v1/asks").json()["asks"]
        assert found["ask"] == ask
        answered = client.post(f"/v1/asks/{ask['askId']}/answer", json={"verdict": "allow"})
        assert answered.status_code == 200, answered.text
        assert wait_for(client, session, "runFinished")["stopReason"] == "end_turn"
        assert (tmp_path / "w" / "runs.txt").read_text() == "ran\n"
        assert client.get(f"/v1/sessions/{session}/verify").json()["intact"]


def test_sigterm_parks_what_waits_and_ends_cleanly(processes: Any, tmp_path: Path) -> None:
    server = processes("--port", "0")
    with httpx.Client(base_url=server.url()) as client:
        session, ask = begin(client)
    code, said = server.end(signal.SIGTERM)
    assert code == 0 and "parked" in said and "Traceback" not in said
    again = processes("--port", "0")
    with httpx.Client(base_url=again.url()) as client:
        assert client.get(f"/v1/sessions/{session}").json()["session"]["status"] == "awaiting"
        assert client.get("/v1/asks").json()["asks"][0]["ask"]["askId"] == ask["askId"]


def test_a_unix_socket_is_its_owners_alone(processes: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    server = processes("--uds", str(path))
    assert server.url() == str(path)
    assert path.stat().st_mode & 0o077 == 0
    transport = httpx.HTTPTransport(uds=str(path))
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        assert client.get("/v1/info").json()["role"] == "owner"
    assert server.end(signal.SIGTERM)[0] == 0 and not path.exists()


@pytest.mark.parametrize("more", [("--host", "0.0.0.0"), ("--host", "::"), ("--host", "example.invalid")])
def test_it_isnt_open_to_others_without_authentication(processes: Any, more: tuple[str, ...]) -> None:
    out, _ = processes("--port", "0", *more).process.communicate(timeout=30)
    assert "nobody would have to show a token" in out and len(out.strip().split("\n")) == 1


def test_a_port_that_is_taken_is_one_clear_line(processes: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = processes("--port", str(taken.getsockname()[1]))
        out, _ = server.process.communicate(timeout=30)
    assert server.process.returncode == 2 and "can't be bound" in out and "Traceback" not in out
