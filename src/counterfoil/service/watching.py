"""Watching a session: from the log, then live, without a gap or a duplicate, whoever drives it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

from counterfoil.engine import Session, WatchGap
from counterfoil.errors import SessionNotFound, ShuttingDown, StoreError
from counterfoil.events import Envelope
from counterfoil.events.codec import envelope_of
from counterfoil.identity import Offset, SessionID
from counterfoil.ports import EventStore
from counterfoil.service.drivers import Drivers
from counterfoil.service.frames import CaughtUp, Frame, Gap, HeartBeat

PAGE = 500
BATCH = 256_000
"""Bytes of the log after which a batch is told."""
POLL = 0.1
"""Seconds between two looks at the log of a session that another process drives."""
BEAT = 15.0


class Watcher:
    """One watch of one session. `after`: logged events up to it are known already.

    `pace`: seconds between two batches at least, while events come faster than that. The first after a rest comes at
    once.
    """

    def __init__(
        self, store: EventStore, drivers: Drivers, session: SessionID, after: Offset, *, pace: float = 0.0
    ) -> None:
        self._store = store
        self._drivers = drivers
        self._session = session
        self._after = after
        self._pace = pace
        self._caught_up = False

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """The frames, one by one. Ends and raises as `batches`."""
        async with contextlib.aclosing(self.batches()) as batches:
            async for batch in batches:
                for frame in batch:
                    yield frame

    async def batches(self) -> AsyncGenerator[list[Frame], None]:
        """The frames, as many at once as are there; never none.

        Ends with a `Gap`, or when the session is deleted. Raises `SessionNotFound`, `ShuttingDown`.
        """
        await self._store.head(self._session)
        try:
            while True:
                session = self._drivers.peek(self._session)
                async with contextlib.aclosing(self._live(session) if session is not None else self._polled()) as part:
                    async for batch in part:
                        yield batch
                        if isinstance(batch[-1], Gap):
                            return
        except SessionNotFound:
            return
        except StoreError as fault:
            if self._drivers.closing:
                raise self._over() from fault
            raise

    def _over(self) -> ShuttingDown:
        return ShuttingDown("the service is shutting down", hint=f"watch again after offset {self._after}")

    async def _live(self, session: Session) -> AsyncGenerator[list[Frame], None]:
        """While it is driven here: what the log has, then what is published. Ends when the session is closed here."""
        loop = asyncio.get_running_loop()
        async with session.watch() as stream:
            async for batch in self._recorded():
                yield batch
            sent = 0.0
            while True:
                try:
                    async with asyncio.timeout(BEAT):
                        envelopes = await stream.many()
                    if (early := sent + self._pace - loop.time()) > 0:
                        await asyncio.sleep(early)
                        envelopes += stream.queued()
                except TimeoutError:
                    yield [HeartBeat()]
                    continue
                except StopAsyncIteration:
                    return
                except WatchGap:
                    yield [Gap(last_offset=self._after)]
                    return
                sent = loop.time()
                new: list[Frame] = [envelope for envelope in envelopes if self._is_new(envelope)]
                if new:
                    yield new

    async def _polled(self) -> AsyncGenerator[list[Frame], None]:
        """While another process drives it, or nobody: the log, looked at again and again, until it is opened here."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + BEAT
        while self._drivers.peek(self._session) is None:
            if self._drivers.closing:
                raise self._over()
            async for batch in self._recorded():
                yield batch
                beat = loop.time() + BEAT
            if loop.time() >= beat:
                yield [HeartBeat()]
                beat = loop.time() + BEAT
            await self._opened_or_later()

    async def _opened_or_later(self) -> None:
        """Wait until a session is opened here, or until it is time to look again."""
        try:
            async with asyncio.timeout(POLL):
                async with self._drivers.opened:
                    if self._drivers.peek(self._session) is None:
                        await self._drivers.opened.wait()
        except TimeoutError:
            return

    async def _recorded(self) -> AsyncIterator[list[Frame]]:
        """What the log has after what was told; then, once in a watch, that the watcher has caught up."""
        while page := await self._store.read(self._session, self._after, PAGE):
            batch: list[Frame] = []
            size = 0
            for row in page:
                batch.append(envelope_of(row))
                size += len(row.public)
                self._after = row.offset
                if size >= BATCH or row is page[-1]:
                    yield batch
                    batch, size = [], 0
        if not self._caught_up:
            self._caught_up = True
            yield [CaughtUp(offset=self._after)]

    def _is_new(self, envelope: Envelope) -> bool:
        """A durable event that was told from the log isn't told again."""
        if envelope.offset is None:
            return True
        if envelope.offset <= self._after:
            return False
        self._after = envelope.offset
        return True
