"""The one place where a session's events are published: numbered, appended, folded, then sent to watchers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from counterfoil.engine.summary import after
from counterfoil.engine.transcript import Transcript
from counterfoil.engine.watch import Hub, Watch
from counterfoil.errors import StoreError
from counterfoil.events import (
    AssistantMessage,
    Entry,
    Envelope,
    Event,
    HookRecorded,
    MessageDelta,
    RunFinished,
    RunStarted,
    StoredEvent,
    TurnStarted,
)
from counterfoil.identity import START, Offset, Revision, RunID
from counterfoil.ports import Clock, EventStore, Lease, SessionSummary, Stamped
from counterfoil.state import Row, SessionState, apply, encode_snapshot

log = logging.getLogger("counterfoil.engine")

SEQ_GAP = 1_000_000
"""A run that is gone on with after a restart numbers its stream this much higher: transient events that the
dead process sent have no trace in the log, and no number of theirs may come again. Between two durable events
no more than this many transient ones are sent."""

SNAPSHOT_MIN = 400
SNAPSHOT_SHARE = 4


def numbered(event: HookRecorded, entry: Entry, revision: int) -> Entry:
    """The entry of a hook record with its revision."""
    record = msgspec.structs.replace(event.record, revision=Revision(revision))
    return Entry(HookRecorded(record=record), entry.private)


class Publisher:
    """Publishes for one session under its lease. Single writer: appends are taken one after the other.

    Once an append has failed nothing more is published: the same error is raised again.
    """

    def __init__(
        self,
        store: EventStore,
        lease: Lease,
        state: SessionState,
        clock: Clock,
        hub: Hub,
        transcript: Transcript | None = None,
        snapshot: Offset = START,
    ) -> None:
        """`snapshot`: the offset of the latest one that is stored and can be read."""
        self.transcript = transcript
        self._store = store
        self._lease = lease
        self._clock = clock
        self._hub = hub
        self._lock = asyncio.Lock()
        self._failed: StoreError | None = None
        self._summary: SessionSummary | None = None
        self._snapshot_offset = snapshot
        self._transient_since = 0
        self._seq = state.run.last_seq + SEQ_GAP if state.run is not None else 0
        self.state = state
        self._streaming: list[str] = []

    async def publish(self, *items: Event | Entry) -> None:
        """Append `items` as one batch, durably, then fold and send them. Raises `StoreError`; then none happened.

        Runs to its end even where the caller is cancelled in the meantime; the cancellation goes on after it.
        """
        if items:
            await self.publish_made(lambda: items)

    async def publish_made(self, make: Callable[[], Sequence[Event | Entry]]) -> None:
        """Publish what `make` makes of the state once it is its turn: nothing is published between its look and that.

        For events that hang on what others may publish at the same time. What `make` raises is passed on; then
        nothing happened. In everything else like `publish`.
        """
        task = asyncio.ensure_future(self._publish(make))
        cancelled = False
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise
                cancelled = True
            except BaseException:
                break
        if cancelled and task.exception() is None:
            raise asyncio.CancelledError
        task.result()

    def transient(self, event: Event) -> None:
        """Send an event that isn't logged to whoever watches."""
        if isinstance(event, MessageDelta):
            self._streaming.append(event.text)
        if not self._hub.watched or self._transient_since >= SEQ_GAP - 1:
            return
        self._transient_since += 1
        self._hub.send(self._envelope(event, self._next_seq(), self._clock.now()))

    @property
    def streaming(self) -> str:
        """The text so far of the message that streams."""
        return "".join(self._streaming)

    def catch_up(self, watch: Watch, event: Event) -> None:
        """Tell one new watcher what it missed of a transient stream."""
        watch.offer(self._envelope(event, self._seq, self._clock.now()))

    async def _publish(self, make: Callable[[], Sequence[Event | Entry]]) -> None:
        async with self._lock:
            if self._failed is not None:
                raise self._failed
            entries = [item if isinstance(item, Entry) else Entry(item) for item in make()]
            if not entries:
                return
            batch = self._stamp(entries)
            summary = self._summary_after(entries)
            try:
                stored = await self._store.append(self._lease, self.state.offset, batch, summary)
            except StoreError as fault:
                self._failed = fault
                raise
            self._transient_since = 0
            for stamped, row in zip(batch, stored, strict=True):
                apply(self.state, Row(row, stamped.entry))
                self._note_streaming(stamped.entry.event)
                if self._hub.watched:
                    self._hub.send(
                        Envelope(
                            session_id=row.session_id,
                            run_id=row.run_id,
                            seq=row.seq,
                            offset=row.offset,
                            recorded_at=row.recorded_at,
                            event=stamped.entry.event,
                        )
                    )

            self._transcribe(stored)

    def _transcribe(self, stored: Sequence[StoredEvent]) -> None:
        """Keep the hooks' file current. It is a convenience: where it can't be written there is none any more."""
        if self.transcript is None:
            return
        try:
            self.transcript.append(stored)
        except OSError as fault:
            log.warning("the transcript %s is given up: %s", self.transcript.path, fault)
            self.transcript = None

    def _stamp(self, entries: Sequence[Entry]) -> list[Stamped]:
        """Give each entry its run, its seq and its time; and each hook record the next revision."""
        now = self._clock.now()
        run_id = self.state.run.run_id if self.state.run is not None else None
        revision = self.state.revision
        batch: list[Stamped] = []
        for entry in entries:
            event = entry.event
            if isinstance(event, RunStarted):
                run_id, self._seq = event.run_id, 0
            elif isinstance(event, HookRecorded):
                revision += 1
                entry = numbered(event, entry, revision)
            seq = self._next_seq() if run_id is not None else None
            batch.append(Stamped(entry=entry, run_id=run_id, seq=seq, recorded_at=now))
            if isinstance(event, RunFinished):
                run_id = None
        return batch

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _envelope(self, event: Event, seq: int, now: int) -> Envelope:
        run_id: RunID | None = self.state.run.run_id if self.state.run is not None else None
        return Envelope(
            session_id=self.state.meta.session_id,
            run_id=run_id,
            seq=seq if run_id is not None else None,
            recorded_at=now,
            event=event,
        )

    def _note_streaming(self, event: Event) -> None:
        if isinstance(event, TurnStarted | AssistantMessage | RunFinished):
            self._streaming.clear()

    def _summary_after(self, entries: Sequence[Entry]) -> SessionSummary | None:
        """The new list entry, where these events change it."""
        summary = after(self.state, entries)
        if summary == self._summary:
            return None
        self._summary = summary
        return summary

    async def snapshot(self, *, at_end: bool = False) -> None:
        """Write a snapshot where enough has happened since the last: a share of the log, so that all snapshots
        together cost no more than in proportion to it.
        """
        tail = self.state.offset - self._snapshot_offset
        least = 64 if at_end else SNAPSHOT_MIN
        if tail < max(least, self.state.offset // SNAPSHOT_SHARE if not at_end else self.state.offset // 16):
            return
        offset = self.state.offset
        data = encode_snapshot(self.state)
        await self._store.save_snapshot(self._lease, offset, data)
        self._snapshot_offset = offset
