"""Hook records, asks and receipts: what has a say about a call leaves one of these."""

from __future__ import annotations

from typing import Any, Literal

from counterfoil.events.base import Value
from counterfoil.events.values import Principal, Severity, Usage
from counterfoil.identity import AskID, Digest, HookID, ReviewID, ReviewJob, Revision, SessionID, ToolCallID

Outcome = Literal[
    "blocked",
    "denied",
    "asked",
    "allowed",
    "changed_input",
    "changed_output",
    "added_context",
    "stopped",
    "notice",
    "failed",
    "reviewed",
]
ReviewState = Literal[
    "pending",
    "clear",
    "concern",
    "unresolved",
    "failed",
    "asked",
    "held",
    "released",
    "withheld",
    "denied",
    "withdrawn",
]
Finding = Literal["clear", "concern", "unresolved", "failed"]
"""What came of one check. `failed` is an outage of the checker: never an assessment."""
Outage = Literal[
    "provider_failure",
    "timeout",
    "blank_assessment",
    "malformed_assessment",
    "invalid_assessment",
    "missing_submission",
    "evidence_failure",
]
Category = Literal["authority", "exfiltration", "redirection", "destruction", "other"]
"""What a concern is about: a closed set, so that no prose of a checker can stand here."""
Enforcement = Literal["advisory", "enforced"]
Verdict = Literal["allow", "deny", "release", "withhold"]
Scope = Literal["once", "session", "always"]


class Definition(Value, frozen=True, kw_only=True):
    """The configured hook or review that spoke: its stable name and the tier that configured it."""

    name: str
    tier: Literal["operator", "user", "project", "builtin"] = "user"


class Review(Value, frozen=True, kw_only=True):
    """The machine-level part of a review. The checker's prose is never here.

    `finding` stays when a disposition (`asked`, `held`, `released`, …) becomes the state. `incomplete` names what the
    checker should have been given and wasn't. `ask_id` names the ask, and so the receipt, that disposed of it.
    `usage` is what this check cost: it counts apart from the run's.
    """

    review_id: ReviewID
    job: ReviewJob
    state: ReviewState
    finding: Finding | None = None
    enforcement: Enforcement = "advisory"
    policy: str = ""
    checker: str = ""
    categories: tuple[Category, ...] = ()
    confidence: Literal["", "low", "medium", "high"] = ""
    reviewed_digest: Digest | None = None
    outage: Outage | None = None
    incomplete: tuple[str, ...] = ()
    ask_id: AskID | None = None
    usage: Usage | None = None


class HookRecord(Value, frozen=True, kw_only=True):
    """One published logical outcome of a hook or review, at one revision.

    `before` and `after` are digests of what a change changed; `diff` is a bounded text of it.
    """

    hook_id: HookID
    revision: Revision
    phase: str
    origin_session_id: SessionID
    tool_call_id: ToolCallID | None = None
    definition: Definition
    outcome: Outcome
    severity: Severity
    message: str = ""
    before: Digest | None = None
    after: Digest | None = None
    diff: str = ""
    duration_ms: int = 0
    exit_code: int | None = None
    started_at: int = 0
    review: Review | None = None


class Ask(Value, frozen=True, kw_only=True):
    """One question to a person about one call: exactly these arguments would run.

    `rule` is the narrowest rule that "always" would learn, where one can be learned. `deferred`: a hook put the
    question off; it isn't put to anybody until somebody looks for it. `result_digest` and `result_size` (bytes) are
    those of a held result, which the choices `release` and `withhold` are about. `expires_at`: µs since the epoch,
    when it is denied, or withheld, for want of an answer.
    """

    ask_id: AskID
    origin_session_id: SessionID
    tool_call_id: ToolCallID
    review_id: ReviewID | None = None
    tool: str
    arguments: dict[str, Any]
    arguments_digest: Digest
    reason: str
    choices: tuple[str, ...] = ("allow", "deny")
    rule: str | None = None
    deferred: bool = False
    result_digest: Digest | None = None
    result_size: int | None = None
    expires_at: int | None = None


class Withdrawal(Value, frozen=True, kw_only=True):
    """An ask that was taken back, and why."""

    ask_id: AskID
    origin_session_id: SessionID
    tool_call_id: ToolCallID
    reason: str


class Receipt(Value, frozen=True, kw_only=True):
    """How an ask was settled. `decided_by` is stamped at the door, `decided_at` is µs since the epoch, UTC."""

    ask_id: AskID
    origin_session_id: SessionID
    tool_call_id: ToolCallID
    review_id: ReviewID | None = None
    verdict: Verdict
    scope: Scope = "once"
    decided_by: Principal
    decided_at: int
    arguments_digest: Digest
    result_digest: Digest | None = None
    note: str = ""
    idempotency_key: str | None = None
