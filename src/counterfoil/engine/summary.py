"""The list entry of a session, as its state and the events about to be published make it."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.events import (
    AskOpened,
    AskSettled,
    AskWithdrawn,
    DelegationFinished,
    DelegationSurfaced,
    Entry,
    RunFinished,
    RunStarted,
    SessionStatus,
    SessionUpdated,
    status_after,
)
from counterfoil.identity import AskID, SessionID
from counterfoil.ports import SessionSummary
from counterfoil.state import SessionState


def after(state: SessionState, upcoming: Sequence[Entry]) -> SessionSummary:
    """The list entry once `upcoming` is part of `state`."""
    meta = state.meta
    title, provider, model = meta.title, meta.provider, meta.model
    status: SessionStatus = state.status
    asks, below = set(state.asks), dict(state.child_asks)
    running = state.run is not None
    for entry in upcoming:
        event = entry.event
        if isinstance(event, SessionUpdated):
            title = title if event.title is None else event.title
            provider, model = event.provider or provider, event.model or model
        elif isinstance(event, RunStarted):
            running, status = True, "running"
        elif isinstance(event, RunFinished):
            running, status = False, status_after(event.stop_reason)
        elif isinstance(event, AskOpened):
            asks.add(event.ask.ask_id)
        elif isinstance(event, AskSettled | AskWithdrawn):
            asks.discard(event.receipt.ask_id if isinstance(event, AskSettled) else event.ask_id)
        elif isinstance(event, DelegationSurfaced):
            _surfaced(event, below)
        elif isinstance(event, DelegationFinished):
            below = {ask: child for ask, child in below.items() if child != event.child_session_id}
        if asks or below:
            status = "awaiting"
        elif status == "awaiting":
            status = "running" if running else "idle"
    return SessionSummary(
        session_id=meta.session_id,
        kind=meta.kind,
        parent_session_id=meta.relationship.parent_session_id if meta.relationship else None,
        owner=meta.owner.name,
        title=title,
        workspace=meta.workspace,
        provider=provider,
        model=model,
        status=status,
        open_asks=len(asks),
        created_at=meta.created_at,
    )


def _surfaced(event: DelegationSurfaced, below: dict[AskID, SessionID]) -> None:
    """The open asks of children after `event`."""
    if event.ask is not None:
        below[event.ask.ask_id] = event.child_session_id
    elif (ended := event.receipt or event.withdrawal) is not None:
        below.pop(ended.ask_id, None)
