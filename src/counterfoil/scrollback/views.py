"""Views: detached values that are handed out. Changing one changes nothing anywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NewType

import msgspec

from counterfoil.events import (
    Ask,
    CallStatus,
    Executed,
    HookRecord,
    Mode,
    Part,
    Principal,
    Receipt,
    Relationship,
    ReviewAcknowledged,
    SessionKind,
    SessionStatus,
    Severity,
    StopReason,
    TeamMessageSent,
    TeamTask,
    Usage,
)
from counterfoil.events.base import Value
from counterfoil.identity import Digest, Offset, ReviewID, RunID, SessionID, ToolCallID

EntryKey = NewType("EntryKey", str)
"""What names an entry for as long as there is the session. Opaque: an id of a call, or made of an event's identity."""

CallState = Literal["accepted", "asked", "started", "held", "finished"]

SEVERITIES: tuple[Severity, ...] = ("conflict", "blocking", "warning", "notable", "benign")
"""Most severe first."""
_RANKS = {severity: rank for rank, severity in enumerate(SEVERITIES)}


def severity_rank(severity: Severity) -> int:
    """0 for the most severe."""
    return _RANKS[severity]


def most_severe(severities: Iterable[Severity]) -> Severity | None:
    """The most severe of them, or None of none."""
    return min(severities, key=severity_rank, default=None)


def refuses(receipt: Receipt | None) -> bool:
    """Whether a verdict keeps something from happening."""
    return receipt is not None and receipt.verdict in ("deny", "withhold")


def detached(value: Any) -> Any:
    """A copy of a JSON value that shares nothing that can be changed. As deep as it may be."""
    if type(value) is not dict and type(value) is not list:
        return value
    top = value.copy()
    todo: list[Any] = [top]
    while todo:
        inner = todo.pop()
        for place, item in inner.items() if type(inner) is dict else enumerate(inner):
            if type(item) is dict or type(item) is list:
                inner[place] = copied = item.copy()
                todo.append(copied)
    return top


class Source(Value, frozen=True, kw_only=True):
    """The event that made an entry: by its identity, never by its text."""

    session_id: SessionID
    run_id: RunID | None = None
    seq: int | None = None
    offset: Offset | None = None
    recorded_at: int = 0


class AskView(Value, frozen=True, kw_only=True):
    """One question about a call and what became of it."""

    ask: Ask
    state: Literal["open", "settled", "withdrawn"] = "open"
    receipt: Receipt | None = None
    withdrawn_reason: str = ""
    opened_at: int = 0

    def detached(self) -> AskView:
        """The same, with arguments of its own."""
        ask = msgspec.structs.replace(self.ask, arguments=detached(self.ask.arguments))
        return msgspec.structs.replace(self, ask=ask)

    @property
    def severity(self) -> Severity:
        """A question is always worth seeing, a refusal more so."""
        return "blocking" if refuses(self.receipt) else "notable"


class ChildView(Value, frozen=True, kw_only=True):
    """A child session that a call started. Of its evidence only the count and the most severe state are here.

    All of that evidence is in the child's own scrollback. `preview` is bounded. `refused`: how many calls of its last
    run were denied, blocked or withheld, once it ended.
    """

    child_session_id: SessionID
    session_kind: SessionKind
    member: str | None = None
    preview: str = ""
    agent_type: str = ""
    background: bool = False
    stop_reason: StopReason | None = None
    calls: int = 0
    refused: int = 0
    evidence: int = 0
    severity: Severity | None = None
    open_asks: int = 0


class ToolSnapshot(Value, frozen=True, kw_only=True):
    """All that is known of one call at one moment. Nothing that comes later, and nobody who changes it, is felt here.

    `effective` is set where it differs from `arguments`, the model's own.
    """

    tool_call_id: ToolCallID
    origin_session_id: SessionID
    source: Source
    run_id: RunID | None = None
    turn: int
    position: int
    tool: str
    arguments: dict[str, Any]
    effective: dict[str, Any] | None = None
    arguments_digest: Digest
    read_only: bool = False
    problem: str | None = None
    state: CallState = "accepted"
    status: CallStatus | None = None
    executed: Executed | None = None
    attempt: int = 0
    duration_ms: int | None = None
    accepted_at: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    held_by: ReviewID | None = None
    held_size: int | None = None
    held_digest: Digest | None = None
    records: tuple[HookRecord, ...] = ()
    asks: tuple[AskView, ...] = ()
    children: tuple[ChildView, ...] = ()
    result: tuple[Part, ...] = ()
    acknowledged: tuple[ReviewAcknowledged, ...] = ()

    @property
    def runs_with(self) -> dict[str, Any]:
        """The arguments that run or ran: the effective ones."""
        return self.arguments if self.effective is None else self.effective

    @property
    def open_ask(self) -> Ask | None:
        """The question that waits for an answer."""
        return next((a.ask for a in reversed(self.asks) if a.state == "open"), None)

    @property
    def receipt(self) -> Receipt | None:
        """The latest verdict about this call."""
        return next((a.receipt for a in reversed(self.asks) if a.receipt is not None), None)

    @property
    def severity(self) -> Severity | None:
        """The most severe state of the call's own records and of its children's evidence."""
        own = [record.severity for record in self.records]
        return most_severe([*own, *(child.severity for child in self.children if child.severity is not None)])


class SubagentSnapshot(ToolSnapshot, frozen=True, kw_only=True):
    """A call that starts one child."""

    @property
    def child(self) -> ChildView | None:
        """The child, once it started: the latest, where it was started anew."""
        return self.children[-1] if self.children else None


class TeamSnapshot(ToolSnapshot, frozen=True, kw_only=True):
    """A call that starts named members. `tasks` in the order of their numbers; `messages`: the last ones, bounded."""

    tasks: tuple[TeamTask, ...] = ()
    messages: tuple[TeamMessageSent, ...] = ()

    @property
    def members(self) -> dict[str, ChildView]:
        """The members by name; one without a name by the id of its session."""
        return {child.member or child.child_session_id: child for child in self.children}


class ParallelSnapshot(ToolSnapshot, frozen=True, kw_only=True):
    """A call that starts branches."""

    @property
    def branches(self) -> tuple[ChildView, ...]:
        """The branches in the order in which they started."""
        return self.children


CallView = ToolSnapshot
"""The same, by its shorter name."""


class LiveView(Value, frozen=True, kw_only=True):
    """What streams just now and isn't recorded: text, reasoning and calls that the model is still writing."""

    turn: int = 0
    text: str = ""
    reasoning: str = ""
    drafts: tuple[tuple[str, str], ...] = ()


class SessionView(Value, frozen=True, kw_only=True):
    """The head of the scrollback. `complete` is False until the session's first event was applied.

    `review_usage`: what reviews of finished runs cost; `usage` doesn't contain it.
    """

    session_id: SessionID
    complete: bool = False
    kind: SessionKind = SessionKind.MAIN
    relationship: Relationship | None = None
    owner: Principal | None = None
    title: str = ""
    workspace: str = ""
    provider: str = ""
    model: str = ""
    base_url: str = ""
    mode: Mode = "default"
    status: SessionStatus = "idle"
    run_id: RunID | None = None
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    created_at: int = 0
    updated_at: int = 0
