"""Field case S5: an event of 2 MB, 10 000 events, 20 MB. What is read and written is counted, not timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from counterfoil import events as ev
from counterfoil.engine.engine import PAGE
from counterfoil.events import Entry, StoredEvent
from counterfoil.identity import START, Offset, RandomIds, RunID, SessionID, arguments_digest
from counterfoil.ports import EventStore, Holder, Lease, SessionSummary, Stamped
from counterfoil.state import encode_snapshot
from counterfoil.state.bounds import LOG_BYTES, MODEL_CHARACTERS
from counterfoil.stores.memory import MemoryStore
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import SqliteStore
from tests.scenarios.improviser import ORIGIN, Improviser
from tests.support.harness import ME, CountingTool, Rig
from tests.support.strategies import SOAK

TURNS = 1_667 if not SOAK else 8_000
"""Six events each: 10 000 in the short form."""
RESULT = 12_000
BIG = 2_000_000
IDS = RandomIds()


def size(row: StoredEvent) -> int:
    return len(row.public) + len(row.private or b"")


class Counts:
    """What went through a store."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.rows_read = self.bytes_read = self.bytes_written = self.snapshots = self.snapshot_bytes = 0

    def page(self, rows: Sequence[StoredEvent]) -> None:
        self.pages.append(sum(map(size, rows)))
        self.rows_read += len(rows)
        self.bytes_read += self.pages[-1]


class CountingMemory(MemoryStore):
    """A memory store that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        rows = await super().read(session, after, limit)
        self.counts.page(rows)
        return rows

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        rows = await super().append(lease, expected, batch, summary)
        self.counts.bytes_written += sum(map(size, rows))
        return rows

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        await super().save_snapshot(lease, offset, data)
        self.counts.snapshots += 1
        self.counts.snapshot_bytes += len(data)


class CountingSqlite(SqliteStore):
    """A database that counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.counts = Counts()

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        rows = await super().read(session, after, limit)
        self.counts.page(rows)
        return rows


def turn_of(number: int) -> list[Entry]:
    """One turn with one call, as a run logs it."""
    call, arguments = IDS.call(), {"n": number}
    digest = arguments_digest(arguments)
    text = f"{number} ".ljust(RESULT, "x")
    accepted = ev.CallAccepted(
        tool_call_id=call, turn=number, position=0, tool="act", arguments=arguments, arguments_digest=digest
    )
    return [
        Entry(ev.TurnStarted(turn=number, attempt=1, provider="improvised", model="m")),
        Entry(ev.AssistantMessage(turn=number, text="")),
        Entry(accepted, ev.CallReplay(origin=ORIGIN, pairing_id="call_0")),
        Entry(ev.TurnFinished(turn=number, usage=ev.Usage(requests=1), stop_reason="tool_use", model="m")),
        Entry(ev.CallStarted(tool_call_id=call, arguments_digest=digest)),
        Entry(ev.CallFinished(tool_call_id=call, status="ok", parts=ev.text_parts(text), executed="yes")),
    ]


async def write_big(store: EventStore) -> SessionID:
    """A session of more than 10 000 events and 20 MB, whose prompt has 2 MB. No snapshot."""
    session, run = IDS.session(), IDS.run()
    lease = await store.acquire(session, Holder(pid=1, host="elsewhere"))
    created = ev.SessionCreated(session_id=session, owner=ME, workspace="/w", provider="improvised", model="m")
    entries = [Entry(ev.RunStarted(run_id=run)), Entry(ev.UserPrompt(parts=ev.text_parts("p" * BIG)))]
    for number in range(1, TURNS + 1):
        entries += turn_of(number)
    entries.append(Entry(ev.RunFinished(run_id=run, stop_reason="end_turn", turns=TURNS)))
    summary = SessionSummary(session_id=session, owner=ME.name)
    await store.append(lease, START, [_stamp(Entry(created), None, 0)], summary)
    offset = Offset(1)
    for start in range(0, len(entries), 500):
        batch = [_stamp(entry, run, at + 1) for at, entry in enumerate(entries[start : start + 500], start)]
        offset = (await store.append(lease, offset, batch))[-1].offset
    await store.release(lease)
    return session


def _stamp(entry: Entry, run: RunID | None, seq: int) -> Stamped:
    return Stamped(entry=entry, run_id=run, seq=seq if run else None, recorded_at=1_700_000_000_000_000 + seq)


def rig_on(store: EventStore) -> Rig:
    return Rig({}, CountingTool("act"), store=store, provider=lambda meta: Improviser())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "database"])
