"""The application: one suite of what callers rely on, over a real store, with who may do what."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.config import Settings
from counterfoil.config.values import ModelSettings
from counterfoil.engine import NewSession
from counterfoil.errors import (
    AskIsSettled,
    AskNotFound,
    CounterfoilError,
    Forbidden,
    SessionBusy,
    SessionNotFound,
    UsageError,
)
from counterfoil.events import (
    AskOpened,
    CallFinished,
    Envelope,
    Principal,
    RunFinished,
    RunStarted,
    UserPrompt,
    text_of,
    text_parts,
)
from counterfoil.events.codec import envelope_of
from counterfoil.identity import START, AskID, Offset, ReviewID, SessionID, ToolCallID
from counterfoil.service.access import Caller, Role
from counterfoil.service.application import Application
from counterfoil.service.frames import AskEnded, CaughtUp, Gap, OpenAsk
from counterfoil.service.local import LocalService
from counterfoil.service.reading import rows

ADA = Caller(principal=Principal(kind="user", name="ada"))
EVE = Caller(principal=Principal(kind="user", name="eve"))
WRITE = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}}


def turns(*calls: Any) -> dict[str, Any]:
    return {"turns": [*({"calls": [call]} for call in calls), {"text": "done"}]}


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Application]]]:
    """Makes applications over one state directory, each with its script; closed at the end."""
    opened: list[Application] = []

    async def make(script: Any = None) -> Application:
        (tmp_path / "w").mkdir(exist_ok=True)
        file = tmp_path / f"script{len(opened)}.json"
        file.write_text(json.dumps(script or turns()))
        settings = Settings(
            state_dir=tmp_path / "state", model=ModelSettings(provider="scripted", name="m", script=str(file))
        )
        app = Application(LocalService(settings, {"PATH": "/usr/bin:/bin"}, script=file))
        opened.append(app)
        return app

    yield make
    for app in opened:
        await app.close(grace=0)
        await app.local.close()


def new(tmp_path: Path, **changes: Any) -> NewSession:
    values: dict[str, Any] = {
        "owner": Principal(kind="user", name="forged"),
        "workspace": str(tmp_path / "w"),
        "provider": "scripted",
        "model": "m",
    }
    return NewSession(**(values | changes))


async def until(app: Application, session: SessionID, kind: type[Any], caller: Caller = ADA) -> Any:
    async for frame in app.watch(caller, session):
        if isinstance(frame, Envelope) and isinstance(frame.event, kind):
            return frame.event
    raise AssertionError("the watch ended")


async def finished(app: Application, session: SessionID) -> RunFinished:
    async with asyncio.timeout(10):
        found = await until(app, session, RunFinished)
    assert isinstance(found, RunFinished)
    return found


async def test_a_prompt_returns_at_once_and_its_run_goes_on(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path, mode="accept_edits"))).session_id
    run = await app.prompt(ADA, session, text_parts("go"))
    end = await finished(app, session)
    assert (end.run_id, end.stop_reason) == (run, "end_turn")
    assert (tmp_path / "w" / "a.txt").read_text() == "x"
    assert (await app.get(ADA, session)).owner == "ada", "never what a client says of itself"
    assert (await app.verify_log(ADA, session)).intact


async def test_an_answer_releases_the_call_and_says_who_answered(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    ask = (await until(app, session, AskOpened)).ask
    (listed,) = await app.list_asks(ADA)
    assert listed.ask == ask
    receipt = await app.answer(ADA, ask.ask_id, "allow")
    assert receipt.decided_by == ADA.principal
    assert await app.answer(ADA, ask.ask_id, "allow") == receipt, "the same answer of the same caller is one answer"
    with pytest.raises(AskIsSettled):
        await app.answer(ADA, ask.ask_id, "deny")
    assert (await finished(app, session)).stop_reason == "end_turn"
    assert await app.list_asks(ADA) == []
    assert [type(e.event) for e in await app.inspect_call(ADA, session, ask.tool_call_id)][-1] is CallFinished


async def test_after_a_restart_an_answer_lets_the_run_go_on(made: Any, tmp_path: Path) -> None:
    script = turns(WRITE)
    first = await made(script)
    session = (await first.create(ADA, new(tmp_path))).session_id
    await first.prompt(ADA, session, text_parts("go"))
    ask = (await until(first, session, AskOpened)).ask
    await first.close()
    second = await made(script)
    assert [found.ask for found in await second.list_asks(ADA)] == [ask]
    await second.answer(ADA, ask.ask_id, "allow")
    assert (await finished(second, session)).stop_reason == "end_turn"
    assert (tmp_path / "w" / "a.txt").exists()


async def test_an_answer_reaches_a_session_that_another_process_drives(made: Any, tmp_path: Path) -> None:
    script = turns(WRITE)
    holder, other = await made(script), await made(script)
    session = (await holder.create(ADA, new(tmp_path))).session_id
    await holder.prompt(ADA, session, text_parts("go"))
    ask = (await until(other, session, AskOpened)).ask
    async with asyncio.timeout(5):
        receipt = await other.answer(ADA, ask.ask_id, "allow")
    assert receipt.decided_by == ADA.principal
    assert (await finished(other, session)).stop_reason == "end_turn"


async def test_steer_and_cancel_reach_the_run_wherever_it_is(made: Any, tmp_path: Path) -> None:
    holder, other = await made(turns(WRITE)), await made()
    session = (await holder.create(ADA, new(tmp_path))).session_id
    await holder.prompt(ADA, session, text_parts("go"))
    await until(holder, session, AskOpened)
    await other.steer(ADA, session, "be careful")
    await other.cancel(ADA, session)
    assert (await finished(holder, session)).stop_reason == "cancelled"
    said = [text_of(e.event.parts) for e in await holder.transcript(ADA, session) if isinstance(e.event, UserPrompt)]
    assert said == ["go", "be careful"]
    await other.cancel(ADA, session)
    with pytest.raises(UsageError):
        await holder.steer(ADA, session, "too late")


async def test_a_provider_that_isnt_there_ends_the_run_and_says_so(made: Any, tmp_path: Path) -> None:
    app = await made()
    session = (await app.create(ADA, new(tmp_path, provider="nobody"))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    end = await finished(app, session)
    assert (end.stop_reason, end.error is not None and end.error.code) == ("provider_error", "config")


async def test_one_run_at_a_time(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    with pytest.raises(SessionBusy):
        await app.prompt(ADA, session, text_parts("again"))
    with pytest.raises(UsageError):
        await app.prompt(ADA, (await app.create(ADA, new(tmp_path))).session_id, ())


# ---- watching -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("here", [True, False])
async def test_watches_that_break_at_random_give_each_event_once_and_in_order(
    made: Any, tmp_path: Path, here: bool
) -> None:
    """Also from a process that doesn't drive the session."""
    reads = [{"tool": "Glob", "arguments": {"pattern": f"*{n}"}} for n in range(12)]
    app = await made(turns(*reads))
    watcher = app if here else await made()
    session = (await app.create(ADA, new(tmp_path))).session_id
    chance = random.Random(7)
    seen: list[int] = []
    await app.prompt(ADA, session, text_parts("go"))
    over = False
    async with asyncio.timeout(20):
        while not over:
            room, overlap = chance.randint(1, 9), chance.randint(0, 3)
            after = max(0, (seen[-1] if seen else 0) - overlap)
            stream = watcher.watch(ADA, session, Offset(after))
            async for frame in stream:
                if not isinstance(frame, Envelope) or frame.offset is None:
                    continue
                if not seen or frame.offset > seen[-1]:
                    seen.append(frame.offset)
                over = isinstance(frame.event, RunFinished)
                room -= 1
                if over or not room:
                    break
            await stream.aclose()
    log = [row.offset async for row in rows(app.local.store, session)]
    assert seen == log[: len(seen)] == list(range(1, len(seen) + 1))


