"""The closed union of public events (engine specification, section 3), one frozen type per kind."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from counterfoil.events.base import Event
from counterfoil.events.parts import Part
from counterfoil.events.records import Ask, HookRecord, Receipt, Scope, Withdrawal
from counterfoil.events.values import (
    Authority,
    CallStatus,
    ErrorInfo,
    Executed,
    Limits,
    Mode,
    Principal,
    PromptSource,
    Relationship,
    SessionKind,
    Severity,
    StopReason,
    TeamTask,
    TurnStop,
    Usage,
)
from counterfoil.identity import AskID, Digest, HookID, Offset, ReviewID, Revision, RunID, SessionID, ToolCallID


class SessionCreated(Event, frozen=True, kw_only=True, tag="session.created"):
    """The first event of each log. `base_url`: where the provider's API is, where its own place isn't meant.

    `authority`: of a child session, what it was started with.
    """

    session_id: SessionID
    session_kind: SessionKind = SessionKind.MAIN
    relationship: Relationship | None = None
    owner: Principal
    title: str = ""
    workspace: str
    provider: str
    model: str
    base_url: str = ""
    mode: Mode = "default"
    limits: Limits = Limits()
    authority: Authority | None = None


class SessionUpdated(Event, frozen=True, kw_only=True, tag="session.updated"):
    """Metadata changed. Only what changed is set."""

    title: str | None = None
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    mode: Mode | None = None
    limits: Limits | None = None


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    """One drive of the loop begins; its prompt is the `user.prompt` that follows in the same run."""

    run_id: RunID


class RunFinished(Event, frozen=True, kw_only=True, tag="run.finished"):
    """The run is over: exactly one for each run. `text` is the last message of the model.

    `review_usage` is what reviews of the run cost, `child_usage` what its child sessions did; `usage` contains neither.
    """

    run_id: RunID
    stop_reason: StopReason
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    child_usage: Usage = Usage()
    turns: int = 0
    text: str = ""
    error: ErrorInfo | None = None


class UserPrompt(Event, frozen=True, kw_only=True, tag="user.prompt"):
    """Input for the model: from the person, as a steer into a running turn, or from the harness itself.

    `team_message`: the number of the message of the team that it brings, so that none is brought twice.
    """

    parts: tuple[Part, ...]
    source: PromptSource = "human"
    team_message: int = 0


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn.started"):
    """A request goes to the model. `attempt` over 1: what was streamed before for this turn is void."""

    turn: int
    attempt: int = 1
    provider: str
    model: str


class TurnFinished(Event, frozen=True, kw_only=True, tag="turn.finished"):
    """The model's part of the turn is done; the calls that it made follow."""

    turn: int
    usage: Usage = Usage()
    stop_reason: TurnStop = "end_turn"
    model: str = ""


class TurnRejected(Event, frozen=True, kw_only=True, tag="turn.rejected"):
    """A turn came back that can't be accepted: nothing of it is recorded or run. No pairing id is named."""

    turn: int
    attempt: int = 1
    code: Literal["duplicate_pairing", "outstanding_pairing", "empty_turn", "too_many_calls"]
    reason: str
    usage: Usage = Usage()


class AssistantMessage(Event, frozen=True, kw_only=True, tag="assistant.message"):
    """What the model said in one turn. Private half: `AssistantReplay`."""

    turn: int
    text: str = ""
    reasoning: str = ""


class MessageDelta(Event, frozen=True, kw_only=True, tag="message.delta"):
    """Transient: more text of the message that streams."""

    turn: int
    text: str


class ReasoningDelta(Event, frozen=True, kw_only=True, tag="reasoning.delta"):
    """Transient: more text of the public reasoning."""

    turn: int
    text: str


class CallDelta(Event, frozen=True, kw_only=True, tag="call.delta"):
    """Transient: a call that the model is still writing. It has no id yet: nothing is accepted."""

    turn: int
    position: int
    tool: str = ""
    arguments_text: str = ""


