"""Open asks: as the log has them, and no row is read twice."""

from __future__ import annotations

import asyncio

from counterfoil.events import AskOpened, RunFinished, StoredEvent
from counterfoil.identity import START, Offset, SessionID
from counterfoil.service.questions import Questions
from counterfoil.stores.memory import MemoryStore
from tests.support.harness import ME, CountingTool, Rig, call, first, turn


class Counted(MemoryStore):
    """A store that says which rows were read."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        found = await super().read(session, after, limit)
        self.given += [row.offset for row in found]
        return found


async def test_what_is_open_follows_the_log_and_each_row_is_read_once() -> None:
    store = Counted()
    rig = Rig({"turns": [turn(call("Do")), turn(call("Do")), turn(text="done")]}, CountingTool("Do"), store=store)
    questions = Questions(store)
    async with await rig.session("default") as session:
        run = asyncio.ensure_future(session.prompt("go"))
        last = 0
        for _ in range(2):
            ask = (await first(session, AskOpened)).ask
            store.given.clear()
            summary = await store.summary(session.id)
            (found,) = await questions.of(summary)
            assert (found.ask, found.session_id) == (ask, session.id)
            assert len(store.given) == len(set(store.given)) > 0
            assert min(store.given) > last
            last = max(store.given)
            store.given.clear()
            assert await questions.of(summary) == [found]
            assert store.given == [], "there was nothing new to read"
            await session.answer(ask.ask_id, "allow", principal=ME)
        await run
        assert isinstance((await rig.log(session.id))[-1], RunFinished)
        assert await questions.of(await store.summary(session.id)) == []
