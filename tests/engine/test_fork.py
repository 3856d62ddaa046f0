"""Forks: copied calls keep their ids, what was open is closed, nothing that was allowed moves along."""

from __future__ import annotations

import pytest

from counterfoil.errors import UsageError
from counterfoil.events import AskOpened, CallAccepted, CallFinished, SessionCreated, SessionKind
from counterfoil.identity import START, Offset
from counterfoil.stores.rows import verify
from tests.engine.test_asks import park_at_ask
from tests.support.harness import CountingTool, Rig, call, turn


async def test_a_fork_keeps_the_ids_of_copied_calls_and_new_calls_get_new_ones() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act")), {"text": "one"}, turn(call("act")), {"text": "two"}]}, tool)
    async with await rig.session() as session:
        await session.prompt("go")
    fork = await rig.engine.fork(session.id)
    async with await rig.engine.open(fork) as copy:
        assert copy.state.meta.kind is SessionKind.FORK
        assert (await copy.prompt("again")).text == "two"
    old = [e.tool_call_id for e in await rig.log(session.id) if isinstance(e, CallAccepted)]
    new = [e.tool_call_id for e in await rig.log(fork) if isinstance(e, CallAccepted)]
    assert new[0] == old[0] and len(new) == 2 and new[1] not in old
    assert verify(await rig.store.read(fork, START, 1000)) is None


async def test_a_fork_at_any_offset_loads_and_has_nothing_open() -> None:
    tool = CountingTool("act")
    rig = Rig({"turns": [turn(call("act", n=1), call("act", n=2)), {"text": "done"}]}, tool)
    async with await rig.session("default") as session:
        ask = await park_at_ask(session)
    head = (await rig.store.head(session.id)).offset
    for at in range(1, head + 1):
        fork = await rig.engine.fork(session.id, at=Offset(at))
        state = await rig.engine.load(fork)
        assert state.run is None and not state.asks and not state.open_calls()
        log = await rig.log(fork)
        accepted = [e for e in log if isinstance(e, CallAccepted)]
        assert len([e for e in log if isinstance(e, CallFinished)]) == len(accepted)
    assert tool.runs == [] and ask.ask_id in (await rig.engine.load(session.id)).asks
    assert [e for e in log if isinstance(e, AskOpened)]


async def test_a_fork_of_a_fork_names_every_session_that_it_was_copied_from() -> None:
    rig = Rig(
        {"turns": [turn(call("act")), {"text": "one"}]},
        CountingTool("act"),
    )
    async with await rig.session("default") as session:
        await park_at_ask(session)
    first = await rig.engine.fork(session.id)
    second = await rig.engine.fork(first)
    (created,) = [e for e in await rig.log(second) if isinstance(e, SessionCreated)]
    assert created.relationship is not None and created.relationship.copied_from == (first, session.id)
    assert (await rig.engine.load(second)).run is None


async def test_a_fork_at_an_offset_that_is_not_there_is_refused() -> None:
    rig = Rig({"turns": []})
    async with await rig.session() as session:
        for at in (0, 99):
            with pytest.raises(UsageError):
                await rig.engine.fork(session.id, at=Offset(at))
    assert len(await rig.store.sessions()) == 1
