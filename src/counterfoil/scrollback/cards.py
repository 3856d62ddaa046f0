"""The reducer's own, changing picture of one call, and the detached view of it."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from counterfoil.events import (
    Ask,
    CallAccepted,
    CallStatus,
    Executed,
    HookRecord,
    Part,
    Receipt,
)
from counterfoil.identity import AskID, Digest, HookID, ReviewID, SessionID, ToolCallID
from counterfoil.scrollback.views import AskView, CallState, CallView, ChildView, Source


class AskCell:
    """One ask as far as it is known."""

    __slots__ = ("ask", "opened_at", "receipt", "withdrawn")

    def __init__(self, ask: Ask, opened_at: int) -> None:
        self.ask = ask
        self.opened_at = opened_at
        self.receipt: Receipt | None = None
        self.withdrawn: str | None = None

    @property
    def open(self) -> bool:
        """Whether it waits for an answer."""
        return self.receipt is None and self.withdrawn is None

    def view(self) -> AskView:
        """A detached view."""
        ask = msgspec.structs.replace(self.ask, arguments=copy.deepcopy(self.ask.arguments))
        if self.receipt is not None:
            return AskView(ask=ask, state="settled", receipt=self.receipt, opened_at=self.opened_at)
        if self.withdrawn is not None:
            return AskView(ask=ask, state="withdrawn", withdrawn_reason=self.withdrawn, opened_at=self.opened_at)
        return AskView(ask=ask, opened_at=self.opened_at)


class Card:
    """One call as far as it is known. Holds references to records and asks, never copies."""

    def __init__(self, event: CallAccepted, origin: SessionID, source: Source) -> None:
        self.accepted = event
        self.origin = origin
        self.source = source
        self.effective: dict[str, Any] | None = None
        self.digest: Digest = event.arguments_digest
        self.state: CallState = "accepted"
        self.status: CallStatus | None = None
        self.executed: Executed | None = None
        self.attempt = 0
        self.duration_ms: int | None = None
        self.started_at: int | None = None
        self.finished_at: int | None = None
        self.held_by: ReviewID | None = None
        self.held_size: int | None = None
        self.result: tuple[Part, ...] = ()
        self.hook_ids: list[HookID] = []
        self.ask_ids: list[AskID] = []
        self.children: dict[SessionID, ChildView] = {}

    @property
    def tool_call_id(self) -> ToolCallID:
        """The call's id."""
        return self.accepted.tool_call_id

    def view(self, records: tuple[HookRecord, ...], asks: tuple[AskView, ...]) -> CallView:
        """A detached view."""
        event = self.accepted
        return CallView(
            tool_call_id=event.tool_call_id,
            origin_session_id=self.origin,
            source=self.source,
            run_id=self.source.run_id,
            turn=event.turn,
            position=event.position,
            tool=event.tool,
            arguments=copy.deepcopy(event.arguments),
            effective=copy.deepcopy(self.effective),
            arguments_digest=self.digest,
            read_only=event.read_only,
            problem=event.problem,
            state=self.state,
            status=self.status,
            executed=self.executed,
            attempt=self.attempt,
            duration_ms=self.duration_ms,
            accepted_at=self.source.recorded_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            held_by=self.held_by,
            held_size=self.held_size,
            records=records,
            asks=asks,
            children=tuple(self.children.values()),
            result=self.result,
        )
