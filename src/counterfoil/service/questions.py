"""The open asks of sessions, kept as far as their logs were read: each row is looked at once."""

from __future__ import annotations

from counterfoil.events import Ask, AskOpened, AskSettled, AskWithdrawn
from counterfoil.events.codec import event_of
from counterfoil.identity import START, AskID, Offset, SessionID
from counterfoil.ports import EventStore, SessionSummary
from counterfoil.service.frames import OpenAsk
from counterfoil.service.reading import ASKS, opened, rows

KEPT = 1_000
"""So many sessions are remembered; any other is read from its beginning."""

_Open = dict[AskID, tuple[Ask, int]]


class Questions:
    """The asks that wait for an answer, by session."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._read: dict[SessionID, tuple[Offset, _Open]] = {}

    async def of(self, summary: SessionSummary) -> list[OpenAsk]:
        """The open asks of a session, in the order in which they were put. Raises `SessionNotFound`."""
        if not summary.open_asks:
            return []
        session = summary.session_id
        offset, before = self._read.get(session, (START, {}))
        found = dict(before)
        async for row in rows(self._store, session, offset):
            offset = row.offset
            event = event_of(row) if row.kind in ASKS else None
            if isinstance(event, AskOpened):
                found[event.ask.ask_id] = event.ask, row.recorded_at
            elif isinstance(event, AskSettled):
                found.pop(event.receipt.ask_id, None)
            elif isinstance(event, AskWithdrawn):
                found.pop(event.ask_id, None)
        self._keep(session, offset, found)
        return [opened(ask, at, summary) for ask, at in found.values()]

    def _keep(self, session: SessionID, offset: Offset, found: _Open) -> None:
        self._read.pop(session, None)
        self._read[session] = offset, found
        while len(self._read) > KEPT:
            del self._read[next(iter(self._read))]

    def forget(self, session: SessionID) -> None:
        """The session is deleted."""
        self._read.pop(session, None)