async def test_s5_a_session_of_10_000_events_and_20_mb_opens_in_pages_and_reads_each_row_once(
    kind: str, tmp_path: Path
) -> None:
    store = CountingMemory() if kind == "memory" else CountingSqlite(tmp_path)
    session_id = await write_big(store)
    length = (await store.head(session_id)).offset
    rig = rig_on(store)
    assert length > 10_000
    async with await rig.engine.open(session_id) as session:
        counts = store.counts
        assert counts.rows_read == length and counts.bytes_read > 20_000_000
        assert len(counts.pages) <= length // PAGE + 2
        assert max(counts.pages) < 3 * PAGE * RESULT // 6 + BIG, "one page is held at a time"
        before = counts.rows_read
        assert (await session.prompt("go on")).stop_reason == "end_turn"
        assert counts.rows_read == before, "a run reads nothing of the log"
        state = session.state
    store.counts = Counts()
    assert await rig.engine.load(session_id) == state
    assert store.counts.rows_read < 100 and len(store.counts.pages) <= 2, "a snapshot and the tail"
    await store.close()


async def test_s5_what_a_turn_writes_does_not_grow_with_the_session() -> None:
    store = CountingMemory()
    session_id = await write_big(store)
    rig = rig_on(store)
    async with await rig.engine.open(session_id) as session:
        written = store.counts.bytes_written
        await session.prompt("go on")
        assert store.counts.bytes_written - written < 5_000
        assert store.counts.snapshots == 1
        for _ in range(20):
            await session.prompt("and on")
        assert store.counts.snapshots == 1, "snapshots come with a share of the log, not with each run"
    copied = store.counts.rows_read
    await rig.engine.fork(session_id)
    length = (await store.head(session_id)).offset
    assert store.counts.rows_read - copied <= length + 1, "a fork reads each row once"


async def test_s5_a_session_that_is_opened_for_each_prompt_gets_snapshots_too() -> None:
    store = CountingMemory()
    rig = rig_on(store)
    async with await rig.session() as session:
        await session.prompt("go")
    for _ in range(300 if not SOAK else 3_000):
        length, before = (await store.head(session.id)).offset, store.counts.rows_read
        async with await rig.engine.open(session.id) as session:
            assert store.counts.rows_read - before <= max(64, length // 16) + 10, "a tail, not the log"
            await session.prompt("on")


@pytest.mark.parametrize("turns", [200, 400])
async def test_s5_all_snapshots_together_stay_in_proportion_to_the_log(turns: int) -> None:
    store = CountingMemory()
    model = Improviser()
    tool = CountingTool("act", behaviour=lambda ctx, arguments: f"{ctx.tool_call_id} ".ljust(2_000, "y"))
    rig = Rig({}, tool, store=store, provider=lambda meta: model)
    model.plan = [[("act", "call_0", {"n": n})] for n in range(turns)]
    async with await rig.session(limits=ev.Limits(max_turns=0, max_tool_calls=0, max_repeated_turns=0)) as session:
        assert (await session.prompt("go")).stop_reason == "end_turn"
        whole = len(encode_snapshot(session.state))
    assert store.counts.rows_read == 0 and 1 <= store.counts.snapshots <= 12
    assert store.counts.snapshot_bytes <= 6 * whole


async def test_s5_one_event_of_2_mb_is_stored_sent_watched_and_read_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    rig = rig_on(store)
    text = "é\u2028" * (BIG // 5)
    async with await rig.session() as session:
        watch = session.watch()
        assert (await session.prompt(text)).stop_reason == "end_turn"
    prompts = [e.event async for e in watch if isinstance(e.event, ev.UserPrompt)]
    assert [ev.text_of(p.parts) for p in prompts] == [text]
    rows = await store.read(session.id, START, 1000)
    assert max(map(size, rows)) >= 2_000_000 - 10 and verify(rows) is None
    assert await rig.engine.load(session.id) == session.state
    await store.close()


async def test_s5_a_result_without_bound_is_cut_for_the_log_and_more_for_the_model() -> None:
    model = Improviser()
    tool = CountingTool("act", behaviour=lambda ctx, arguments: "z" * 20_000_000)
    rig = Rig({}, tool, provider=lambda meta: model)
    model.plan = [[("act", "call_0", {})]]
    async with await rig.session() as session:
        await session.prompt("go")
    (finished,) = [e for e in await rig.log(session.id) if isinstance(e, ev.CallFinished)]
    (part,) = finished.parts
    assert isinstance(part, ev.TextPart) and part.truncated_bytes > 19_000_000
    assert len(part.text.encode()) <= LOG_BYTES + 100
    assert len(encode_snapshot(session.state)) < 2 * MODEL_CHARACTERS