class CallAccepted(Event, frozen=True, kw_only=True, tag="call.accepted"):
    """The engine accepted one invocation of a tool and gave it its id. Private half: `CallReplay`.

    `problem` is set where the arguments weren't a JSON object; then nothing runs and `arguments` is empty.
    """

    tool_call_id: ToolCallID
    turn: int
    position: int
    tool: str
    arguments: dict[str, Any]
    arguments_digest: Digest
    read_only: bool = False
    problem: str | None = None


class CallEffective(Event, frozen=True, kw_only=True, tag="call.effective"):
    """A hook changed what would run. The call keeps its id."""

    tool_call_id: ToolCallID
    arguments: dict[str, Any]
    arguments_digest: Digest
    hook_id: HookID


class CallStarted(Event, frozen=True, kw_only=True, tag="call.started"):
    """The call begins to execute. Durable before the tool runs: the commit point of a side effect."""

    tool_call_id: ToolCallID
    arguments_digest: Digest
    attempt: int = 1


class CallProgress(Event, frozen=True, kw_only=True, tag="call.progress"):
    """Transient: news of a running call. `fraction` is between 0 and 1."""

    tool_call_id: ToolCallID
    text: str = ""
    fraction: float | None = None


class CallHeld(Event, frozen=True, kw_only=True, tag="call.held"):
    """The result exists and is kept back: while it is reviewed, and until released or withheld.

    `size` is its bytes as JSON. Private half: `HeldResult`.
    """

    tool_call_id: ToolCallID
    review_id: ReviewID
    size: int
    result_digest: Digest


class CallFinished(Event, frozen=True, kw_only=True, tag="call.finished"):
    """The final result. `executed` says whether side effects happened: `yes`, `no` or `unknown`."""

    tool_call_id: ToolCallID
    status: CallStatus
    parts: tuple[Part, ...] = ()
    executed: Executed
    duration_ms: int = 0


class HookRecorded(Event, frozen=True, kw_only=True, tag="hook.recorded"):
    """A hook or review said something; the record carries its id and revision."""

    record: HookRecord


class AskOpened(Event, frozen=True, kw_only=True, tag="ask.opened"):
    """A person is asked about one call."""

    ask: Ask


class AskWithdrawn(Event, frozen=True, kw_only=True, tag="ask.withdrawn"):
    """The question no longer stands; an answer to it changes nothing."""

    ask_id: AskID
    origin_session_id: SessionID
    tool_call_id: ToolCallID
    reason: str


class AskSettled(Event, frozen=True, kw_only=True, tag="ask.settled"):
    """The ask has its verdict."""

    receipt: Receipt


class ReviewAcknowledged(Event, frozen=True, kw_only=True, tag="review.acknowledged"):
    """A person saw this revision of a review. Decides nothing. `decided_at` is µs since the epoch, UTC."""

    review_id: ReviewID
    revision: Revision
    origin_session_id: SessionID
    tool_call_id: ToolCallID
    decided_by: Principal
    decided_at: int


class DelegationStarted(Event, frozen=True, kw_only=True, tag="delegation.started"):
    """A call of this session started a run of a child session, or goes on with one that had ended.

    `key`: which of the call's children it is, so that a call that is taken up again finds it. `background`: the call
    doesn't wait for it. `runs_before`: how many runs the child's log had.
    """

    tool_call_id: ToolCallID
    child_session_id: SessionID
    session_kind: SessionKind
    member: str | None = None
    preview: str = ""
    key: str = ""
    agent_type: str = ""
    background: bool = False
    runs_before: int = 0


class DelegationProgress(Event, frozen=True, kw_only=True, tag="delegation.progress"):
    """Transient: a bounded preview of a child."""

    tool_call_id: ToolCallID
    child_session_id: SessionID
    preview: str = ""


