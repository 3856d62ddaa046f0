"""Sessions: made, listed, renamed, copied, deleted, exported."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from counterfoil.errors import ConfigError, SessionBusy, SessionHeld, SessionNotFound, UsageError
from counterfoil.events import Limits, SessionCreated, SessionUpdated
from counterfoil.events.codec import decode_event
from counterfoil.identity import Offset
from tests.client.world import WRITE, World, asked, begin, finished, turns, until, whole_log


async def test_a_session_begins_with_what_is_given_and_the_services_defaults(world: World) -> None:
    client = (await world.serve()).client()
    made = await client.create(title="mine", mode="plan", limits=Limits(max_turns=3))
    assert (made.owner, made.title, made.provider, made.model) == ("ada", "mine", "scripted", "m")
    assert (made.workspace, made.status) == (str(world.workspace), "idle")
    (event,) = [e.event for e in await whole_log(client, made.session_id)]
    assert isinstance(event, SessionCreated)
    assert (event.mode, event.limits.max_turns) == ("plan", 3)
    assert await client.get(made.session_id) == made


@pytest.mark.parametrize("workspace", ["missing", "a\0b", "/missing/at/all"])
async def test_a_workspace_that_isnt_there_is_refused_by_name(world: World, workspace: str) -> None:
    client = (await world.serve()).client()
    with pytest.raises(UsageError, match="workspace"):
        await client.create(workspace=workspace)
    assert (await client.list_sessions()).sessions == ()


async def test_lists_are_paged_filtered_and_the_latest_is_first(world: World) -> None:
    service = await world.serve()
    client = service.client()
    made = [(await client.create(title=f"Job {n % 3}")).session_id for n in range(11)]
    await service.client("eve").create(title="Job 1")
    pages, token = [], ""
    while True:
        page = await client.list_sessions(page_size=4, page_token=token)
        pages.append([s.session_id for s in page.sessions])
        token = page.next_token
        if not token:
            break
    assert [len(page) for page in pages] == [4, 4, 3]
    assert list(itertools.chain(*pages)) == list(reversed(made))
    assert len((await client.list_sessions(text="job 1")).sessions) == 4
    assert len((await client.list_sessions(text="job 1", owner="ada")).sessions) == 4
    assert (await client.list_sessions(owner="eve")).sessions == ()
    assert (await client.list_sessions(status="running")).sessions == ()
    assert len((await client.list_sessions(status="idle")).sessions) == 11


@pytest.mark.parametrize(("size", "token"), [(0, ""), (-1, ""), (1_001, ""), (5, "ses_nobody")])
async def test_a_page_that_isnt_one_is_refused(world: World, size: int, token: str) -> None:
    client = (await world.serve()).client()
    await client.create()
    with pytest.raises(UsageError):
        await client.list_sessions(page_size=size, page_token=token)


async def test_the_list_says_what_each_session_does(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    (waiting,) = (await client.list_sessions(status="awaiting")).sessions
    assert (waiting.session_id, waiting.open_asks) == (session, 1)
    await client.answer(found.ask.ask_id, "allow")
    await finished(client, session)
    (done,) = (await client.list_sessions(status="completed")).sessions
    assert (done.session_id, done.open_asks) == (session, 0)


async def test_a_new_title_is_in_the_list_and_in_the_log(world: World) -> None:
    client = (await world.serve()).client()
    session = (await client.create()).session_id
    await client.rename(session, "höher 🗂")
    assert (await client.get(session)).title == "höher 🗂"
    assert [s.session_id for s in (await client.list_sessions(text="HÖHER")).sessions] == [session]
    assert (await until(client, session, SessionUpdated)).title == "höher 🗂"


async def test_a_fork_has_the_log_up_to_where_it_was_cut_and_goes_its_own_way(world: World) -> None:
    client = (await world.serve(turns())).client()
    session = await begin(client)
    await finished(client, session)
    log = await whole_log(client, session)
    copy = await client.fork(session, at=Offset(3), title="another way")
    assert [e.event for e in (await whole_log(client, copy))[1:3]] == [e.event for e in log[1:3]]
    found = await client.get(copy)
    assert (found.kind, found.title, found.owner, found.parent_session_id) == ("fork", "another way", "ada", session)
    before = len(await whole_log(client, copy))
    await client.prompt(copy, "differently")
    await finished(client, copy, Offset(before))
    assert await whole_log(client, session) == log, "the original is as it was"
    with pytest.raises(UsageError):
        await client.fork(session, at=Offset(10_000))


async def test_a_deleted_session_is_gone_with_what_was_kept_beside_it_and_its_watches_end(world: World) -> None:
    client = (await world.serve()).client()
    session = (await client.create()).session_id
    beside = world.root / "state" / "outputs" / session
    beside.mkdir(parents=True)
    watch = client.watch(session)
    await anext(watch)
    await client.delete(session)
    async for _ in watch:
        pass
    assert not beside.exists()
    for gone in (client.get(session), client.delete(session), client.prompt(session, "go")):
        with pytest.raises(SessionNotFound):
            await gone
    assert (await client.list_sessions()).sessions == ()


async def test_a_session_that_runs_isnt_deleted(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    await asked(client, session)
    with pytest.raises(SessionHeld):
        await client.delete(session)
    with pytest.raises(SessionBusy):
        await client.prompt(session, "again")
    assert (await client.get(session)).status == "awaiting"


async def test_mode_and_model_change_for_what_comes(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = (await client.create()).session_id
    await client.set_mode(session, "accept_edits")
    await client.set_model(session, "scripted", "other")
    with pytest.raises(ConfigError):
        await client.set_model(session, "nobody", "m")
    await client.prompt(session, "go")
    assert (await finished(client, session)).stop_reason == "end_turn"
    assert (world.workspace / "a.txt").read_text() == "x", "nobody was asked"
    assert (await client.get(session)).model == "other"


async def test_there_is_nothing_to_compact_in_a_new_session(world: World) -> None:
    client = (await world.serve()).client()
    assert not await client.compact((await client.create()).session_id)


async def test_an_export_is_the_public_log_line_by_line(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client, mode="accept_edits")
    await finished(client, session)
    lines = b"".join([chunk async for chunk in client.export(session)]).splitlines()
    log = await whole_log(client, session)
    assert [json.loads(line)["offset"] for line in lines] == [e.offset for e in log]
    for line, envelope in zip(lines, log, strict=True):
        event = json.loads(line)["event"]
        assert decode_event(event["kind"], json.dumps(event).encode()) == envelope.event


async def test_a_transcript_page_is_bounded_and_says_where_it_goes_on(world: World) -> None:
    client = (await world.serve()).client()
    session = await begin(client)
    await finished(client, session)
    whole = (await client.get_transcript(session)).events
    size = random.Random(3).randint(1, len(whole) - 1)
    page = await client.get_transcript(session, page_size=size)
    assert page.events == whole[:size] and page.next_offset is not None
    assert page.next_offset == whole[size - 1].offset
    rest = await client.get_transcript(session, page.next_offset)
    assert rest.events == whole[size:] and rest.next_offset is None
    for wrong in (0, 1_001):
        with pytest.raises(UsageError):
            await client.get_transcript(session, page_size=wrong)


async def test_info_says_who_one_is_taken_for(world: World) -> None:
    service = await world.serve()
    info = await service.client("bob", "viewer", of="ada").get_info()
    assert (info.principal_name, info.role) == ("bob", "viewer")
    assert info.version and "watch" in info.capabilities