async def test_the_border_between_replay_and_live_is_told_once(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    frames: list[Any] = []

    async def watch() -> None:
        async for frame in app.watch(ADA, session):
            frames.append(frame)
            asked = any(isinstance(f, Envelope) and isinstance(f.event, AskOpened) for f in frames)
            if asked and any(isinstance(f, CaughtUp) for f in frames):
                return

    watching = asyncio.ensure_future(watch())
    await app.prompt(ADA, session, text_parts("go"))
    async with asyncio.timeout(10):
        await watching
    borders = [n for n, frame in enumerate(frames) if isinstance(frame, CaughtUp)]
    assert len(borders) == 1
    durable = [frame.offset for frame in frames if isinstance(frame, Envelope) and frame.offset is not None]
    assert durable == list(range(1, len(durable) + 1))


async def test_a_watcher_that_reads_nothing_slows_nobody_and_is_told_of_its_gap(made: Any, tmp_path: Path) -> None:
    from counterfoil.engine import watch as engine_watch

    app = await made(turns(*({"tool": "Glob", "arguments": {"pattern": f"{n}"}} for n in range(30))))
    session = (await app.create(ADA, new(tmp_path))).session_id
    stream = app.watch(ADA, session)
    while not isinstance(await anext(stream), CaughtUp):
        pass
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    (watch,) = app.drivers.peek(session)._hub._watches
    watch._capacity = 5
    assert engine_watch.CAPACITY > 5
    await app.prompt(ADA, session, text_parts("go"))
    await app.drivers._open[session].run
    told = [await waiting]
    async for frame in stream:
        told.append(frame)
    assert isinstance(told[-1], Gap)
    rest = [f async for f in _until_caught_up(app, session, told[-1].last_offset)]
    assert isinstance(rest[-2].event, RunFinished)


async def _until_caught_up(app: Application, session: SessionID, after: Offset) -> AsyncIterator[Any]:
    async for frame in app.watch(ADA, session, after):
        yield frame
        if isinstance(frame, CaughtUp):
            return


async def test_the_inbox_tells_of_asks_in_all_ones_sessions_and_of_no_others(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    mine = [(await app.create(ADA, new(tmp_path))).session_id for _ in range(2)]
    theirs = (await app.create(EVE, new(tmp_path))).session_id
    inbox = app.watch_all(ADA)
    for session, caller in ((mine[0], ADA), (theirs, EVE), (mine[1], ADA)):
        await app.prompt(caller, session, text_parts("go"))
    async with asyncio.timeout(10):
        opened = [await anext(inbox), await anext(inbox)]
        assert {frame.session_id for frame in opened if isinstance(frame, OpenAsk)} == set(mine)
        await app.answer(ADA, opened[0].ask.ask_id, "deny")
        ended = await anext(inbox)
    assert isinstance(ended, AskEnded) and ended.ask_id == opened[0].ask.ask_id
    await inbox.aclose()


async def test_closing_parks_what_waits_and_ends_the_watches(made: Any, tmp_path: Path) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    await until(app, session, AskOpened)
    await app.close()
    state = await app.local.engine.load(session)
    assert state.run is not None and len(state.asks) == 1
    with pytest.raises(CounterfoilError, match="shutting down"):
        await app.prompt(ADA, session, text_parts("more"))


# ---- lists --------------------------------------------------------------------------------------------------


async def test_lists_come_in_pages_and_by_filter(made: Any, tmp_path: Path) -> None:
    app = await made()
    made_ids = [(await app.create(ADA, new(tmp_path, title=f"job {n % 2}"))).session_id for n in range(7)]
    await app.create(EVE, new(tmp_path))
    pages, token = [], ""
    while True:
        page = await app.list_sessions(ADA, page_size=3, page_token=token)
        pages.append([s.session_id for s in page.sessions])
        token = page.next_token
        if not token:
            break
    assert [len(page) for page in pages] == [3, 3, 1]
    assert sorted(itertools.chain(*pages)) == sorted(made_ids)
    assert len((await app.list_sessions(ADA, text="JOB 1")).sessions) == 3
    assert len((await app.list_sessions(ADA, status="running")).sessions) == 0
    for wrong in ({"page_size": 0}, {"page_size": 5_000}, {"page_token": "ses_nobody"}):
        with pytest.raises(UsageError):
            await app.list_sessions(ADA, **wrong)


async def test_rename_fork_and_delete(made: Any, tmp_path: Path) -> None:
    app = await made()
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.rename(ADA, session, "mine")
    assert (await app.get(ADA, session)).title == "mine"
    copy = await app.fork(ADA, session)
    assert (await app.get(ADA, copy)).kind == "fork"
    await app.delete(ADA, session)
    with pytest.raises(SessionNotFound):
        await app.get(ADA, session)


# ---- who may ------------------------------------------------------------------------------------------------

FORBIDDEN_AFTER = {"owner": "", "approver": "detail drive", "viewer": "detail drive answer"}
NEEDS: dict[str, tuple[str, Callable[[Application, Caller, SessionID, AskID], Any]]] = {
    "get": ("read", lambda a, c, s, q: a.get(c, s)),
    "rename": ("drive", lambda a, c, s, q: a.rename(c, s, "t")),
    "fork": ("drive", lambda a, c, s, q: a.fork(c, s)),
    "set_mode": ("drive", lambda a, c, s, q: a.set_mode(c, s, "plan")),
    "compact": ("drive", lambda a, c, s, q: a.compact(c, s)),
    "steer": ("drive", lambda a, c, s, q: a.steer(c, s, "x")),
    "watch": ("read", lambda a, c, s, q: anext(a.watch(c, s))),
    "list_asks": ("read", lambda a, c, s, q: a.list_asks(c, s)),
    "list_grants": ("read", lambda a, c, s, q: a.list_grants(c, s)),
    "list_reviews": ("read", lambda a, c, s, q: a.list_reviews(c, s)),
    "transcript": ("read", lambda a, c, s, q: a.transcript(c, s)),
    "inspect_call": ("read", lambda a, c, s, q: a.inspect_call(c, s, ToolCallID("call_x"))),
    "verify_log": ("read", lambda a, c, s, q: a.verify_log(c, s)),
    "prompt": ("drive", lambda a, c, s, q: a.prompt(c, s, text_parts("x"))),
    "resume": ("drive", lambda a, c, s, q: a.resume(c, s)),
    "cancel": ("drive", lambda a, c, s, q: a.cancel(c, s)),
    "revoke_grant": ("drive", lambda a, c, s, q: a.revoke_grant(c, s, "Bash")),
    "acknowledge": ("answer", lambda a, c, s, q: a.acknowledge(c, s, ReviewID("rev_x"), 1)),
    "review_detail": ("detail", lambda a, c, s, q: a.review_detail(c, s, ReviewID("rev_x"), 1)),
    "answer": ("answer", lambda a, c, s, q: a.answer(c, q, "deny")),
    "delete": ("drive", lambda a, c, s, q: a.delete(c, s)),
}


@pytest.mark.parametrize("operation", NEEDS)
@pytest.mark.parametrize("role", ["owner", "approver", "viewer"])
async def test_who_may_do_what(made: Any, tmp_path: Path, operation: str, role: Role) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    ask = (await until(app, session, AskOpened)).ask
    needs, call = NEEDS[operation]
    name = "ada" if role == "owner" else "bob"
    caller = Caller(principal=Principal(kind="user", name=name), role=role, owner="" if role == "owner" else "ada")
    refused: BaseException | None = None
    try:
        await call(app, caller, session, ask.ask_id)
    except CounterfoilError as fault:
        refused = fault
    assert isinstance(refused, Forbidden) == (needs in FORBIDDEN_AFTER[role].split()), refused


@pytest.mark.parametrize("operation", NEEDS)
async def test_a_stranger_cant_tell_a_foreign_session_from_a_missing_one(
    made: Any, tmp_path: Path, operation: str
) -> None:
    app = await made(turns(WRITE))
    session = (await app.create(ADA, new(tmp_path))).session_id
    await app.prompt(ADA, session, text_parts("go"))
    ask = (await until(app, session, AskOpened)).ask
    before = [envelope_of(row) async for row in rows(app.local.store, session)]
    _, call = NEEDS[operation]
    said = []
    for target, question in ((session, ask.ask_id), (SessionID("ses_" + "0" * 26), AskID("ask_" + "0" * 26))):
        with pytest.raises((SessionNotFound, AskNotFound)) as fault:
            await call(app, EVE, target, question)
        said.append((type(fault.value), fault.value.message.replace(target, "ID").replace(question, "ID")))
    assert said[0] == said[1]
    assert [envelope_of(row) async for row in rows(app.local.store, session)] == before, "nothing changed"


async def test_only_an_owner_makes_sessions(made: Any, tmp_path: Path) -> None:
    app = await made()
    viewer = Caller(principal=Principal(kind="user", name="bob"), role="viewer", owner="ada")
    with pytest.raises(Forbidden):
        await app.create(viewer, new(tmp_path))
    assert await _started(app, tmp_path) == START + 1


async def _started(app: Application, tmp_path: Path) -> int:
    session = (await app.create(ADA, new(tmp_path))).session_id
    assert not [e for e in await app.transcript(ADA, session) if isinstance(e.event, RunStarted)]
    return (await app.local.store.head(session)).offset
