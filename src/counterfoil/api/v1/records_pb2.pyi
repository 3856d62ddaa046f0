from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TextPart(_message.Message):
    __slots__ = ("text", "truncated_bytes")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    text: str
    truncated_bytes: int
    def __init__(self, text: _Optional[str] = ..., truncated_bytes: _Optional[int] = ...) -> None: ...

class ImagePart(_message.Message):
    __slots__ = ("media_type", "data", "name")
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    media_type: str
    data: str
    name: str
    def __init__(self, media_type: _Optional[str] = ..., data: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class FilePart(_message.Message):
    __slots__ = ("path", "media_type", "size", "digest")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    path: str
    media_type: str
    size: int
    digest: str
    def __init__(self, path: _Optional[str] = ..., media_type: _Optional[str] = ..., size: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("text", "image", "file")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    text: TextPart
    image: ImagePart
    file: FilePart
    def __init__(self, text: _Optional[_Union[TextPart, _Mapping]] = ..., image: _Optional[_Union[ImagePart, _Mapping]] = ..., file: _Optional[_Union[FilePart, _Mapping]] = ...) -> None: ...

class Relationship(_message.Message):
    __slots__ = ("parent_session_id", "parent_tool_call_id", "member", "forked_at", "copied_from")
    PARENT_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    FORKED_AT_FIELD_NUMBER: _ClassVar[int]
    COPIED_FROM_FIELD_NUMBER: _ClassVar[int]
    parent_session_id: str
    parent_tool_call_id: str
    member: str
    forked_at: int
    copied_from: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, parent_session_id: _Optional[str] = ..., parent_tool_call_id: _Optional[str] = ..., member: _Optional[str] = ..., forked_at: _Optional[int] = ..., copied_from: _Optional[_Iterable[str]] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ("kind", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Authority(_message.Message):
    __slots__ = ("agent_type", "tools", "instructions", "depth", "root_session_id")
    AGENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ROOT_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    agent_type: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    instructions: str
    depth: int
    root_session_id: str
    def __init__(self, agent_type: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., instructions: _Optional[str] = ..., depth: _Optional[int] = ..., root_session_id: _Optional[str] = ...) -> None: ...

class TeamTask(_message.Message):
    __slots__ = ("number", "title", "text", "state", "owner", "after", "result")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    number: int
    title: str
    text: str
    state: str
    owner: str
    after: _containers.RepeatedScalarFieldContainer[int]
    result: str
    def __init__(self, number: _Optional[int] = ..., title: _Optional[str] = ..., text: _Optional[str] = ..., state: _Optional[str] = ..., owner: _Optional[str] = ..., after: _Optional[_Iterable[int]] = ..., result: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_turns", "max_tool_calls", "max_consecutive_failures", "max_tokens", "max_repeated_turns")
    MAX_TURNS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONSECUTIVE_FAILURES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPEATED_TURNS_FIELD_NUMBER: _ClassVar[int]
    max_turns: int
    max_tool_calls: int
    max_consecutive_failures: int
    max_tokens: int
    max_repeated_turns: int
    def __init__(self, max_turns: _Optional[int] = ..., max_tool_calls: _Optional[int] = ..., max_consecutive_failures: _Optional[int] = ..., max_tokens: _Optional[int] = ..., max_repeated_turns: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "requests")
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_READ_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHE_WRITE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    requests: int
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cache_read_tokens: _Optional[int] = ..., cache_write_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., requests: _Optional[int] = ...) -> None: ...

class ErrorInfo(_message.Message):
    __slots__ = ("code", "message", "hint", "permanent")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    permanent: bool
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class Definition(_message.Message):
    __slots__ = ("name", "tier")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    name: str
    tier: str
    def __init__(self, name: _Optional[str] = ..., tier: _Optional[str] = ...) -> None: ...

class Review(_message.Message):
    __slots__ = ("review_id", "job", "state", "finding", "enforcement", "policy", "checker", "categories", "confidence", "reviewed_digest", "outage", "incomplete", "ask_id", "usage")
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FINDING_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    CHECKER_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    REVIEWED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OUTAGE_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    review_id: str
    job: str
    state: str
    finding: str
    enforcement: str
    policy: str
    checker: str
    categories: _containers.RepeatedScalarFieldContainer[str]
    confidence: str
    reviewed_digest: str
    outage: str
    incomplete: _containers.RepeatedScalarFieldContainer[str]
    ask_id: str
    usage: Usage
    def __init__(self, review_id: _Optional[str] = ..., job: _Optional[str] = ..., state: _Optional[str] = ..., finding: _Optional[str] = ..., enforcement: _Optional[str] = ..., policy: _Optional[str] = ..., checker: _Optional[str] = ..., categories: _Optional[_Iterable[str]] = ..., confidence: _Optional[str] = ..., reviewed_digest: _Optional[str] = ..., outage: _Optional[str] = ..., incomplete: _Optional[_Iterable[str]] = ..., ask_id: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...

class HookRecord(_message.Message):
    __slots__ = ("hook_id", "revision", "phase", "origin_session_id", "tool_call_id", "definition", "outcome", "severity", "message", "before", "after", "diff", "duration_ms", "exit_code", "started_at", "review")
    HOOK_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    hook_id: str
    revision: int
    phase: str
    origin_session_id: str
    tool_call_id: str
    definition: Definition
    outcome: str
    severity: str
    message: str
    before: str
    after: str
    diff: str
    duration_ms: int
    exit_code: int
    started_at: int
    review: Review
    def __init__(self, hook_id: _Optional[str] = ..., revision: _Optional[int] = ..., phase: _Optional[str] = ..., origin_session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., definition: _Optional[_Union[Definition, _Mapping]] = ..., outcome: _Optional[str] = ..., severity: _Optional[str] = ..., message: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ..., diff: _Optional[str] = ..., duration_ms: _Optional[int] = ..., exit_code: _Optional[int] = ..., started_at: _Optional[int] = ..., review: _Optional[_Union[Review, _Mapping]] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("ask_id", "origin_session_id", "tool_call_id", "review_id", "tool", "arguments_json", "arguments_digest", "reason", "choices", "rule", "deferred", "result_digest", "result_size", "expires_at")
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    RESULT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESULT_SIZE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    origin_session_id: str
    tool_call_id: str
    review_id: str
    tool: str
    arguments_json: str
    arguments_digest: str
    reason: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    rule: str
    deferred: bool
    result_digest: str
    result_size: int
    expires_at: int
    def __init__(self, ask_id: _Optional[str] = ..., origin_session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., review_id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments_json: _Optional[str] = ..., arguments_digest: _Optional[str] = ..., reason: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ..., rule: _Optional[str] = ..., deferred: _Optional[bool] = ..., result_digest: _Optional[str] = ..., result_size: _Optional[int] = ..., expires_at: _Optional[int] = ...) -> None: ...

class Withdrawal(_message.Message):
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

class Receipt(_message.Message):
    __slots__ = ("ask_id", "origin_session_id", "tool_call_id", "review_id", "verdict", "scope", "decided_by", "decided_at", "arguments_digest", "result_digest", "note", "idempotency_key")
    ASK_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REVIEW_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    DECIDED_AT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESULT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    ask_id: str
    origin_session_id: str
    tool_call_id: str
    review_id: str
    verdict: str
    scope: str
    decided_by: Principal
    decided_at: int
    arguments_digest: str
    result_digest: str
    note: str
    idempotency_key: str
    def __init__(self, ask_id: _Optional[str] = ..., origin_session_id: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., review_id: _Optional[str] = ..., verdict: _Optional[str] = ..., scope: _Optional[str] = ..., decided_by: _Optional[_Union[Principal, _Mapping]] = ..., decided_at: _Optional[int] = ..., arguments_digest: _Optional[str] = ..., result_digest: _Optional[str] = ..., note: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...
