"""The records of reviews: one for each call and job, each step of it a revision. Pure."""

from __future__ import annotations

import msgspec

from counterfoil.events import (
    Ask,
    Definition,
    Event,
    Finding,
    HookRecord,
    HookRecorded,
    Review,
    ReviewState,
    Severity,
)
from counterfoil.events.values import Mode
from counterfoil.identity import AskID, Digest, Revision
from counterfoil.policy.reviews import enforcement_of
from counterfoil.ports import Checked, ReviewRule, ReviewSubject
from counterfoil.state import OpenCall, SessionState

_SEVERITY: dict[ReviewState, Severity] = {
    "pending": "benign",
    "clear": "benign",
    "concern": "warning",
    "unresolved": "warning",
    "failed": "warning",
    "asked": "blocking",
    "held": "blocking",
    "released": "warning",
    "withheld": "blocking",
    "denied": "blocking",
    "withdrawn": "warning",
}
_FOUND: dict[Finding, str] = {
    "clear": "nothing found",
    "concern": "concern",
    "unresolved": "the evidence doesn't decide",
    "failed": "the checker failed",
}
UNSTAMPED = Revision(1)
"""Replaced by the publisher, which alone gives revisions."""


def pending(subject: ReviewSubject, rule: ReviewRule, digest: Digest, mode: Mode, now: int) -> HookRecord:
    """The first revision of a check: it is under way."""
    review = Review(
        review_id=subject.review_id,
        job=subject.job,
        state="pending",
        enforcement=enforcement_of(rule, mode),
        policy=rule.name,
        checker=rule.checker,
        reviewed_digest=digest,
    )
    return HookRecord(
        hook_id=subject.review_id,
        revision=UNSTAMPED,
        phase="review",
        origin_session_id=subject.session_id,
        tool_call_id=subject.tool_call_id,
        definition=Definition(name=rule.name, tier=rule.tier),
        outcome="reviewed",
        severity=_SEVERITY["pending"],
        message=f"{subject.job} review: pending",
        started_at=now,
        review=review,
    )


def found(record: HookRecord, checked: Checked, now: int) -> HookRecord:
    """The revision that says what came of it: an assessment, or an outage, which is neither finding nor clearance."""
    assert record.review is not None
    assessment = checked.assessment
    finding: Finding = "failed" if assessment is None else assessment.finding
    review = msgspec.structs.replace(
        record.review,
        state=finding,
        finding=finding,
        categories=() if assessment is None else assessment.categories,
        confidence="" if assessment is None else assessment.confidence,
        outage=None if assessment is not None else checked.outage or "provider_failure",
        incomplete=checked.incomplete,
        usage=checked.usage if checked.usage.requests else None,
    )
    return _with(record, review, duration_ms=max(0, now - record.started_at) // 1000)


def moved(record: HookRecord, state: ReviewState, ask_id: AskID | None = None) -> HookRecord:
    """The revision in which something was made of the finding."""
    assert record.review is not None
    kept = record.review.ask_id if ask_id is None else ask_id
    return _with(record, msgspec.structs.replace(record.review, state=state, ask_id=kept, usage=None))


def _with(record: HookRecord, review: Review, *, duration_ms: int | None = None) -> HookRecord:
    return msgspec.structs.replace(
        record,
        revision=UNSTAMPED,
        review=review,
        severity=_SEVERITY[review.state],
        message=told(review),
        duration_ms=record.duration_ms if duration_ms is None else duration_ms,
    )


def told(review: Review) -> str:
    """One line of what a review says, made of closed words alone: no prose of a checker can stand in it."""
    text = f"{review.job} review: {_FOUND[review.finding] if review.finding is not None else review.state}"
    more: list[str] = [*review.categories]
    if review.outage is not None:
        more.append(review.outage)
    if more:
        text += f" ({', '.join(more)})"
    return text if review.state in (review.finding, "pending") else f"{text}: {review.state}"


def of_ask(state: SessionState, ask: Ask) -> tuple[OpenCall, HookRecord] | None:
    """The review that an ask is about, with its call."""
    call = state.call(ask.tool_call_id)
    if call is None or ask.review_id is None:
        return None
    return next(((call, record) for record in call.reviews.values() if record.hook_id == ask.review_id), None)


def disposed(state: SessionState, ask: Ask, to: ReviewState) -> list[Event]:
    """The revision that follows when the ask about a review ends; nothing where the ask is about none."""
    about = of_ask(state, ask)
    if about is None:
        return []
    return [HookRecorded(record=moved(about[1], to, ask.ask_id))]
