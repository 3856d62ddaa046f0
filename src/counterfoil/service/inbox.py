"""The asks of all sessions of one caller, as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from counterfoil.errors import ShuttingDown, StoreError
from counterfoil.identity import AskID
from counterfoil.service.drivers import Drivers
from counterfoil.service.frames import AskEnded, HeartBeat, InboxFrame, OpenAsk

LOOK = 0.25
"""Seconds between two looks at the list of sessions: any of them may be driven by another process."""
BEAT = 15.0


class Inbox:
    """An async iterator of what is open first, then of what changes. `look` lists what is open now."""

    def __init__(self, look: Callable[[], Awaitable[list[OpenAsk]]], drivers: Drivers) -> None:
        self._look = look
        self._drivers = drivers
        self._known: dict[AskID, OpenAsk] = {}

    async def frames(self) -> AsyncIterator[InboxFrame]:
        """Never ends by itself. Raises `ShuttingDown`."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + BEAT
        while True:
            now = {found.ask.ask_id: found for found in await self._looked()}
            ended = [found for ask, found in self._known.items() if ask not in now]
            opened = [found for ask, found in now.items() if ask not in self._known]
            self._known = now
            for gone in ended:
                yield AskEnded(ask_id=gone.ask.ask_id, session_id=gone.session_id)
            for new in opened:
                yield new
            if ended or opened:
                beat = loop.time() + BEAT
            elif loop.time() >= beat:
                beat = loop.time() + BEAT
                yield HeartBeat()
            await asyncio.sleep(LOOK)

    async def _looked(self) -> list[OpenAsk]:
        """What is open now. Raises `ShuttingDown`, also where the store was closed under the look."""
        over = ShuttingDown("the service is shutting down", hint="watch again when it is back")
        if self._drivers.closing:
            raise over
        try:
            return await self._look()
        except StoreError as fault:
            if self._drivers.closing:
                raise over from fault
            raise
