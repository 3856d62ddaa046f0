"""Who may: a table of every operation and every role; a stranger can't tell a foreign id from a missing one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from counterfoil.client.interface import Client
from counterfoil.errors import AskNotFound, CounterfoilError, Forbidden, SessionNotFound
from counterfoil.identity import AskID, HookID, SessionID, ToolCallID
from tests.client.world import WRITE, World, asked, begin, turns, whole_log

CALL, REVIEW = ToolCallID("call_" + "0" * 32), HookID("rev_" + "0" * 32)
Operation = Callable[[Client, SessionID, AskID], Awaitable[Any]]


async def first(stream: AsyncGenerator[Any, None]) -> Any:
    try:
        return await anext(stream)
    finally:
        await stream.aclose()


OPERATIONS: dict[str, tuple[str, Operation]] = {
    "get": ("read", lambda c, s, a: c.get(s)),
    "rename": ("drive", lambda c, s, a: c.rename(s, "t")),
    "fork": ("drive", lambda c, s, a: c.fork(s)),
    "delete": ("drive", lambda c, s, a: c.delete(s)),
    "set_mode": ("drive", lambda c, s, a: c.set_mode(s, "plan")),
    "set_model": ("drive", lambda c, s, a: c.set_model(s, "scripted", "m")),
    "compact": ("drive", lambda c, s, a: c.compact(s)),
    "export": ("read", lambda c, s, a: first(c.export(s))),
    "prompt": ("drive", lambda c, s, a: c.prompt(s, "x")),
    "resume": ("drive", lambda c, s, a: c.resume(s)),
    "steer": ("drive", lambda c, s, a: c.steer(s, "x")),
    "cancel": ("drive", lambda c, s, a: c.cancel(s)),
    "cancel_call": ("drive", lambda c, s, a: c.cancel_call(s, CALL)),
    "watch": ("read", lambda c, s, a: first(c.watch(s))),
    "list_asks": ("read", lambda c, s, a: c.list_asks(s)),
    "get_ask": ("read", lambda c, s, a: c.get_ask(a)),
    "answer": ("answer", lambda c, s, a: c.answer(a, "deny")),
    "list_grants": ("read", lambda c, s, a: c.list_grants(s)),
    "revoke_grant": ("drive", lambda c, s, a: c.revoke_grant(s, "Bash")),
    "list_reviews": ("read", lambda c, s, a: c.list_reviews(s)),
    "get_detail": ("detail", lambda c, s, a: c.get_detail(s, REVIEW, 1)),
    "acknowledge": ("answer", lambda c, s, a: c.acknowledge(s, REVIEW, 1)),
    "get_transcript": ("read", lambda c, s, a: c.get_transcript(s)),
    "inspect_call": ("read", lambda c, s, a: c.inspect_call(s, CALL)),
    "verify_log": ("read", lambda c, s, a: c.verify_log(s)),
}
MAY = {"owner": {"read", "detail", "answer", "drive"}, "approver": {"read", "answer"}, "viewer": {"read"}}
WITHOUT_AN_ID = {"create", "list_sessions", "watch_all", "get_status", "get_info", "close"}


def test_no_operation_is_left_out() -> None:
    offered = {name for part in Client.__mro__ for name in vars(part) if not name.startswith("_")}
    assert offered == OPERATIONS.keys() | WITHOUT_AN_ID


@pytest.mark.parametrize("name", OPERATIONS)
async def test_each_role_may_what_it_is_for(world: World, name: str) -> None:
    needs, operation = OPERATIONS[name]
    service = await world.serve(turns(WRITE))
    for role, allowed in MAY.items():
        session = await begin(service.client())
        ask = (await asked(service.client(), session)).ask.ask_id
        caller = service.client() if role == "owner" else service.client("bob", role, of="ada")  # type: ignore[arg-type]
        before = await whole_log(service.client(), session)
        refused: CounterfoilError | None = None
        try:
            await operation(caller, session, ask)
        except CounterfoilError as fault:
            refused = fault
        assert isinstance(refused, Forbidden) == (needs not in allowed), (role, refused)
        if isinstance(refused, Forbidden):
            assert await whole_log(service.client(), session) == before


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("role", ["owner", "approver", "viewer"])
async def test_a_stranger_cant_tell_what_is_anothers_from_what_isnt_there(world: World, name: str, role: Any) -> None:
    service = await world.serve(turns(WRITE))
    client = service.client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    before = await whole_log(client, session)
    stranger = service.client("eve", role, of="" if role == "owner" else "eve")
    said = []
    for target, question in ((session, ask), (SessionID("ses_" + "0" * 26), AskID("ask_" + "0" * 26))):
        with pytest.raises(CounterfoilError) as fault:
            await OPERATIONS[name][1](stranger, target, question)
        text = str(fault.value).replace(target, "ID").replace(question, "ID")
        said.append((type(fault.value), text))
    assert said[0] == said[1]
    assert said[0][0] in (SessionNotFound, AskNotFound, Forbidden)
    assert said[0][0] is not Forbidden or name in ("answer", "get_ask")
    assert await whole_log(client, session) == before, "nothing changed"


async def test_lists_hold_what_is_ones_own(world: World) -> None:
    service = await world.serve(turns(WRITE))
    session = await begin(service.client())
    await asked(service.client(), session)
    eve, viewer = service.client("eve"), service.client("bob", "viewer", of="ada")
    assert (await eve.list_sessions()).sessions == () and await eve.list_asks() == ()
    assert (await eve.list_sessions(owner="ada")).sessions == ()
    assert [s.session_id for s in (await viewer.list_sessions()).sessions] == [session]
    assert len(await viewer.list_asks()) == 1


@pytest.mark.parametrize("role", ["approver", "viewer"])
async def test_whoever_only_looks_makes_no_session(world: World, role: Any) -> None:
    service = await world.serve()
    with pytest.raises(Forbidden):
        await service.client("bob", role, of="ada").create()
    assert (await service.client().list_sessions()).sessions == ()


@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_id_that_nobody_made_is_simply_not_there(world: World, name: str) -> None:
    client = (await world.serve()).client()
    await client.create()
    for hostile in ("ses_\ud800", "ses_\0", "../../etc", "ses_" + "x" * 100_000, "' OR 1=1 --", "ses_%"):
        with pytest.raises((SessionNotFound, AskNotFound)):
            await OPERATIONS[name][1](client, SessionID(hostile), AskID(hostile))
