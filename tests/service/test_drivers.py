"""Sessions that are open: bounded, given back when idle, within the operator's bounds; an embedded service drains."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from counterfoil.client.local import embedded
from counterfoil.config import Settings
from counterfoil.config.values import Assignment, ModelSettings, Source
from counterfoil.errors import SessionHeld, ShuttingDown, TooMuch
from counterfoil.events import AskOpened, Limits, Principal, SessionCreated
from counterfoil.identity import SessionID
from counterfoil.ports import Holder
from counterfoil.service import drivers
from counterfoil.service.access import Caller
from counterfoil.service.application import Application
from counterfoil.service.beginning import new_session
from counterfoil.service.local import LocalService
from tests.client.world import WRITE, turns, until

ADA = Caller(principal=Principal(kind="user", name="ada"))


def settings_in(folder: Path) -> Settings:
    (folder / "w").mkdir(exist_ok=True)
    script = folder / "script.json"
    script.write_text(json.dumps(turns(WRITE)))
    return Settings(state_dir=folder / "state", model=ModelSettings(provider="scripted", name="m", script=str(script)))


def service_of(settings: Settings) -> LocalService:
    return LocalService(settings, {"PATH": "/usr/bin:/bin"}, script=Path(settings.model.script))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Application]:
    async with service_of(settings_in(tmp_path)) as local:
        made = Application(local, tmp_path / "w")
        yield made
        await made.close(grace=0)


async def create(app: Application, **values: Any) -> SessionID:
    new = new_session(app.local.settings, ADA.principal, workspace=str(app.workspace), **values)
    return (await app.create(ADA, new)).session_id


async def test_too_many_open_sessions_close_the_one_that_was_idle_longest(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "OPEN", 2)
    made = [await create(app) for _ in range(4)]
    assert [app.drivers.peek(session) is not None for session in made] == [False, False, True, True]
    other = service_of(app.local.settings)
    async with other, await other.engine.open(made[0]) as taken:
        assert taken.id == made[0], "its lease was given back"
        with pytest.raises(SessionHeld):
            await app.rename(ADA, made[0], "mine")
    await app.rename(ADA, made[0], "mine")
    assert app.drivers.peek(made[2]) is None


async def test_where_all_open_sessions_are_in_use_no_more_is_opened(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "OPEN", 1)
    session = await create(app)
    async with app.drivers.using(session):
        with pytest.raises(TooMuch):
            await create(app)
    await create(app)


async def test_an_idle_session_is_given_back(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "LOOK", 0)
    monkeypatch.setattr(drivers, "IDLE", -1)
    session = await create(app)
    async with asyncio.timeout(10), app.drivers.opened:
        await app.drivers.opened.wait_for(lambda: app.drivers.peek(session) is None)
    assert await app.drivers.release(session), "it is closed, or will be in a moment"
    store = app.local.store
    await store.release(await store.acquire(session, Holder(pid=1, host="elsewhere")))


async def test_no_session_begins_looser_than_the_operator_allows(tmp_path: Path) -> None:
    source = Source(tier="operator", place="config.toml", line=1)
    binding = (
        Assignment(path=("permissions", "mode"), value="default", source=source),
        Assignment(path=("limits", "max_turns"), value=5, source=source),
    )
    settings = msgspec.structs.replace(settings_in(tmp_path), binding=binding)
    async with service_of(settings) as local:
        app = Application(local, tmp_path / "w")
        session = await create(app, mode="bypass", limits=Limits(max_turns=0))
        event = (await app.transcript(ADA, session))[0].event
        assert isinstance(event, SessionCreated)
        assert (event.mode, event.limits.max_turns) == ("default", 5)
        await app.close()


async def test_closing_an_embedded_client_parks_and_gives_everything_back(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    me = Principal(kind="local", name="me")
    client = embedded(service_of(settings), tmp_path / "w", me)
    async with client:
        session = (await client.create()).session_id
        await client.prompt(session, "go")
        await until(client, session, AskOpened)
        watch = client.watch(session)
        await anext(watch)
    with pytest.raises(ShuttingDown):
        async for _ in watch:
            pass
    await client.close()
    async with embedded(service_of(settings), tmp_path / "w", me) as again:
        (found,) = await again.list_asks()
        assert found.session_id == session
        assert (await again.resume(session)).session_id == session
