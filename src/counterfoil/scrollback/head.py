"""The head of the scrollback: what the session is and how it stands."""

from __future__ import annotations

import msgspec

from counterfoil import events as ev
from counterfoil.identity import SessionID
from counterfoil.scrollback.views import SessionView, Source


class Head:
    """Follows the events that change the head."""

    def __init__(self, root: SessionID) -> None:
        self._view = SessionView(session_id=root)

    def apply(self, event: ev.Event, source: Source) -> None:
        """Take one durable event of the session itself."""
        view = self._view
        changes: dict[str, object] = {"updated_at": max(view.updated_at, source.recorded_at)}
        if isinstance(event, ev.SessionCreated):
            changes |= _created(event, source)
        elif isinstance(event, ev.SessionUpdated):
            for name in ("title", "provider", "model", "base_url", "mode"):
                if (value := getattr(event, name)) is not None:
                    changes[name] = value
        elif isinstance(event, ev.RunStarted):
            changes |= {"run_id": event.run_id, "status": "running"}
        elif isinstance(event, ev.RunFinished):
            changes |= {"run_id": None, "status": ev.status_after(event.stop_reason)}
        elif isinstance(event, (ev.TurnFinished, ev.TurnRejected, ev.CompactionDone)):
            changes["usage"] = view.usage + event.usage
        self._view = msgspec.structs.replace(view, **changes)

    def view(self, *, awaiting: bool) -> SessionView:
        """A detached view; `awaiting` says whether a question of this session is open."""
        return msgspec.structs.replace(self._view, status="awaiting") if awaiting else self._view


def _created(event: ev.SessionCreated, source: Source) -> dict[str, object]:
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
