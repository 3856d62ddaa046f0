"""Live watchers of one session: bounded, and none can slow the session or another watcher."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

from counterfoil.errors import CounterfoilError
from counterfoil.events import TRANSIENT, Envelope
from counterfoil.identity import START, Offset

CAPACITY = 10_000


class WatchGap(CounterfoilError):
    """This watcher was too slow: durable events are missing. Read the log after `last_offset` and watch again."""

    code = "gap"

    def __init__(self, last_offset: Offset) -> None:
        super().__init__("the watcher was too slow", hint=f"read on from offset {last_offset}")
        self.last_offset = last_offset


class Watch:
    """An async iterator over the envelopes of one session, from when it was made. Ends when the session closes."""

    def __init__(self, hub: Hub, *, capacity: int = CAPACITY) -> None:
        self._hub = hub
        self._queue: deque[Envelope] = deque()
        self._capacity = capacity
        self._ready = asyncio.Event()
        self._closed = False
        self._gap = False
        self.last_offset = START

    def offer(self, envelope: Envelope) -> None:
        """Queue one envelope. When full, transient ones are dropped; a durable one that doesn't fit is a gap."""
        if len(self._queue) >= self._capacity:
            if type(envelope.event) in TRANSIENT:
                return
            self._gap = True
            self._queue.clear()
        if not self._gap:
            self._queue.append(envelope)
        self._ready.set()

    def end(self) -> None:
        """No more will come."""
        self._closed = True
        self._ready.set()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Envelope:
        while not self._queue:
            if self._gap:
                raise WatchGap(self.last_offset)
            if self._closed:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        envelope = self._queue.popleft()
        if envelope.offset is not None:
            self.last_offset = envelope.offset
        return envelope

    async def many(self) -> list[Envelope]:
        """All that is queued, one at least. Raises `WatchGap`, `StopAsyncIteration` as iterating does."""
        return [await anext(self), *self.queued()]

    def queued(self) -> list[Envelope]:
        """All that is queued now."""
        taken = list(self._queue)
        self._queue.clear()
        self.last_offset = max((e.offset for e in taken if e.offset is not None), default=self.last_offset)
        return taken

    async def __aenter__(self) -> Watch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hub.remove(self)


class Hub:
    """All watchers of one session, and the message that streams right now for those who join in the middle."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._closed = False

    def add(self, watch: Watch) -> None:
        """Begin to send to `watch`."""
        if self._closed:
            watch.end()
        self._watches.add(watch)

    def remove(self, watch: Watch) -> None:
        """Stop sending to `watch`."""
        self._watches.discard(watch)
        watch.end()

    def send(self, envelope: Envelope) -> None:
        """Give `envelope` to every watcher."""
        for watch in self._watches:
            watch.offer(envelope)

    @property
    def watched(self) -> bool:
        """Whether anybody watches."""
        return bool(self._watches)

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        for watch in self._watches:
            watch.end()
