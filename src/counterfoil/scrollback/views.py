"""Views: detached values that are handed out. Changing one changes nothing anywhere else."""

from __future__ import annotations

from typing import Any, Literal

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
    SessionKind,
    SessionStatus,
    Severity,
    StopReason,
    Usage,
)
from counterfoil.events.base import Value
from counterfoil.identity import Digest, Offset, ReviewID, RunID, SessionID, ToolCallID

CallState = Literal["accepted", "asked", "started", "held", "finished"]

SEVERITIES: tuple[Severity, ...] = ("conflict", "blocking", "warning", "notable", "benign")
"""Most severe first."""


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


class ChildView(Value, frozen=True, kw_only=True):
    """A child session that a call started."""

    child_session_id: SessionID
    session_kind: SessionKind
    member: str | None = None
    preview: str = ""
    stop_reason: StopReason | None = None


class CallView(Value, frozen=True, kw_only=True):
    """All that is known of one call. `effective` is set where it differs from `arguments`, the model's own."""

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
    records: tuple[HookRecord, ...] = ()
    asks: tuple[AskView, ...] = ()
    children: tuple[ChildView, ...] = ()
    result: tuple[Part, ...] = ()

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


class LiveView(Value, frozen=True, kw_only=True):
    """What streams just now and isn't recorded: text, reasoning and calls that the model is still writing."""

    turn: int = 0
    text: str = ""
    reasoning: str = ""
    drafts: tuple[tuple[str, str], ...] = ()


class SessionView(Value, frozen=True, kw_only=True):
    """The head of the scrollback. `complete` is False until the session's first event was applied."""

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
    created_at: int = 0
    updated_at: int = 0


def severity_rank(severity: Severity) -> int:
    """0 for the most severe."""
    return SEVERITIES.index(severity)
