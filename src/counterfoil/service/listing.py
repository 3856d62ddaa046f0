"""Lists of sessions: which belong in one, and where a page begins."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.errors import UsageError
from counterfoil.events import SessionStatus
from counterfoil.ports import SessionSummary


def wanted(summary: SessionSummary, status: SessionStatus | None, text: str, owner: str) -> bool:
    """Whether the session is in this state, of this owner, and has this text; what is empty is any."""
    if (status is not None and summary.status != status) or (owner and summary.owner != owner):
        return False
    needle = text.casefold()
    return not needle or any(needle in field.casefold() for field in (summary.title, summary.workspace, summary.model))


def position(found: Sequence[SessionSummary], token: str) -> int:
    """Where the page after `token` begins. Raises `UsageError`."""
    if not token:
        return 0
    place = next((n for n, summary in enumerate(found) if summary.session_id == token), None)
    if place is None:
        raise UsageError("the page token isn't one of this list", hint="begin with the first page")
    return place + 1
