"""Any sequence of operations does to the SQLite store what it does to the memory store."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from counterfoil.errors import StoreError
from counterfoil.identity import Offset, RunID, SessionID
from counterfoil.ports import EventStore, Lease, Stamped
from counterfoil.ports.store import LetterNo
from counterfoil.stores.memory import MemoryStore
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import SqliteStore
from tests.stores.made import ME, note, summary_of
from tests.support.strategies import examples

SESSIONS = [SessionID(name) for name in ("ses_a", "ses_b", "ses_c")]
batches = st.lists(
    st.builds(
        lambda text, pairing, run: note(text, pairing=pairing, run=run, seq=None if run is None else len(text)),
        st.text(max_size=20),
        st.sampled_from(["", "p1", "p2"]),
        st.sampled_from([None, RunID("run_1"), RunID("run_2"), RunID("run_3")]),
    ),
    max_size=4,
)


class Stores(RuleBasedStateMachine):
    """Two stores, one of them on a disk, that are told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="counterfoil-test-"))
        self.loop = asyncio.new_event_loop()
        self.sqlite = SqliteStore(self.folder)
        self.memory = MemoryStore()
        self.leases: list[Lease] = []
        self.posted: list[LetterNo] = []
        self.clock = 0

    def teardown(self) -> None:
        self.loop.run_until_complete(self.sqlite.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def both(self, ask: Callable[[EventStore], Awaitable[Any]]) -> Any:
        """Ask both; both must answer, or refuse, alike."""

        async def answer(store: EventStore) -> Any:
            try:
                return await ask(store)
            except StoreError as fault:
                return type(fault), str(fault)

        ours, model = (self.loop.run_until_complete(answer(store)) for store in (self.sqlite, self.memory))
        assert ours == model
        return ours

    @initialize()
    def begin(self) -> None:
        self.take(SESSIONS[0])

    @rule(session=st.sampled_from(SESSIONS))
    def take(self, session: SessionID) -> None:
        got = self.both(lambda store: store.acquire(session, ME))
        if isinstance(got, Lease):
            self.leases.append(got)

    @rule(which=st.integers(0, 20), batch=batches, wrong=st.sampled_from([0, 0, 0, 0, -1, 1]), entry=st.booleans())
    def append(self, which: int, batch: list[Stamped], wrong: int, entry: bool) -> None:
        lease = self.lease(which)
        self.clock += 1
        dated = [Stamped(entry=one.entry, run_id=one.run_id, seq=one.seq, recorded_at=self.clock) for one in batch]
        end = Offset(max(0, self.length(lease.session_id) + wrong))
        summary = summary_of(lease.session_id, str(self.clock)) if entry else None
        self.both(lambda store: store.append(lease, end, dated, summary))

    @rule(which=st.integers(0, 20), data=st.binary(max_size=30))
    def snapshot(self, which: int, data: bytes) -> None:
        lease = self.lease(which)
        end = Offset(self.length(lease.session_id))
        self.both(lambda store: store.save_snapshot(lease, end, data))

    @rule(which=st.integers(0, 20))
    def give_back(self, which: int) -> None:
        lease = self.lease(which)
        self.both(lambda store: store.release(lease))

    @rule(which=st.integers(0, 20))
    def delete(self, which: int) -> None:
        lease = self.lease(which)
        self.both(lambda store: store.delete(lease))

    @rule(session=st.sampled_from(SESSIONS), body=st.binary(max_size=5))
    def post(self, session: SessionID, body: bytes) -> None:
        got = self.both(lambda store: store.post(session, body))
        if isinstance(got, int):
            self.posted.append(LetterNo(got))

    @rule(which=st.integers(0, 20), letter=st.integers(0, 10), body=st.binary(max_size=5))
    def reply(self, which: int, letter: int, body: bytes) -> None:
        lease, number = self.lease(which), (self.posted or [LetterNo(1)])[-1 - letter % max(1, len(self.posted))]
        self.both(lambda store: store.reply(lease, number, body))
        self.both(lambda store: store.replied(lease.session_id, number))

    @rule()
    def reopen(self) -> None:
        """Every lease ends; the fences go on."""
        for lease in self.leases:
            self.loop.run_until_complete(self.memory.release(lease))
        for lease in self.leases:
            self.loop.run_until_complete(self.sqlite.release(lease))
        self.loop.run_until_complete(self.sqlite.close())
        self.sqlite = SqliteStore(self.folder)

    @rule(session=st.sampled_from(SESSIONS), after=st.integers(-2, 12), limit=st.integers(0, 5))
    def read(self, session: SessionID, after: int, limit: int) -> None:
        self.both(lambda store: store.read(session, Offset(after), limit))

    @invariant()
    def both_tell_the_same(self) -> None:
        self.both(lambda store: store.sessions())
        for session in SESSIONS:
            rows = self.both(lambda store, s=session: store.read(s))  # type: ignore[misc]
            assert isinstance(rows, tuple) or verify(rows) is None
            self.both(lambda store, s=session: store.head(s))  # type: ignore[misc]
            self.both(lambda store, s=session: store.summary(s))  # type: ignore[misc]
            self.both(lambda store, s=session: store.load_snapshot(s))  # type: ignore[misc]
            self.both(lambda store, s=session: store.letters(s))  # type: ignore[misc]

    def lease(self, which: int) -> Lease:
        """One of the leases that were ever given, the latest ones most often."""
        return self.leases[-1 - which % len(self.leases)] if which < 10 else self.leases[which % len(self.leases)]

    def length(self, session: SessionID) -> int:
        try:
            return self.loop.run_until_complete(self.memory.head(session)).offset
        except StoreError:
            return 0


TestStores = Stores.TestCase
TestStores.settings = examples(25)
