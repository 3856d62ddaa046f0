"""Reading logs: a page at a time, and what they say of one call, of reviews, of asks."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from counterfoil.errors import AskIsSettled, AskNotFound, SessionNotFound
from counterfoil.errors import AskWithdrawn as Withdrawn
from counterfoil.events import (
    Ask,
    AskOpened,
    AskSettled,
    AskWithdrawn,
    Envelope,
    HookRecord,
    HookRecorded,
    StoredEvent,
)
from counterfoil.events.codec import envelope_of, event_of
from counterfoil.identity import START, AskID, Offset, ReviewID, SessionID, ToolCallID
from counterfoil.ports import EventStore, SessionSummary
from counterfoil.service.frames import OpenAsk

PAGE = 1_000
ASKS = frozenset({"ask.opened", "ask.settled", "ask.withdrawn"})
"""The kinds of events that open and close asks."""


async def rows(store: EventStore, session: SessionID, after: Offset = START) -> AsyncIterator[StoredEvent]:
    """Every row over `after`, in order, a page at a time. Raises `SessionNotFound`."""
    while page := await store.read(session, after, PAGE):
        for row in page:
            yield row
        after = page[-1].offset


async def about(store: EventStore, session: SessionID, call: ToolCallID) -> list[Envelope]:
    """Every logged event that names the call, in order."""
    name = call.encode("utf-8", "surrogatepass")
    return [envelope_of(row) async for row in rows(store, session) if name in row.public]


async def reviews_of(store: EventStore, session: SessionID) -> list[HookRecord]:
    """The newest revision of each review, in the order in which they began."""
    found: dict[ReviewID, HookRecord] = {}
    async for row in rows(store, session):
        event = event_of(row) if row.kind == "hook.recorded" else None
        if isinstance(event, HookRecorded) and event.record.review is not None:
            held = found.get(event.record.hook_id)
            if held is None or event.record.revision > held.revision:
                found[event.record.hook_id] = event.record
    return list(found.values())


async def ask_of(store: EventStore, summary: SessionSummary, ask: AskID) -> OpenAsk:
    """One open ask of a session. Raises `AskIsSettled` with its receipt, `AskWithdrawn`, `AskNotFound`."""
    name = ask.encode("utf-8", "surrogatepass")
    found: OpenAsk | None = None
    async for row in rows(store, summary.session_id):
        event = event_of(row) if row.kind in ASKS and name in row.public else None
        if isinstance(event, AskOpened) and event.ask.ask_id == ask:
            found = opened(event.ask, row.recorded_at, summary)
        elif isinstance(event, AskSettled) and event.receipt.ask_id == ask:
            raise AskIsSettled(event.receipt)
        elif isinstance(event, AskWithdrawn) and event.ask_id == ask:
            raise Withdrawn(f"ask {ask} was withdrawn: {event.reason}")
    if found is None:
        raise AskNotFound(f"no ask {ask}", hint="list the open ones")
    return found


def opened(ask: Ask, at: int, summary: SessionSummary) -> OpenAsk:
    """An ask of this session, opened at this time."""
    return OpenAsk(ask=ask, opened_at=at, session_id=summary.session_id, session_title=summary.title)


async def session_of_ask(store: EventStore, ask: AskID, among: Sequence[SessionSummary]) -> SessionID | None:
    """Which of these sessions raised the ask, open or not: those with open asks are looked at first."""
    for summary in sorted(among, key=lambda s: not s.open_asks):
        with contextlib.suppress(SessionNotFound):  # it was deleted meanwhile
            if (found := await _origin_of(store, summary.session_id, ask)) is not None:
                return found
    return None


async def _origin_of(store: EventStore, session: SessionID, ask: AskID) -> SessionID | None:
    name = ask.encode("utf-8", "surrogatepass")
    async for row in rows(store, session):
        event = event_of(row) if row.kind == "ask.opened" and name in row.public else None
        if isinstance(event, AskOpened) and event.ask.ask_id == ask:
            return event.ask.origin_session_id
    return None
