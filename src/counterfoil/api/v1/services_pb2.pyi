from counterfoil.api.v1 import events_pb2 as _events_pb2
from counterfoil.api.v1 import records_pb2 as _records_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorDetail(_message.Message):
    __slots__ = ("code", "message", "hint", "field", "receipt")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    field: str
    receipt: _records_pb2.Receipt
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., field: _Optional[str] = ..., receipt: _Optional[_Union[_records_pb2.Receipt, _Mapping]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("session_id", "kind", "parent_session_id", "owner", "title", "workspace", "provider", "model", "status", "open_asks", "created_at", "updated_at")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PARENT_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OPEN_ASKS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    kind: str
    parent_session_id: str
    owner: str
    title: str
    workspace: str
    provider: str
    model: str
    status: str
    open_asks: int
    created_at: int
    updated_at: int
    def __init__(self, session_id: _Optional[str] = ..., kind: _Optional[str] = ..., parent_session_id: _Optional[str] = ..., owner: _Optional[str] = ..., title: _Optional[str] = ..., workspace: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., status: _Optional[str] = ..., open_asks: _Optional[int] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("workspace", "provider", "model", "mode", "title", "limits")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    provider: str
    model: str
    mode: str
    title: str
    limits: _records_pb2.Limits
    def __init__(self, workspace: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., mode: _Optional[str] = ..., title: _Optional[str] = ..., limits: _Optional[_Union[_records_pb2.Limits, _Mapping]] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: Session
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "status", "text", "owner")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    status: str
    text: str
    owner: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., status: _Optional[str] = ..., text: _Optional[str] = ..., owner: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RenameRequest(_message.Message):
    __slots__ = ("session_id", "title")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    title: str
    def __init__(self, session_id: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class RenameResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForkRequest(_message.Message):
    __slots__ = ("session_id", "at", "title")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    at: int
    title: str
    def __init__(self, session_id: _Optional[str] = ..., at: _Optional[int] = ..., title: _Optional[str] = ...) -> None: ...

class ForkResponse(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetModeRequest(_message.Message):
    __slots__ = ("session_id", "mode")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    mode: str
    def __init__(self, session_id: _Optional[str] = ..., mode: _Optional[str] = ...) -> None: ...

class SetModeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetModelRequest(_message.Message):
    __slots__ = ("session_id", "provider", "model")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    provider: str
    model: str
    def __init__(self, session_id: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ...) -> None: ...

class SetModelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompactRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class CompactResponse(_message.Message):
    __slots__ = ("compacted",)
    COMPACTED_FIELD_NUMBER: _ClassVar[int]
    compacted: bool
    def __init__(self, compacted: _Optional[bool] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    def __init__(self, chunk: _Optional[bytes] = ...) -> None: ...

class ConverseRequest(_message.Message):
    __slots__ = ("begin", "prompt", "steer", "answer", "cancel")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    STEER_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    begin: WatchRequest
    prompt: PromptRequest
    steer: SteerRequest
    answer: AnswerRequest
    cancel: CancelRequest
    def __init__(self, begin: _Optional[_Union[WatchRequest, _Mapping]] = ..., prompt: _Optional[_Union[PromptRequest, _Mapping]] = ..., steer: _Optional[_Union[SteerRequest, _Mapping]] = ..., answer: _Optional[_Union[AnswerRequest, _Mapping]] = ..., cancel: _Optional[_Union[CancelRequest, _Mapping]] = ...) -> None: ...

class ConverseResponse(_message.Message):
    __slots__ = ("watched", "refused")
    WATCHED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    watched: WatchResponse
    refused: ErrorDetail
    def __init__(self, watched: _Optional[_Union[WatchResponse, _Mapping]] = ..., refused: _Optional[_Union[ErrorDetail, _Mapping]] = ...) -> None: ...

class PromptRequest(_message.Message):
    __slots__ = ("session_id", "parts")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    parts: _containers.RepeatedCompositeFieldContainer[_records_pb2.Part]
    def __init__(self, session_id: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[_records_pb2.Part, _Mapping]]] = ...) -> None: ...

class PromptResponse(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class ResumeResponse(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class SteerRequest(_message.Message):
    __slots__ = ("session_id", "text")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    text: str
    def __init__(self, session_id: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class SteerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelCallRequest(_message.Message):
    __slots__ = ("session_id", "tool_call_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    tool_call_id: str
    def __init__(self, session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ...) -> None: ...

class CancelCallResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("session_id", "after_offset")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_OFFSET_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after_offset: int
    def __init__(self, session_id: _Optional[str] = ..., after_offset: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("event", "caught_up", "gap", "heart_beat")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    HEART_BEAT_FIELD_NUMBER: _ClassVar[int]
    event: _events_pb2.Event
    caught_up: CaughtUp
    gap: Gap
    heart_beat: HeartBeat
    def __init__(self, event: _Optional[_Union[_events_pb2.Event, _Mapping]] = ..., caught_up: _Optional[_Union[CaughtUp, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ..., heart_beat: _Optional[_Union[HeartBeat, _Mapping]] = ...) -> None: ...

class CaughtUp(_message.Message):
    __slots__ = ("offset",)
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    def __init__(self, offset: _Optional[int] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("last_offset",)
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    last_offset: int
    def __init__(self, last_offset: _Optional[int] = ...) -> None: ...

class HeartBeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchAllRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchAllResponse(_message.Message):
    __slots__ = ("opened", "ended", "heart_beat")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    HEART_BEAT_FIELD_NUMBER: _ClassVar[int]
    opened: OpenAsk
    ended: AskEnded
    heart_beat: HeartBeat
    def __init__(self, opened: _Optional[_Union[OpenAsk, _Mapping]] = ..., ended: _Optional[_Union[AskEnded, _Mapping]] = ..., heart_beat: _Optional[_Union[HeartBeat, _Mapping]] = ...) -> None: ...

class OpenAsk(_message.Message):
    __slots__ = ("ask", "opened_at", "session_title", "session_id", "untrusted_preview")
    ASK_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_TITLE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_PREVIEW_FIELD_NUMBER: _ClassVar[int]
    ask: _records_pb2.Ask
    opened_at: int
    session_title: str
    session_id: str
    untrusted_preview: str
    def __init__(self, ask: _Optional[_Union[_records_pb2.Ask, _Mapping]] = ..., opened_at: _Optional[int] = ..., session_title: _Optional[str] = ..., session_id: _Optional[str] = ..., untrusted_preview: _Optional[str] = ...) -> None: ...

class AskEnded(_message.Message):
    __slots__ = ("ask_id", "origin_session_id")
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    origin_session_id: str
    def __init__(self, ask_id: _Optional[str] = ..., origin_session_id: _Optional[str] = ...) -> None: ...

class ListAsksRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class ListAsksResponse(_message.Message):
    __slots__ = ("asks",)
    ASKS_FIELD_NUMBER: _ClassVar[int]
    asks: _containers.RepeatedCompositeFieldContainer[OpenAsk]
    def __init__(self, asks: _Optional[_Iterable[_Union[OpenAsk, _Mapping]]] = ...) -> None: ...

class GetAskRequest(_message.Message):
    __slots__ = ("ask_id",)
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    def __init__(self, ask_id: _Optional[str] = ...) -> None: ...

class GetAskResponse(_message.Message):
    __slots__ = ("ask",)
    ASK_FIELD_NUMBER: _ClassVar[int]
    ask: OpenAsk
    def __init__(self, ask: _Optional[_Union[OpenAsk, _Mapping]] = ...) -> None: ...

class AnswerRequest(_message.Message):
    __slots__ = ("ask_id", "verdict", "scope", "note", "idempotency_key", "rule")
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    verdict: str
    scope: str
    note: str
    idempotency_key: str
    rule: str
    def __init__(self, ask_id: _Optional[str] = ..., verdict: _Optional[str] = ..., scope: _Optional[str] = ..., note: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class AnswerResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _records_pb2.Receipt
    def __init__(self, receipt: _Optional[_Union[_records_pb2.Receipt, _Mapping]] = ...) -> None: ...

class ListGrantsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("rule", "scope", "ask_id")
    RULE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    rule: str
    scope: str
    ask_id: str
    def __init__(self, rule: _Optional[str] = ..., scope: _Optional[str] = ..., ask_id: _Optional[str] = ...) -> None: ...

class ListGrantsResponse(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    def __init__(self, grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ...) -> None: ...

class RevokeGrantRequest(_message.Message):
    __slots__ = ("session_id", "rule")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    rule: str
    def __init__(self, session_id: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class RevokeGrantResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReviewPolicy(_message.Message):
    __slots__ = ("name", "jobs", "tools", "checker", "enforcement", "checks", "outages", "last_outage", "last_outage_at")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    CHECKER_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    OUTAGES_FIELD_NUMBER: _ClassVar[int]
    LAST_OUTAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_OUTAGE_AT_FIELD_NUMBER: _ClassVar[int]
    name: str
    jobs: _containers.RepeatedScalarFieldContainer[str]
    tools: _containers.RepeatedScalarFieldContainer[str]
    checker: str
    enforcement: str
    checks: int
    outages: int
    last_outage: str
    last_outage_at: int
    def __init__(self, name: _Optional[str] = ..., jobs: _Optional[_Iterable[str]] = ..., tools: _Optional[_Iterable[str]] = ..., checker: _Optional[str] = ..., enforcement: _Optional[str] = ..., checks: _Optional[int] = ..., outages: _Optional[int] = ..., last_outage: _Optional[str] = ..., last_outage_at: _Optional[int] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("policies",)
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[ReviewPolicy]
    def __init__(self, policies: _Optional[_Iterable[_Union[ReviewPolicy, _Mapping]]] = ...) -> None: ...

class ListReviewsRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class ListReviewsResponse(_message.Message):
    __slots__ = ("reviews",)
    REVIEWS_FIELD_NUMBER: _ClassVar[int]
    reviews: _containers.RepeatedCompositeFieldContainer[_records_pb2.HookRecord]
    def __init__(self, reviews: _Optional[_Iterable[_Union[_records_pb2.HookRecord, _Mapping]]] = ...) -> None: ...

class GetDetailRequest(_message.Message):
    __slots__ = ("session_id", "review_id", "revision")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    review_id: str
    revision: int
    def __init__(self, session_id: _Optional[str] = ..., review_id: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class GetDetailResponse(_message.Message):
    __slots__ = ("session_id", "review_id", "revision", "untrusted_concern", "untrusted_evidence", "untrusted_next_step")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_CONCERN_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    review_id: str
    revision: int
    untrusted_concern: str
    untrusted_evidence: str
    untrusted_next_step: str
    def __init__(self, session_id: _Optional[str] = ..., review_id: _Optional[str] = ..., revision: _Optional[int] = ..., untrusted_concern: _Optional[str] = ..., untrusted_evidence: _Optional[str] = ..., untrusted_next_step: _Optional[str] = ...) -> None: ...

class AcknowledgeRequest(_message.Message):
    __slots__ = ("session_id", "review_id", "revision")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    review_id: str
    revision: int
    def __init__(self, session_id: _Optional[str] = ..., review_id: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class AcknowledgeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetTranscriptRequest(_message.Message):
    __slots__ = ("session_id", "after_offset", "page_size")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    after_offset: int
    page_size: int
    def __init__(self, session_id: _Optional[str] = ..., after_offset: _Optional[int] = ..., page_size: _Optional[int] = ...) -> None: ...

class GetTranscriptResponse(_message.Message):
    __slots__ = ("events", "next_offset")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_events_pb2.Event]
    next_offset: int
    def __init__(self, events: _Optional[_Iterable[_Union[_events_pb2.Event, _Mapping]]] = ..., next_offset: _Optional[int] = ...) -> None: ...

class InspectCallRequest(_message.Message):
    __slots__ = ("session_id", "tool_call_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    tool_call_id: str
    def __init__(self, session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ...) -> None: ...

class InspectCallResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_events_pb2.Event]
    def __init__(self, events: _Optional[_Iterable[_Union[_events_pb2.Event, _Mapping]]] = ...) -> None: ...

class VerifyLogRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class VerifyLogResponse(_message.Message):
    __slots__ = ("intact", "events", "first_bad_offset")
    INTACT_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_BAD_OFFSET_FIELD_NUMBER: _ClassVar[int]
    intact: bool
    events: int
    first_bad_offset: int
    def __init__(self, intact: _Optional[bool] = ..., events: _Optional[int] = ..., first_bad_offset: _Optional[int] = ...) -> None: ...

class GetInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetInfoResponse(_message.Message):
    __slots__ = ("version", "principal_name", "role", "capabilities", "workspace", "provider", "model", "mode")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    version: str
    principal_name: str
    role: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    workspace: str
    provider: str
    model: str
    mode: str
    def __init__(self, version: _Optional[str] = ..., principal_name: _Optional[str] = ..., role: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., workspace: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., mode: _Optional[str] = ...) -> None: ...