class DelegationSurfaced(Event, frozen=True, kw_only=True, tag="delegation.surfaced"):
    """Something that people must see was published in a child's log: it stands here too, in this log's order.

    Exactly one of `record`, `ask`, `withdrawal` and `receipt` is set, as it is in the log of `origin_session_id` at
    `origin_offset`, with its own ids and revision; `recorded_at` is its time. `child_session_id` is the child of this
    session that it came through, at `child_offset` of that one's log: the origin itself, or an ancestor of it.
    """

    tool_call_id: ToolCallID
    child_session_id: SessionID
    child_offset: Offset
    origin_session_id: SessionID
    origin_offset: Offset
    recorded_at: int
    record: HookRecord | None = None
    ask: Ask | None = None
    withdrawal: Withdrawal | None = None
    receipt: Receipt | None = None


class DelegationFinished(Event, frozen=True, kw_only=True, tag="delegation.finished"):
    """The run of a child session ended.

    `calls`: how many it made; `refused`: of these, denied, blocked or withheld. `usage` contains what its own children
    used, `review_usage` likewise.
    """

    tool_call_id: ToolCallID
    child_session_id: SessionID
    stop_reason: StopReason
    preview: str = ""
    calls: int = 0
    refused: int = 0
    usage: Usage = Usage()
    review_usage: Usage = Usage()


class TeamTaskChanged(Event, frozen=True, kw_only=True, tag="team.task_changed"):
    """A task of a team was made or changed: `task` is all of it. In the log of the session that started the team.

    `tool_call_id` is the team's call there; `changed_by` the call of the member (or the lead) that changed it.
    """

    tool_call_id: ToolCallID
    task: TeamTask
    changed_by: ToolCallID


class TeamMessageSent(Event, frozen=True, kw_only=True, tag="team.message_sent"):
    """A member of a team wrote to another, or to all (`recipient` is empty). In the log of the team's session."""

    tool_call_id: ToolCallID
    number: int
    sender: str
    recipient: str = ""
    text: str
    sent_by: ToolCallID


class CompactionDone(Event, frozen=True, kw_only=True, tag="compaction.done"):
    """History up to and with offset `replaced_through` is now told by `summary`.

    The events themselves stay in the log: `archive` names their range, and their ids stay valid.
    """

    summary: str
    replaced_from: Offset
    replaced_through: Offset
    archive: str
    trigger: Literal["manual", "auto", "context_length"] = "auto"
    usage: Usage = Usage()


class GrantChanged(Event, frozen=True, kw_only=True, tag="grant.changed"):
    """A rule was learned from an answer, or revoked."""

    rule: str
    scope: Scope
    revoked: bool = False
    ask_id: AskID | None = None
    decided_by: Principal


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """Something that people must see and that isn't about one call."""

    severity: Severity
    code: str
    text: str


class UnknownEvent(Event, frozen=True, kw_only=True, tag="unknown"):
    """An event of a kind, or with a content, that this version doesn't know. `body` is its exact JSON text."""

    original_kind: str
    body: msgspec.Raw


TRANSIENT: frozenset[type[Event]] = frozenset(
    {MessageDelta, ReasoningDelta, CallDelta, CallProgress, DelegationProgress}
)
"""Kinds that are sent to whoever watches and not logged."""

DURABLE: tuple[type[Event], ...] = (
    SessionCreated,
    SessionUpdated,
    RunStarted,
    RunFinished,
    UserPrompt,
    TurnStarted,
    TurnFinished,
    TurnRejected,
    AssistantMessage,
    CallAccepted,
    CallEffective,
    CallStarted,
    CallHeld,
    CallFinished,
    HookRecorded,
    AskOpened,
    AskWithdrawn,
    AskSettled,
    ReviewAcknowledged,
    DelegationStarted,
    DelegationSurfaced,
    DelegationFinished,
    TeamTaskChanged,
    TeamMessageSent,
    CompactionDone,
    GrantChanged,
    Notice,
)
"""Kinds that are logged."""
