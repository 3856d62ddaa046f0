"""One scenario in a real terminal against a real process: what a person types, and what stands there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil import __file__ as package
from counterfoil.tui.guard import QUIET
from tests.support.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]
SCRIPT = {
    "turns": [
        {
            "text": "First a look, then an edit.",
            "calls": [
                {"tool": "Read", "arguments": {"file_path": "greeting.txt"}, "id": "a"},
                {
                    "tool": "Edit",
                    "arguments": {"file_path": "greeting.txt", "old_string": "hello", "new_string": "hello world"},
                    "id": "b",
                },
            ],
        },
        {"calls": [{"tool": "Bash", "arguments": {"command": "touch never", "description": "x"}, "id": "c"}]},
        {"text": "**Done.** One was done, one was not."},
    ]
}
CONFIG = """
state_dir = "{home}/state"
[model]
provider = "played"
name = "scripted"
[providers.played]
wire = "scripted"
base_url = "{home}/script.json"
"""


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir()
        (self.work / "greeting.txt").write_text("hello\n")
        (home / "script.json").write_text(json.dumps(SCRIPT))
        (home / "config" / "counterfoil").mkdir(parents=True)
        (home / "config" / "counterfoil" / "config.toml").write_text(CONFIG.format(home=home))
        self._socket = home / "tmux"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(self.work), "sh")
        source = Path(package).parents[1]
        self.keys(
            f"export HOME={home} XDG_CONFIG_HOME={home}/config PYTHONPATH={source} PS1='$ '; unset NO_COLOR; clear",
            "Enter",
        )

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", "-t", "0", key)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "0")

    def until(self, *texts: str, seconds: float = 30, gone: bool = False) -> str:
        """Wait until all `texts` stand on the screen, or none of them does any more."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if all((text in screen) != gone for text in texts):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{'still' if gone else 'not'} there: {texts}\n{self.screen()}")

    def start(self, *arguments: str) -> None:
        self.keys(f"{sys.executable} -m counterfoil {' '.join(arguments)}", "Enter")

    def answers(self, key: str, before: str, after: str) -> None:
        """Answer a question once it stood there long enough to be read, and wait for what follows."""
        self.until(before)
        time.sleep(3 * QUIET)
        self.keys(key)
        self.until(after)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False, timeout=20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    try:
        yield made
    finally:
        made.close()


def above_the_prompt(screen: str) -> str:
    return screen[: screen.rindex("┏")].rstrip()


def test_a_session_from_the_first_prompt_to_the_same_screen_again(terminal: Terminal) -> None:
    terminal.start()
    terminal.until("idle", "mode default")
    terminal.keys("Make it greet", "Enter")
    terminal.answers("y", "Edit: needs your approval", "Bash: needs your approval")
    assert (terminal.work / "greeting.txt").read_text() == "hello world\n"
    terminal.answers("e", "touch never", "note to the model")
    terminal.keys("not here", "Enter")
    terminal.until("Done. One was done", "completed")
    assert not (terminal.work / "never").exists()

    terminal.keys("F9")
    terminal.until("all notices")
    terminal.keys("C-t")
    terminal.until("calls: 3 of 3", "denied")
    terminal.keys("Escape")
    terminal.until("calls: 3 of 3", gone=True)

    terminal.tmux("resize-window", "-t", "0", "-x", "60", "-y", "20")
    terminal.until("Done. One was done, one was not.")
    terminal.tmux("resize-window", "-t", "0", "-x", "80", "-y", "24")
    whole = ("❯ Make it greet", "Done. One was done, one was not.", "completed")
    before = above_the_prompt(terminal.until(*whole))

    terminal.keys("/quit", "Enter")
    terminal.until("session ses_")
    terminal.keys("clear", "Enter")
    terminal.until("session ses_", gone=True)
    terminal.start()
    terminal.until("idle", "all notices")
    terminal.keys("/sessions", "Enter")
    terminal.until("Make it greet")
    terminal.keys("Enter")
    assert above_the_prompt(terminal.until(*whole)) == before
    terminal.keys("C-c")
    terminal.keys("C-c")
    terminal.until("session ses_")


WAITS = {
    "turns": [
        {"calls": [{"tool": "Bash", "arguments": {"command": "sleep 300", "description": "x"}, "id": "a"}]},
        {"text": "It went on."},
    ]
}


def test_editor_interrupt_and_quit_in_a_terminal_of_few_colours(terminal: Terminal) -> None:
    (terminal.home / "script.json").write_text(json.dumps(WAITS))
    editor = terminal.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, please" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    terminal.keys("export TERM=xterm; unset COLORTERM VISUAL; export EDITOR=/nowhere/to/be/found", "Enter")
    terminal.start()
    terminal.until("idle", "mode default")
    terminal.keys("Go on", "C-g")
    terminal.until("$EDITOR", "Go on")
    terminal.keys("C-c", "C-c")
    terminal.until("idle", gone=True)

    terminal.keys(f"clear; export EDITOR={editor}", "Enter")
    terminal.start()
    terminal.until("idle", "mode default")
    terminal.keys("/mode bypass", "Enter")
    terminal.until("mode bypass")
    terminal.keys("Go on", "C-g")
    terminal.until("Go on, please")
    terminal.keys("Enter")
    terminal.until("sleep 300", "running")
    terminal.keys("Escape")
    terminal.until("cancelled")
    terminal.until("running", gone=True)
    terminal.keys("C-c", "C-c")
    terminal.until("session ses_")


ONE_CALL = {
    "turns": [
        {"calls": [{"tool": "Bash", "arguments": {"command": "echo ran >> runs.txt", "description": "x"}, "id": "a"}]},
        {"text": "It ran."},
    ]
}


def test_at_a_server_that_is_killed_with_a_question_open_and_comes_back(terminal: Terminal) -> None:
    server = Server(terminal.home, ONE_CALL)
    try:
        port = server.port
        terminal.start("--connect", server.url)
        terminal.until("idle", "mode default", server.url)
        terminal.keys("Run it", "Enter")
        terminal.until("Bash: needs your approval")
        server.end()
        terminal.until("the server is gone: reconnecting")
        time.sleep(3 * QUIET)
        terminal.keys("y")  # while nobody is there: it isn't lost
        terminal.until("Bash: needs your approval", gone=True)
        server = Server(terminal.home, ONE_CALL, port=port)
        terminal.until("It ran.", "completed", server.url)
        terminal.until("connected again", gone=True)
        before = above_the_prompt(terminal.until("It ran.", "completed"))
        assert (terminal.home / "w" / "runs.txt").read_text() == "ran\n"

        terminal.keys("C-c", "C-c")
        terminal.until("session ses_")
        terminal.keys("clear", "Enter")
        terminal.start("--connect", f"grpc://{server.grpc}", "--session", "last")
        assert above_the_prompt(terminal.until("❯ Run it", "It ran.", "completed")) == before
        terminal.keys("/diagnostics", "Enter")
        terminal.until("speaking as", "(owner)")
    finally:
        server.end()
