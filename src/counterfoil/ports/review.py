"""Reviews: what a checker is given, and what comes of it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from counterfoil.events import Category, Enforcement, Mode, Outage, Part, ReviewDetail, Usage
from counterfoil.events.base import Value
from counterfoil.identity import Digest, ReviewID, ReviewJob, SessionID, ToolCallID
from counterfoil.ports.tool import Targets

Tier = Literal["operator", "user", "project", "builtin"]


class ReviewRule(Value, frozen=True, kw_only=True):
    """What is reviewed, by whom, and what follows: one configured policy.

    `tools` are names, `mcp__server__*`, or `*`. `checker` is `provider/model`. `timeout` is in seconds, `max_input`
    in characters. None for `on_checker_failure` and `on_unresolved` means the default of the enforcement. `context` is
    what an operator adds for the checker; the rubric stays as it is. `double_check`: the permission job also looks at
    what the rules allow.
    """

    name: str
    jobs: tuple[ReviewJob, ...]
    tools: tuple[str, ...]
    checker: str
    enforcement: Enforcement = "enforced"
    on_concern: Literal["ask", "block"] = "ask"
    on_checker_failure: Literal["block", "ask", "allow_with_warning"] | None = None
    on_unresolved: Literal["ask", "allow_with_warning"] | None = None
    timeout: float = 60.0
    max_input: int = 400_000
    context: str = ""
    double_check: bool = False
    tier: Tier = "user"


class ReviewSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What is reviewed: the exact call or its exact result, and what it is to be seen against.

    `prompts`: the last genuine ones of the person, oldest first. `facts`: earlier calls of the session, one line each,
    bounded. `result`: for the inbound job. `reason`: why the rules ask, for the permission job. Everything in
    here but `prompts` is untrusted data for a checker.
    """

    job: ReviewJob
    review_id: ReviewID
    session_id: SessionID
    tool_call_id: ToolCallID
    tool: str
    arguments: dict[str, Any]
    arguments_digest: Digest
    targets: Targets
    mode: Mode
    workspace: str
    prompts: tuple[str, ...]
    facts: tuple[str, ...] = ()
    reason: str = ""
    result: tuple[Part, ...] | None = None


class Piece(Value, frozen=True, kw_only=True):
    """One piece of evidence that the harness read: `origin` says from where (a path), `digest` is of its bytes."""

    origin: str
    text: str
    digest: Digest


class Evidence(Value, frozen=True, kw_only=True):
    """What was read for one review. `missing`: what should be here and isn't, one line each, without contents."""

    pieces: tuple[Piece, ...] = ()
    missing: tuple[str, ...] = ()


class Assessment(Value, frozen=True, kw_only=True):
    """What the checker says. `detail` is its prose: untrusted, bounded, never public."""

    finding: Literal["clear", "concern", "unresolved"]
    categories: tuple[Category, ...] = ()
    confidence: Literal["", "low", "medium", "high"] = ""
    detail: ReviewDetail = ReviewDetail()


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one check: an assessment, or an outage and never both. `incomplete` names what was left out."""

    assessment: Assessment | None = None
    outage: Outage | None = None
    usage: Usage = Usage()
    incomplete: tuple[str, ...] = ()


class Reviewer(Protocol):
    """Checks calls and results by a model, isolated: no tools, one turn, one structured submission."""

    @property
    def rules(self) -> tuple[ReviewRule, ...]:
        """The configured policies, in order: the first that covers a job and a tool holds."""
        ...

    async def gather(self, subject: ReviewSubject) -> Evidence:
        """Read what the call runs or edits, bounded. Read-only, under the session's own permissions.

        What can't be read is `missing`, never an exception.
        """
        ...

    async def check(self, subject: ReviewSubject, rule: ReviewRule, evidence: Evidence) -> Checked:
        """Ask the checker once. Its own faults are an outage, never an exception.

        On cancellation the request is broken off before this returns.
        """
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...
