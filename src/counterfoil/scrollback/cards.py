"""The reducer's own, changing picture of one call, and the detached snapshots of it."""

from __future__ import annotations

from collections import deque
from typing import Any

from counterfoil.events import (
    CallAccepted,
    CallStatus,
    DelegationFinished,
    DelegationStarted,
    Executed,
    HookRecord,
    Part,
    ReviewAcknowledged,
    SessionKind,
    StopReason,
    TeamMessageSent,
    TeamTask,
)
from counterfoil.identity import AskID, Digest, HookID, ReviewID, SessionID, ToolCallID
from counterfoil.scrollback import entries as en
from counterfoil.scrollback.views import (
    AskView,
    CallState,
    ChildView,
    EntryKey,
    ParallelSnapshot,
    Source,
    SubagentSnapshot,
    TeamSnapshot,
    ToolSnapshot,
    detached,
)

PREVIEW = 2_000
"""Characters of a child's preview, and of a running call's news, that are kept: the last ones."""
MESSAGES = 50
"""Messages of a team that its card keeps: the last ones."""

_OF_TOOL: dict[str, type[en.ToolCard]] = {
    "Agent": en.SubagentCard,
    "Team": en.TeamCard,
    "Parallel": en.ParallelCard,
}
_OF_KIND: dict[SessionKind, type[en.ToolCard]] = {
    SessionKind.SUBAGENT: en.SubagentCard,
    SessionKind.TEAM_MEMBER: en.TeamCard,
    SessionKind.PARALLEL_BRANCH: en.ParallelCard,
}
_SNAPSHOTS: dict[type[en.ToolCard], type[ToolSnapshot]] = {
    en.ToolCard: ToolSnapshot,
    en.SubagentCard: SubagentSnapshot,
    en.TeamCard: TeamSnapshot,
    en.ParallelCard: ParallelSnapshot,
}


def bounded(text: str) -> str:
    """The end of `text`, where it is longer than a preview may be."""
    return text if len(text) <= PREVIEW else "…" + text[1 - PREVIEW :]


class ChildCell:
    """A child session as far as it is known to its parent."""

    __slots__ = ("agent_type", "background", "calls", "id", "kind", "member", "preview", "refused", "stop_reason")

    def __init__(self, started: DelegationStarted) -> None:
        self.id, self.kind, self.member = started.child_session_id, started.session_kind, started.member
        self.agent_type, self.background = started.agent_type, started.background
        self.preview = bounded(started.preview)
        self.stop_reason: StopReason | None = None
        self.calls = self.refused = 0

    def finished(self, event: DelegationFinished) -> None:
        """Its run ended."""
        self.preview, self.stop_reason = bounded(event.preview), event.stop_reason
        self.calls, self.refused = event.calls, event.refused


class Card:
    """One call as far as it is known. Holds references to records and asks, never copies."""

    def __init__(self, event: CallAccepted, origin: SessionID, source: Source) -> None:
        self.accepted = event
        self.origin = origin
        self.source = source
        self.sort = _OF_TOOL.get(event.tool, en.ToolCard)
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
        self.held_digest: Digest | None = None
        self.result: tuple[Part, ...] = ()
        self.hook_ids: list[HookID] = []
        self.ask_ids: list[AskID] = []
        self.children: dict[SessionID, ChildCell] = {}
        self.acknowledged: list[ReviewAcknowledged] = []
        self.tasks: dict[int, TeamTask] = {}
        self.messages: deque[TeamMessageSent] = deque(maxlen=MESSAGES)

    @property
    def tool_call_id(self) -> ToolCallID:
        """The call's id."""
        return self.accepted.tool_call_id

    @property
    def key(self) -> EntryKey:
        """The key of the card's entry."""
        return EntryKey(self.accepted.tool_call_id)

    def entry(self) -> en.ToolCard:
        """The card's entry, of the sort that is known by now."""
        return self.sort(key=self.key, source=self.source, tool_call_id=self.tool_call_id)

    def child(self, child: ChildCell) -> None:
        """A child started: what it is says what the card is."""
        self.children[child.id] = child
        self.sort = _OF_KIND.get(child.kind, self.sort)

    def view(
        self, records: tuple[HookRecord, ...], asks: tuple[AskView, ...], children: tuple[ChildView, ...]
    ) -> ToolSnapshot:
        """A detached view."""
        event = self.accepted
        return _SNAPSHOTS[self.sort](
            tool_call_id=event.tool_call_id,
            origin_session_id=self.origin,
            source=self.source,
            run_id=self.source.run_id,
            turn=event.turn,
            position=event.position,
            tool=event.tool,
            arguments=detached(event.arguments),
            effective=detached(self.effective),
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
            held_digest=self.held_digest,
            records=records,
            asks=asks,
            children=children,
            result=self.result,
            acknowledged=tuple(self.acknowledged),
            **self._of_team(),
        )

    def _of_team(self) -> dict[str, Any]:
        if self.sort is not en.TeamCard:
            return {}
        tasks = tuple(task for _, task in sorted(self.tasks.items()))
        return {"tasks": tasks, "messages": tuple(self.messages)}
