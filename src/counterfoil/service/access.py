"""Who may do what with whose sessions. Values in, values out."""

from __future__ import annotations

from typing import Literal

from counterfoil.events import Principal
from counterfoil.events.base import Value

Role = Literal["owner", "approver", "viewer"]
Action = Literal["read", "detail", "answer", "drive"]
"""`read`: sessions, events, asks, reviews. `detail`: a checker's prose. `answer`: asks and acknowledgements. `drive`:
everything that changes a session or makes one.
"""

_MAY: dict[Role, frozenset[Action]] = {
    "owner": frozenset({"read", "detail", "answer", "drive"}),
    "approver": frozenset({"read", "answer"}),
    "viewer": frozenset({"read"}),
}


class Caller(Value, frozen=True, kw_only=True):
    """Who calls, as verified at the door, and in which role on whose sessions.

    `owner` is the name whose sessions the caller sees: its own, or the one that its token was made for.
    """

    principal: Principal
    role: Role = "owner"
    owner: str = ""

    @property
    def sees(self) -> str:
        """The owner whose sessions exist for this caller."""
        return self.owner or self.principal.name


def sees(caller: Caller, session_owner: Principal) -> bool:
    """Whether a session exists for the caller. In local mode owner and caller are the same kind and name."""
    if caller.principal.kind == "local":
        return session_owner.kind == "local"
    return session_owner.kind == "user" and session_owner.name == caller.sees


def may(caller: Caller, action: Action) -> bool:
    """Whether the caller may do this with the sessions that it sees."""
    return action in _MAY[caller.role]
