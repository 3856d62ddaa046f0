"""The state of one session: everything that a fold over its log gives."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from counterfoil.events import (
    Ask,
    AssistantReplay,
    Authority,
    CallReplay,
    HeldResult,
    HookRecord,
    Limits,
    Mode,
    Principal,
    Receipt,
    Relationship,
    SessionKind,
    SessionStatus,
    StopReason,
    TeamMessageSent,
    TeamTask,
    Usage,
    UserPrompt,
)
from counterfoil.identity import START, AskID, Digest, Offset, ReviewID, ReviewJob, RunID, SessionID, ToolCallID
from counterfoil.state.history import History, HistoryResult

CallPhase = Literal["accepted", "asked", "started", "held", "finished"]


class Team(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the members of a team share: tasks by their number, and messages in the order in which they were sent."""

    tasks: dict[int, TeamTask] = msgspec.field(default_factory=dict)
    messages: list[TeamMessageSent] = msgspec.field(default_factory=list)


class OpenCall(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One call of the turn in hand. `arguments` are the effective ones; `original` is set where they differ.

    What PreToolUse hooks said is kept here, so that a restart neither runs them again nor forgets it: `hooked`,
    `hook_blocked` (the reason), `hook_asks`, `hook_allows`. `asked_for`: the reason of the newest ask that was put.
    `reviews` has the newest revision for each job. `held` is the exact result that is kept back, with its digest and
    its size. `team`: what the members share whom this call started.
    """

    tool_call_id: ToolCallID
    turn: int
    position: int
    tool: str
    arguments: dict[str, Any]
    arguments_digest: Digest
    read_only: bool = False
    problem: str | None = None
    original: dict[str, Any] | None = None
    replay: CallReplay | None = None
    phase: CallPhase = "accepted"
    attempt: int = 0
    ask_id: AskID | None = None
    receipt: Receipt | None = None
    asked_for: str = ""
    result: HistoryResult | None = None
    hooked: bool = False
    hook_blocked: str | None = None
    hook_asks: str | None = None
    hook_allows: bool = False
    reviews: dict[ReviewJob, HookRecord] = msgspec.field(default_factory=dict)
    held: HeldResult | None = None
    held_digest: Digest | None = None
    held_size: int = 0
    team: Team | None = None


class OpenTurn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An accepted turn whose calls haven't all finished: not yet part of history."""

    offset: Offset
    turn: int
    text: str
    replay: AssistantReplay | None = None
    calls: list[OpenCall] = msgspec.field(default_factory=list)


class RunState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The run in hand, and what its limits count.

    `prompted`: its prompt is recorded. `stopped`: a hook ended it, and why. `stop_continuations`: how often a Stop
    hook made it go on. `permission_refusals`: permission reviews that didn't clear. `children`: child sessions that it
    started, `child_usage` and `child_calls` what they used and called once they ended.
    """

    run_id: RunID
    turn: int = 0
    attempt: int = 0
    turn_open: bool = False
    tool_calls: int = 0
    consecutive_failures: int = 0
    usage: Usage = Usage()
    last_text: str = ""
    signature: str = ""
    repeats: int = 0
    last_seq: int = 0
    prompted: bool = False
    stopped: str | None = None
    stop_continuations: int = 0
    review_usage: Usage = Usage()
    permission_refusals: int = 0
    children: int = 0
    child_usage: Usage = Usage()
    child_calls: int = 0


class LastRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How the run before ended."""

    run_id: RunID
    stop_reason: StopReason
    text: str = ""
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    child_usage: Usage = Usage()


class ChildRef(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A child session, as its parent knows it. `running` is false once its run ended; the rest is of its last run.

    `surfaced`: up to this offset of its log, what people must see of it stands in the parent's log.
    """

    session_id: SessionID
    tool_call_id: ToolCallID
    kind: SessionKind
    key: str = ""
    member: str | None = None
    agent_type: str = ""
    background: bool = False
    runs_before: int = 0
    running: bool = True
    stop_reason: StopReason | None = None
    preview: str = ""
    refused: int = 0
    surfaced: Offset = START


class ReviewMark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The newest revision of a review that was published, and the newest that a person saw (0: none)."""

    revision: int
    tool_call_id: ToolCallID
    acknowledged: int = 0


class Meta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Session metadata. Times are µs since the epoch, UTC. `mode_before_plan`: where approving a plan leads back to."""

    session_id: SessionID
    kind: SessionKind = SessionKind.MAIN
    relationship: Relationship | None = None
    owner: Principal
    title: str = ""
    workspace: str
    provider: str
    model: str
    base_url: str = ""
    mode: Mode = "default"
    mode_before_plan: Mode = "default"
    limits: Limits = Limits()
    authority: Authority | None = None
    created_at: int = 0
    updated_at: int = 0


class Grant(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A rule learned from an answer of "always" or "this session"."""

    rule: str
    scope: str
    ask_id: AskID | None = None


class SessionState(msgspec.Struct, kw_only=True):
    """All that the engine knows of a session. Made by `fold` alone, event by event.

    Its size is bounded by the context: history since the last compaction, the open turn, open asks and the
    receipts of the run in hand. `prompts` are the last genuine ones of the person, bounded; `reviews` the newest
    revisions of the last reviews. `revision` is the high-water mark of published hook records. `children`: those that
    run, and the last ones that ended. `child_asks`: open in a child, by its id. `team_message`: the last message of
    its team that a member was told.
    """

    meta: Meta
    status: SessionStatus = "idle"
    offset: Offset = Offset(0)
    revision: int = 0
    run: RunState | None = None
    last_run: LastRun | None = None
    history: History = msgspec.field(default_factory=History)
    open_turn: OpenTurn | None = None
    inbox: list[tuple[Offset, UserPrompt]] = msgspec.field(default_factory=list)
    asks: dict[AskID, Ask] = msgspec.field(default_factory=dict)
    receipts: dict[AskID, Receipt] = msgspec.field(default_factory=dict)
    withdrawn: dict[AskID, str] = msgspec.field(default_factory=dict)
    grants: list[Grant] = msgspec.field(default_factory=list)
    reviews: dict[ReviewID, ReviewMark] = msgspec.field(default_factory=dict)
    children: dict[SessionID, ChildRef] = msgspec.field(default_factory=dict)
    child_asks: dict[AskID, SessionID] = msgspec.field(default_factory=dict)
    team_message: int = 0
    prompts: list[str] = msgspec.field(default_factory=list)
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    child_usage: Usage = Usage()
    last_input_tokens: int = 0
    runs: int = 0
    unknown_events: int = 0

    def open_calls(self) -> list[OpenCall]:
        """The calls that have no final result yet, in call order."""
        return [c for c in self.open_turn.calls if c.phase != "finished"] if self.open_turn else []

    def call(self, tool_call_id: ToolCallID) -> OpenCall | None:
        """The call of the turn in hand that has this id."""
        for call in self.open_turn.calls if self.open_turn else ():
            if call.tool_call_id == tool_call_id:
                return call
        return None

    def running_children(self) -> list[ChildRef]:
        """The children whose runs haven't ended, in the order in which they were started."""
        return [child for child in self.children.values() if child.running]

    def children_of(self, tool_call_id: ToolCallID) -> list[ChildRef]:
        """The children that this call started last."""
        return [child for child in self.children.values() if child.tool_call_id == tool_call_id]

    def outstanding_pairings(self) -> set[str]:
        """The private pairing ids of calls that have no final result."""
        return {c.replay.pairing_id for c in self.open_calls() if c.replay is not None}
