"""The head of the scrollback: what the session is and how it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from counterfoil import events as ev
from counterfoil.identity import SessionID
from counterfoil.scrollback.views import SessionView, Source


class Head:
    """Follows the events that change the head."""

    def __init__(self, root: SessionID) -> None:
        self._view = SessionView(session_id=root)
        self._updated_at = 0

    def apply(self, event: ev.Event, source: Source) -> bool:
        """Take one durable event of the session itself. Whether it changed more than the time of the last one."""
        self._updated_at = max(self._updated_at, source.recorded_at)
        changes = _CHANGES.get(type(event))
        if changes is None:
            return False
        self._view = msgspec.structs.replace(self._view, **changes(self._view, event, source))
        return True

    def view(self, *, awaiting: bool) -> SessionView:
        """A detached view; `awaiting` says whether a question of this session is open."""
        status = "awaiting" if awaiting else self._view.status
        return msgspec.structs.replace(self._view, status=status, updated_at=self._updated_at)


_Changes = dict[str, Any]


def _created(view: SessionView, event: ev.SessionCreated, source: Source) -> _Changes:
    return {
        "complete": True,
        "kind": event.session_kind,
        "relationship": event.relationship,
        "owner": event.owner,
        "title": event.title,
        "workspace": event.workspace,
        "provider": event.provider,
        "model": event.model,
        "base_url": event.base_url,
        "mode": event.mode,
        "created_at": source.recorded_at,
    }


def _updated(view: SessionView, event: ev.SessionUpdated, source: Source) -> _Changes:
    names = ("title", "provider", "model", "base_url", "mode")
    return {name: value for name in names if (value := getattr(event, name)) is not None}


def _run_started(view: SessionView, event: ev.RunStarted, source: Source) -> _Changes:
    return {"run_id": event.run_id, "status": "running"}


def _run_finished(view: SessionView, event: ev.RunFinished, source: Source) -> _Changes:
    usage = view.review_usage + event.review_usage
    return {"run_id": None, "status": ev.status_after(event.stop_reason), "review_usage": usage}


def _used(view: SessionView, event: ev.TurnFinished | ev.TurnRejected | ev.CompactionDone, source: Source) -> _Changes:
    return {"usage": view.usage + event.usage}


_CHANGES: dict[type[ev.Event], Callable[[SessionView, Any, Source], _Changes]] = {
    ev.SessionCreated: _created,
    ev.SessionUpdated: _updated,
    ev.RunStarted: _run_started,
    ev.RunFinished: _run_finished,
    ev.TurnFinished: _used,
    ev.TurnRejected: _used,
    ev.CompactionDone: _used,
}
