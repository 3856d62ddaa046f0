"""Which session is meant: an id, a unique beginning of one, or `last`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import SessionNotFound, UsageError
from counterfoil.identity import SessionID
from counterfoil.ports import EventStore, SessionSummary

PREFIX = "ses_"
SHORTEST = 4
MANY = 1_000_000


async def resolve(store: EventStore, reference: str) -> SessionID:
    """The session that `reference` means. Raises `SessionNotFound`, `UsageError` where it isn't plain."""
    return chosen(reference, await store.sessions(limit=1 if reference == "last" else MANY))


def chosen(reference: str, sessions: Sequence[SessionSummary]) -> SessionID:
    """Which of `sessions`, latest first, is meant. Raises `SessionNotFound`, `UsageError` where it isn't plain."""
    if reference == "last":
        if not sessions:
            raise SessionNotFound("there are no sessions yet", hint="`counterfoil run` makes one")
        return sessions[0].session_id
    if not reference.startswith(PREFIX) or len(reference) < len(PREFIX) + SHORTEST:
        raise UsageError(
            f"{reference!r} is not a session",
            hint=f"an id like {PREFIX}…, at least {SHORTEST} characters of it after {PREFIX}, or `last`",
        )
    found = [s.session_id for s in sessions if s.session_id.startswith(reference)]
    if reference in found:
        return SessionID(reference)
    if not found:
        raise SessionNotFound(f"there is no session {reference}", hint="`counterfoil sessions list` shows all")
    if len(found) > 1:
        raise UsageError(f"{len(found)} sessions begin with {reference}", hint="give more of the id")
    return found[0]


async def last_in(store: EventStore, workspace: Path) -> SessionID:
    """The latest session of a folder. Raises `UsageError` where there is none."""
    places = {str(workspace), str(workspace.resolve())}
    for summary in await store.sessions(limit=MANY):
        if summary.workspace in places:
            return summary.session_id
    raise UsageError(f"no session was made in {workspace}", hint="start one without --continue")


async def with_open_asks(store: EventStore) -> list[SessionSummary]:
    """The sessions that wait for an answer, latest first."""
    return [s for s in await store.sessions(limit=MANY) if s.open_asks]
