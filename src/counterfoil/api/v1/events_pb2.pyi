from counterfoil.api.v1 import records_pb2 as _records_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("session_id", "run_id", "seq", "offset", "recorded_at", "session_created", "session_updated", "run_started", "run_finished", "user_prompt", "turn_started", "turn_finished", "turn_rejected", "assistant_message", "call_accepted", "call_effective", "call_started", "call_held", "call_finished", "hook_recorded", "ask_opened", "ask_withdrawn", "ask_settled", "review_acknowledged", "delegation_started", "delegation_finished", "compaction_done", "grant_changed", "notice", "call_delta", "call_progress", "delegation_progress", "message_delta", "reasoning_delta", "unknown", "team_task_changed", "team_message_sent", "delegation_surfaced")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_CREATED_FIELD_NUMBER: _ClassVar[int]
    SESSION_UPDATED_FIELD_NUMBER: _ClassVar[int]
    RUN_STARTED_FIELD_NUMBER: _ClassVar[int]
    RUN_FINISHED_FIELD_NUMBER: _ClassVar[int]
    USER_PROMPT_FIELD_NUMBER: _ClassVar[int]
    TURN_STARTED_FIELD_NUMBER: _ClassVar[int]
    TURN_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TURN_REJECTED_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CALL_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    CALL_EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    CALL_STARTED_FIELD_NUMBER: _ClassVar[int]
    CALL_HELD_FIELD_NUMBER: _ClassVar[int]
    CALL_FINISHED_FIELD_NUMBER: _ClassVar[int]
    HOOK_RECORDED_FIELD_NUMBER: _ClassVar[int]
    ASK_OPENED_FIELD_NUMBER: _ClassVar[int]
    ASK_WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    ASK_SETTLED_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_STARTED_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_FINISHED_FIELD_NUMBER: _ClassVar[int]
    COMPACTION_DONE_FIELD_NUMBER: _ClassVar[int]
    GRANT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    CALL_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_DELTA_FIELD_NUMBER: _ClassVar[int]
    REASONING_DELTA_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    TEAM_TASK_CHANGED_FIELD_NUMBER: _ClassVar[int]
    TEAM_MESSAGE_SENT_FIELD_NUMBER: _ClassVar[int]
    DELEGATION_SURFACED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    seq: int
    offset: int
    recorded_at: int
    session_created: SessionCreated
    session_updated: SessionUpdated
    run_started: RunStarted
    run_finished: RunFinished
    user_prompt: UserPrompt
    turn_started: TurnStarted
    turn_finished: TurnFinished
    turn_rejected: TurnRejected
    assistant_message: AssistantMessage
    call_accepted: CallAccepted
    call_effective: CallEffective
    call_started: CallStarted
    call_held: CallHeld
    call_finished: CallFinished
    hook_recorded: HookRecorded
    ask_opened: AskOpened
    ask_withdrawn: AskWithdrawn
    ask_settled: AskSettled
    review_acknowledged: ReviewAcknowledged
    delegation_started: DelegationStarted
    delegation_finished: DelegationFinished
    compaction_done: CompactionDone
    grant_changed: GrantChanged
    notice: Notice
    call_delta: CallDelta
    call_progress: CallProgress
    delegation_progress: DelegationProgress
    message_delta: MessageDelta
    reasoning_delta: ReasoningDelta
    unknown: UnknownEvent
    team_task_changed: TeamTaskChanged
    team_message_sent: TeamMessageSent
    delegation_surfaced: DelegationSurfaced
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., seq: _Optional[int] = ..., offset: _Optional[int] = ..., recorded_at: _Optional[int] = ..., session_created: _Optional[_Union[SessionCreated, _Mapping]] = ..., session_updated: _Optional[_Union[SessionUpdated, _Mapping]] = ..., run_started: _Optional[_Union[RunStarted, _Mapping]] = ..., run_finished: _Optional[_Union[RunFinished, _Mapping]] = ..., user_prompt: _Optional[_Union[UserPrompt, _Mapping]] = ..., turn_started: _Optional[_Union[TurnStarted, _Mapping]] = ..., turn_finished: _Optional[_Union[TurnFinished, _Mapping]] = ..., turn_rejected: _Optional[_Union[TurnRejected, _Mapping]] = ..., assistant_message: _Optional[_Union[AssistantMessage, _Mapping]] = ..., call_accepted: _Optional[_Union[CallAccepted, _Mapping]] = ..., call_effective: _Optional[_Union[CallEffective, _Mapping]] = ..., call_started: _Optional[_Union[CallStarted, _Mapping]] = ..., call_held: _Optional[_Union[CallHeld, _Mapping]] = ..., call_finished: _Optional[_Union[CallFinished, _Mapping]] = ..., hook_recorded: _Optional[_Union[HookRecorded, _Mapping]] = ..., ask_opened: _Optional[_Union[AskOpened, _Mapping]] = ..., ask_withdrawn: _Optional[_Union[AskWithdrawn, _Mapping]] = ..., ask_settled: _Optional[_Union[AskSettled, _Mapping]] = ..., review_acknowledged: _Optional[_Union[ReviewAcknowledged, _Mapping]] = ..., delegation_started: _Optional[_Union[DelegationStarted, _Mapping]] = ..., delegation_finished: _Optional[_Union[DelegationFinished, _Mapping]] = ..., compaction_done: _Optional[_Union[CompactionDone, _Mapping]] = ..., grant_changed: _Optional[_Union[GrantChanged, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., call_delta: _Optional[_Union[CallDelta, _Mapping]] = ..., call_progress: _Optional[_Union[CallProgress, _Mapping]] = ..., delegation_progress: _Optional[_Union[DelegationProgress, _Mapping]] = ..., message_delta: _Optional[_Union[MessageDelta, _Mapping]] = ..., reasoning_delta: _Optional[_Union[ReasoningDelta, _Mapping]] = ..., unknown: _Optional[_Union[UnknownEvent, _Mapping]] = ..., team_task_changed: _Optional[_Union[TeamTaskChanged, _Mapping]] = ..., team_message_sent: _Optional[_Union[TeamMessageSent, _Mapping]] = ..., delegation_surfaced: _Optional[_Union[DelegationSurfaced, _Mapping]] = ...) -> None: ...

class SessionCreated(_message.Message):
    __slots__ = ("session_id", "session_kind", "relationship", "owner", "title", "workspace", "provider", "model", "base_url", "mode", "limits", "authority")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KIND_FIELD_NUMBER: _ClassVar[int]
    RELATIONSHIP_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    session_kind: str
    relationship: _records_pb2.Relationship
    owner: _records_pb2.Principal
    title: str
    workspace: str
    provider: str
    model: str
    base_url: str
    mode: str
    limits: _records_pb2.Limits
    authority: _records_pb2.Authority
    def __init__(self, session_id: _Optional[str] = ..., session_kind: _Optional[str] = ..., relationship: _Optional[_Union[_records_pb2.Relationship, _Mapping]] = ..., owner: _Optional[_Union[_records_pb2.Principal, _Mapping]] = ..., title: _Optional[str] = ..., workspace: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., base_url: _Optional[str] = ..., mode: _Optional[str] = ..., limits: _Optional[_Union[_records_pb2.Limits, _Mapping]] = ..., authority: _Optional[_Union[_records_pb2.Authority, _Mapping]] = ...) -> None: ...

class SessionUpdated(_message.Message):
    __slots__ = ("title", "provider", "model", "base_url", "mode", "limits")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    title: str
    provider: str
    model: str
    base_url: str
    mode: str
    limits: _records_pb2.Limits
    def __init__(self, title: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., base_url: _Optional[str] = ..., mode: _Optional[str] = ..., limits: _Optional[_Union[_records_pb2.Limits, _Mapping]] = ...) -> None: ...

class RunStarted(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class RunFinished(_message.Message):
    __slots__ = ("run_id", "stop_reason", "usage", "review_usage", "turns", "text", "error", "child_usage")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    REVIEW_USAGE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CHILD_USAGE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    stop_reason: str
    usage: _records_pb2.Usage
    review_usage: _records_pb2.Usage
    turns: int
    text: str
    error: _records_pb2.ErrorInfo
    child_usage: _records_pb2.Usage
    def __init__(self, run_id: _Optional[str] = ..., stop_reason: _Optional[str] = ..., usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ..., review_usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ..., turns: _Optional[int] = ..., text: _Optional[str] = ..., error: _Optional[_Union[_records_pb2.ErrorInfo, _Mapping]] = ..., child_usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ...) -> None: ...

class UserPrompt(_message.Message):
    __slots__ = ("parts", "source", "team_message")
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TEAM_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[_records_pb2.Part]
    source: str
    team_message: int
    def __init__(self, parts: _Optional[_Iterable[_Union[_records_pb2.Part, _Mapping]]] = ..., source: _Optional[str] = ..., team_message: _Optional[int] = ...) -> None: ...

class TurnStarted(_message.Message):
    __slots__ = ("turn", "attempt", "provider", "model")
    TURN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    turn: int
    attempt: int
    provider: str
    model: str
    def __init__(self, turn: _Optional[int] = ..., attempt: _Optional[int] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class TurnFinished(_message.Message):
    __slots__ = ("turn", "usage", "stop_reason", "model")
    TURN_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    turn: int
    usage: _records_pb2.Usage
    stop_reason: str
    model: str
    def __init__(self, turn: _Optional[int] = ..., usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ..., stop_reason: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class TurnRejected(_message.Message):
    __slots__ = ("turn", "attempt", "code", "reason", "usage")
    TURN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    turn: int
    attempt: int
    code: str
    reason: str
    usage: _records_pb2.Usage
    def __init__(self, turn: _Optional[int] = ..., attempt: _Optional[int] = ..., code: _Optional[str] = ..., reason: _Optional[str] = ..., usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ...) -> None: ...

class AssistantMessage(_message.Message):
    __slots__ = ("turn", "text", "reasoning")
    TURN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    turn: int
    text: str
    reasoning: str
    def __init__(self, turn: _Optional[int] = ..., text: _Optional[str] = ..., reasoning: _Optional[str] = ...) -> None: ...

class CallAccepted(_message.Message):
    __slots__ = ("tool_call_id", "turn", "position", "tool", "arguments_json", "arguments_digest", "read_only", "problem")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    turn: int
    position: int
    tool: str
    arguments_json: str
    arguments_digest: str
    read_only: bool
    problem: str
    def __init__(self, tool_call_id: _Optional[str] = ..., turn: _Optional[int] = ..., position: _Optional[int] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., arguments_digest: _Optional[str] = ..., read_only: _Optional[bool] = ..., problem: _Optional[str] = ...) -> None: ...

class CallEffective(_message.Message):
    __slots__ = ("tool_call_id", "arguments_json", "arguments_digest", "hook_id")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    HOOK_ID_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    arguments_json: str
    arguments_digest: str
    hook_id: str
    def __init__(self, tool_call_id: _Optional[str] = ..., arguments_json: _Optional[str] = ..., arguments_digest: _Optional[str] = ..., hook_id: _Optional[str] = ...) -> None: ...

class CallStarted(_message.Message):
    __slots__ = ("tool_call_id", "arguments_digest", "attempt")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    arguments_digest: str
    attempt: int
    def __init__(self, tool_call_id: _Optional[str] = ..., arguments_digest: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class CallHeld(_message.Message):
    __slots__ = ("tool_call_id", "review_id", "size", "result_digest")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    RESULT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    review_id: str
    size: int
    result_digest: str
    def __init__(self, tool_call_id: _Optional[str] = ..., review_id: _Optional[str] = ..., size: _Optional[int] = ..., result_digest: _Optional[str] = ...) -> None: ...

class CallFinished(_message.Message):
    __slots__ = ("tool_call_id", "status", "parts", "executed", "duration_ms")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    status: str
    parts: _containers.RepeatedCompositeFieldContainer[_records_pb2.Part]
    executed: str
    duration_ms: int
    def __init__(self, tool_call_id: _Optional[str] = ..., status: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[_records_pb2.Part, _Mapping]]] = ..., executed: _Optional[str] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class HookRecorded(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: _records_pb2.HookRecord
    def __init__(self, record: _Optional[_Union[_records_pb2.HookRecord, _Mapping]] = ...) -> None: ...

class AskOpened(_message.Message):
    __slots__ = ("ask",)
    ASK_FIELD_NUMBER: _ClassVar[int]
    ask: _records_pb2.Ask
    def __init__(self, ask: _Optional[_Union[_records_pb2.Ask, _Mapping]] = ...) -> None: ...

class AskWithdrawn(_message.Message):
    __slots__ = ("ask_id", "origin_session_id", "tool_call_id", "reason")
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    origin_session_id: str
    tool_call_id: str
    reason: str
    def __init__(self, ask_id: _Optional[str] = ..., origin_session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class AskSettled(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _records_pb2.Receipt
    def __init__(self, receipt: _Optional[_Union[_records_pb2.Receipt, _Mapping]] = ...) -> None: ...

class ReviewAcknowledged(_message.Message):
    __slots__ = ("review_id", "revision", "origin_session_id", "tool_call_id", "decided_by", "decided_at")
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_FIELD_NUMBER: _ClassVar[int]
    review_id: str
    revision: int
    origin_session_id: str
    tool_call_id: str
    decided_by: _records_pb2.Principal
    decided_at: int
    def __init__(self, review_id: _Optional[str] = ..., revision: _Optional[int] = ..., origin_session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., decided_by: _Optional[_Union[_records_pb2.Principal, _Mapping]] = ..., decided_at: _Optional[int] = ...) -> None: ...

class DelegationStarted(_message.Message):
    __slots__ = ("tool_call_id", "child_session_id", "session_kind", "member", "preview", "key", "agent_type", "background", "runs_before")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_KIND_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AGENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    RUNS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    child_session_id: str
    session_kind: str
    member: str
    preview: str
    key: str
    agent_type: str
    background: bool
    runs_before: int
    def __init__(self, tool_call_id: _Optional[str] = ..., child_session_id: _Optional[str] = ..., session_kind: _Optional[str] = ..., member: _Optional[str] = ..., preview: _Optional[str] = ..., key: _Optional[str] = ..., agent_type: _Optional[str] = ..., background: _Optional[bool] = ..., runs_before: _Optional[int] = ...) -> None: ...

class DelegationSurfaced(_message.Message):
    __slots__ = ("tool_call_id", "child_session_id", "child_offset", "origin_session_id", "origin_offset", "recorded_at", "record", "ask", "withdrawal", "receipt")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWAL_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    child_session_id: str
    child_offset: int
    origin_session_id: str
    origin_offset: int
    recorded_at: int
    record: _records_pb2.HookRecord
    ask: _records_pb2.Ask
    withdrawal: _records_pb2.Withdrawal
    receipt: _records_pb2.Receipt
    def __init__(self, tool_call_id: _Optional[str] = ..., child_session_id: _Optional[str] = ..., child_offset: _Optional[int] = ..., origin_session_id: _Optional[str] = ..., origin_offset: _Optional[int] = ..., recorded_at: _Optional[int] = ..., record: _Optional[_Union[_records_pb2.HookRecord, _Mapping]] = ..., ask: _Optional[_Union[_records_pb2.Ask, _Mapping]] = ..., withdrawal: _Optional[_Union[_records_pb2.Withdrawal, _Mapping]] = ..., receipt: _Optional[_Union[_records_pb2.Receipt, _Mapping]] = ...) -> None: ...

class DelegationFinished(_message.Message):
    __slots__ = ("tool_call_id", "child_session_id", "stop_reason", "preview", "calls", "refused", "usage", "review_usage")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    REVIEW_USAGE_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    child_session_id: str
    stop_reason: str
    preview: str
    calls: int
    refused: int
    usage: _records_pb2.Usage
    review_usage: _records_pb2.Usage
    def __init__(self, tool_call_id: _Optional[str] = ..., child_session_id: _Optional[str] = ..., stop_reason: _Optional[str] = ..., preview: _Optional[str] = ..., calls: _Optional[int] = ..., refused: _Optional[int] = ..., usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ..., review_usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ...) -> None: ...

class TeamTaskChanged(_message.Message):
    __slots__ = ("tool_call_id", "task", "changed_by")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CHANGED_BY_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    task: _records_pb2.TeamTask
    changed_by: str
    def __init__(self, tool_call_id: _Optional[str] = ..., task: _Optional[_Union[_records_pb2.TeamTask, _Mapping]] = ..., changed_by: _Optional[str] = ...) -> None: ...

class TeamMessageSent(_message.Message):
    __slots__ = ("tool_call_id", "number", "sender", "recipient", "text", "sent_by")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SENT_BY_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    number: int
    sender: str
    recipient: str
    text: str
    sent_by: str
    def __init__(self, tool_call_id: _Optional[str] = ..., number: _Optional[int] = ..., sender: _Optional[str] = ..., recipient: _Optional[str] = ..., text: _Optional[str] = ..., sent_by: _Optional[str] = ...) -> None: ...

class CompactionDone(_message.Message):
    __slots__ = ("summary", "replaced_from", "replaced_through", "archive", "trigger", "usage")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FROM_FIELD_NUMBER: _ClassVar[int]
    REPLACED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    summary: str
    replaced_from: int
    replaced_through: int
    archive: str
    trigger: str
    usage: _records_pb2.Usage
    def __init__(self, summary: _Optional[str] = ..., replaced_from: _Optional[int] = ..., replaced_through: _Optional[int] = ..., archive: _Optional[str] = ..., trigger: _Optional[str] = ..., usage: _Optional[_Union[_records_pb2.Usage, _Mapping]] = ...) -> None: ...

class GrantChanged(_message.Message):
    __slots__ = ("rule", "scope", "revoked", "ask_id", "decided_by")
    RULE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    rule: str
    scope: str
    revoked: bool
    ask_id: str
    decided_by: _records_pb2.Principal
    def __init__(self, rule: _Optional[str] = ..., scope: _Optional[str] = ..., revoked: _Optional[bool] = ..., ask_id: _Optional[str] = ..., decided_by: _Optional[_Union[_records_pb2.Principal, _Mapping]] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("severity", "code", "text")
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    severity: str
    code: str
    text: str
    def __init__(self, severity: _Optional[str] = ..., code: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class CallDelta(_message.Message):
    __slots__ = ("turn", "position", "tool", "arguments_text")
    TURN_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_TEXT_FIELD_NUMBER: _ClassVar[int]
    turn: int
    position: int
    tool: str
    arguments_text: str
    def __init__(self, turn: _Optional[int] = ..., position: _Optional[int] = ..., tool: _Optional[str] = ..., arguments_text: _Optional[str] = ...) -> None: ...

class CallProgress(_message.Message):
    __slots__ = ("tool_call_id", "text", "fraction")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    text: str
    fraction: float
    def __init__(self, tool_call_id: _Optional[str] = ..., text: _Optional[str] = ..., fraction: _Optional[float] = ...) -> None: ...

class DelegationProgress(_message.Message):
    __slots__ = ("tool_call_id", "child_session_id", "preview")
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    tool_call_id: str
    child_session_id: str
    preview: str
    def __init__(self, tool_call_id: _Optional[str] = ..., child_session_id: _Optional[str] = ..., preview: _Optional[str] = ...) -> None: ...

class MessageDelta(_message.Message):
    __slots__ = ("turn", "text")
    TURN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    turn: int
    text: str
    def __init__(self, turn: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class ReasoningDelta(_message.Message):
    __slots__ = ("turn", "text")
    TURN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    turn: int
    text: str
    def __init__(self, turn: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class UnknownEvent(_message.Message):
    __slots__ = ("original_kind", "body_json")
    ORIGINAL_KIND_FIELD_NUMBER: _ClassVar[int]
    BODY_JSON_FIELD_NUMBER: _ClassVar[int]
    original_kind: str
    body_json: str
    def __init__(self, original_kind: _Optional[str] = ..., body_json: _Optional[str] = ...) -> None: ...
