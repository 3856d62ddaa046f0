"""Reading a session's log: as rows, as envelopes, as a scrollback."""

from __future__ import annotations

from collections.abc import AsyncIterator

from counterfoil.events import StoredEvent
from counterfoil.events.codec import envelope_of
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports import EventStore
from counterfoil.scrollback import Scrollback

PAGE = 1000


async def rows(store: EventStore, session: SessionID, after: Offset = START) -> AsyncIterator[StoredEvent]:
    """Every row over `after`, in order, a page at a time."""
    while page := await store.read(session, after, PAGE):
        for row in page:
            yield row
        after = page[-1].offset


async def read_scrollback(store: EventStore, session: SessionID) -> Scrollback:
    """The scrollback of a whole log."""
    seen = Scrollback(session)
    async for row in rows(store, session):
        seen.apply(envelope_of(row))
    return seen
