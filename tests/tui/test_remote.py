"""The client at a server elsewhere: every command does there what it does here, and what is lost comes back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from counterfoil.tui.app import CounterfoilApp
from counterfoil.tui.remote import Remote
from counterfoil.tui.table import TableScreen
from tests.client.world import WRITE, Served, World, globs, turns
from tests.tui.rig import SetTime, answer, asked, idle, prompt, shown, until

URL = "http://there"


@pytest.fixture(params=["http", "grpc"])
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    async with contextlib.AsyncExitStack() as stack:
        world = World(tmp_path, request.param, stack)
        yield await world.serve(turns(*globs(1), WRITE))


async def at_server(served: Served, home: Path, time: SetTime) -> tuple[CounterfoilApp, list[str]]:
    """The client, and what it says of faults."""
    client = served.client()
    app = CounterfoilApp(Remote(client, URL, await client.get_info(), state_dir=home / "mine"), clock=time)
    said: list[str] = []
    notify = app.notify

    def told(message: str, **more: object) -> None:
        if more.get("severity") in ("error", "warning"):
            said.append(message)
        notify(message, **more)  # type: ignore[arg-type]

    app.notify = told  # type: ignore[method-assign]
    return app, said


async def do(pilot: Pilot[None], app: CounterfoilApp, command: str) -> None:
    await prompt(pilot, app, command)
    await pilot.pause()


async def test_every_command_works_there(served: Served, tmp_path: Path) -> None:
    time = SetTime()
    app, said = await at_server(served, tmp_path, time)
    async with app.run_test(size=(100, 30)) as pilot:
        await prompt(pilot, app, "Write it")
        await asked(pilot, app)
        await answer(pilot, app, time, "a" if (await asked(pilot, app)).question.ask.rule else "y")
        await idle(pilot, app)
        first = app.feed.seen.root
        assert "Write it" in shown(app) and app.feed.seen.session.title == "Write it"
        for command in ("/toolcalls", "/evidence", "/guardrails", "/hooks", "/permissions", "/usage", "/diagnostics"):
            await do(pilot, app, command)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        await do(pilot, app, "/mode plan")
        await until(pilot, lambda: app.feed.seen.session.mode == "plan")
        await do(pilot, app, "/model other")
        await until(pilot, lambda: app.feed.seen.session.model == "other")
        await do(pilot, app, f"/export {tmp_path / 'out.jsonl'}")
        assert (tmp_path / "out.jsonl").read_text().startswith('{"session_id"')
        await do(pilot, app, "/theme light")
        assert "light" in (tmp_path / "mine" / "terminal.json").read_text()
        await do(pilot, app, "/clear")
        await until(pilot, lambda: app.feed.seen.root not in ("", first))
        await do(pilot, app, "/sessions")
        await until(pilot, lambda: isinstance(app.screen, TableScreen))
        await pilot.press("down", "f")
        await pilot.pause(0.3)
        assert len((await served.client().list_sessions()).sessions) == 3
        await pilot.press("escape")
        await app.open(first)
        await until(pilot, lambda: "Write it" in shown(app))
        assert app.standing().connection == URL
    assert said == []


async def test_a_prompt_while_it_runs_steers_and_esc_interrupts(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        from tests.client.world import GATED

        world = World(tmp_path, "http", stack)
        world.make_gate()
        served = await world.serve(turns(GATED), config='[permissions]\nallow = ["Bash"]\n')
        app, said = await at_server(served, tmp_path, SetTime())
        async with app.run_test(size=(100, 30)) as pilot:
            await prompt(pilot, app, "Wait at the gate")
            await world.gate_is_waited_at()
            await until(pilot, lambda: app.running)
            await prompt(pilot, app, "And be quick")
            await until(pilot, lambda: "And be quick" in shown(app) or not app.running)
            await pilot.press("escape")
            await until(pilot, lambda: app.feed.seen.session.status == "cancelled")
        assert said == []
