"""The real client on a real service with a scripted model, in a temporary folder."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from counterfoil.config import Flags
from counterfoil.tui.app import CounterfoilApp
from counterfoil.tui.ask import AskScreen
from counterfoil.tui.embedded import Embedded
from counterfoil.tui.guard import QUIET


class SetTime:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": str(home / "config")}


def configure(home: Path, text: str) -> None:
    """What stands in the person's configuration file."""
    folder = home / "config" / "counterfoil"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def call(tool: str, arguments: dict[str, Any], id: str = "p0") -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments, "id": id}


def bash(command: str, id: str = "p0") -> dict[str, Any]:
    return call("Bash", {"command": command, "description": "a command"}, id)


def embedded(home: Path, script: dict[str, Any], *, mode: str = "default", **flags: Any) -> Embedded:
    workspace = home / "work"
    workspace.mkdir(exist_ok=True)
    file = home / "script.yaml"
    file.write_text(json.dumps(script), encoding="utf-8")
    given = Flags(
        state_dir=str(home / "state"),
        provider="scripted",
        model="scripted",
        script=str(file),
        mode=mode,  # type: ignore[arg-type]
        **flags,
    )
    return Embedded.start(workspace, environment(home), given)


def client(home: Path, script: dict[str, Any], *, time: SetTime | None = None, **given: Any) -> CounterfoilApp:
    session = given.pop("session", None)
    return CounterfoilApp(embedded(home, script, **given), session=session, clock=time or SetTime())


async def until(pilot: Pilot[None], what: Any, seconds: float = 20) -> None:
    """Wait until `what` holds; fails when it doesn't."""
    async with asyncio.timeout(seconds):
        while not what():
            await pilot.pause(0.02)
    await pilot.pause()


async def idle(pilot: Pilot[None], app: CounterfoilApp) -> None:
    """Wait for the end of the run."""
    await until(pilot, lambda: bool(app.feed.count()) and not app.running)
    app.settle()
    await pilot.pause()


async def asked(pilot: Pilot[None], app: CounterfoilApp) -> AskScreen:
    """Wait until a question stands on the screen."""
    await until(pilot, lambda: isinstance(app.screen, AskScreen) and app.screen._shown_at < float("inf"))
    assert isinstance(app.screen, AskScreen)
    return app.screen


async def answer(pilot: Pilot[None], app: CounterfoilApp, time: SetTime, key: str) -> None:
    """Answer the question that stands there, after it could be read."""
    await asked(pilot, app)
    time.passes(2 * QUIET)
    await pilot.press(key)


async def prompt(pilot: Pilot[None], app: CounterfoilApp, text: str) -> None:
    app.prompt.put(text)
    await pilot.press("enter")


def shown(app: CounterfoilApp) -> str:
    """The scrollback as text."""
    view = app.view
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))
