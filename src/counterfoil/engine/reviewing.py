"""Reviews of a call before it starts (jobs `permission` and `action`), and of its admission right at the start."""

from __future__ import annotations

import logging

import msgspec

from counterfoil.engine import asks
from counterfoil.engine.context import Context
from counterfoil.engine.need import Need
from counterfoil.engine.review_records import found, pending, told
from counterfoil.engine.subjects import digest_seen, subject_of
from counterfoil.events import Entry, HookRecord, HookRecorded, ReviewDetail
from counterfoil.identity import Digest, ReviewJob
from counterfoil.policy.permissions import CallFacts
from counterfoil.policy.reviews import dispose, dispose_permission, rule_for, wants_permission
from counterfoil.policy.shell import surely_read_only
from counterfoil.ports import Checked, Evidence, ReviewRule, ReviewSubject
from counterfoil.state import OpenCall

log = logging.getLogger("counterfoil.engine")

BEFORE_START: tuple[ReviewJob, ...] = ("permission", "action")


def rule_of(ctx: Context, call: OpenCall, job: ReviewJob) -> ReviewRule | None:
    """The configured policy for this job and this call's tool."""
    return None if ctx.reviewer is None else rule_for(ctx.reviewer.rules, job, call.tool)


async def permission(ctx: Context, call: OpenCall, facts: CallFacts, need: Need) -> Need:
    """The job `permission`: may answer an ask within its policy, or turn an allow into an ask. Never over a deny."""
    asked = need.verdict == "ask"
    rule = rule_of(ctx, call, "permission")
    run = ctx.state.run
    refusals = run.permission_refusals if run is not None else 0
    if rule is None or need.verdict == "block" or (asked and call.receipt is not None):
        return need
    if not wants_permission(rule, asked=asked, substitution=need.substitution, refusals=refusals):
        return need
    record = await _reviewed(ctx, rule, subject_of(ctx.state, call, facts, "permission", reason=need.reason))
    if _disposed(record):
        return need if record.review is not None and record.review.state == "released" else _about(need, record)
    assert record.review is not None and record.review.finding is not None
    what = dispose_permission(rule, record.review.finding, ctx.state.meta.mode, asked=asked)
    if what == "block":
        return Need(verdict="block", reason=told(record.review))
    if what == "ask":
        return _about(need, record) if record.review.finding != "clear" else need
    return Need(verdict="go") if what == "go" else need


async def action(ctx: Context, call: OpenCall, facts: CallFacts, need: Need) -> Need:
    """The job `action`: the exact call as it would run. An enforced concern asks a person, or refuses the call."""
    rule = rule_of(ctx, call, "action")
    if rule is None or need.verdict == "block":
        return need
    command = facts.targets.command
    if call.tool == "Bash" and command is not None and surely_read_only(command):
        return need
    record = await _reviewed(ctx, rule, subject_of(ctx.state, call, facts, "action"))
    assert record.review is not None
    if record.review.state == "released":
        return need
    if record.review.state == "denied":
        return _about(need, record)
    assert record.review.finding is not None
    what = dispose(rule, record.review.finding, ctx.state.meta.mode)
    if what == "block":
        return Need(verdict="block", reason=told(record.review))
    return _about(need, record) if what == "ask" else need


def _disposed(record: HookRecord) -> bool:
    return record.review is not None and record.review.state in ("released", "denied")


def _about(need: Need, record: HookRecord) -> Need:
    assert record.review is not None
    both = f"{told(record.review)}; {need.reason}" if need.reason else told(record.review)
    return Need(verdict="ask", reason=both, review=record)


async def _reviewed(ctx: Context, rule: ReviewRule, subject: ReviewSubject) -> HookRecord:
    """The review of exactly this: the one that stands, or a new revision of it."""
    evidence = await gather(ctx, subject)
    digest = digest_seen(subject, evidence or Evidence(), subject.prompts)
    standing = standing_review(ctx, subject.tool_call_id, subject.job, digest)
    if standing is not None:
        return standing
    call = ctx.state.call(subject.tool_call_id)
    ask = ctx.state.asks.get(call.ask_id) if call is not None and call.ask_id is not None else None
    if call is not None and ask is not None and ask.review_id == subject.review_id:
        await asks.withdraw(ctx, call, "what was reviewed has changed")
    return await check(ctx, rule, subject, evidence, digest)


def standing_review(ctx: Context, call_id: str, job: ReviewJob, digest: Digest) -> HookRecord | None:
    """The review that is done, where it saw exactly what is there now."""
    call = next((c for c in ctx.state.open_calls() if c.tool_call_id == call_id), None)
    record = call.reviews.get(job) if call is not None else None
    if record is None or record.review is None or record.review.finding is None:
        return None
    return record if record.review.reviewed_digest == digest else None


async def gather(ctx: Context, subject: ReviewSubject) -> Evidence | None:
    """What the harness reads for the check; None where that itself failed."""
    assert ctx.reviewer is not None
    try:
        return await ctx.reviewer.gather(subject)
    except Exception as fault:  # a fault of the adapter: an outage, and the person is told
        log.error("evidence for %s could not be gathered: %s", subject.review_id, type(fault).__name__)
        return None


async def check(
    ctx: Context, rule: ReviewRule, subject: ReviewSubject, evidence: Evidence | None, digest: Digest
) -> HookRecord:
    """Publish that the review is under way, ask the checker, publish what came of it. Returns the record."""
    begun = pending(subject, rule, digest, ctx.state.meta.mode, ctx.parts.clock.now())
    await ctx.publish(HookRecorded(record=begun))
    checked = Checked(outage="evidence_failure") if evidence is None else await _ask(ctx, rule, subject, evidence)
    record = found(begun, checked, ctx.parts.clock.now())
    detail = checked.assessment.detail if checked.assessment is not None else None
    return await publish_found(ctx, record, detail)


async def publish_found(ctx: Context, record: HookRecord, detail: ReviewDetail | None) -> HookRecord:
    """Publish a finding; the checker's prose goes to the live detail, and to the private half where that is wanted."""
    private = detail if ctx.settings.keep_review_detail else None
    await ctx.publisher.publish(Entry(HookRecorded(record=record), private))
    mark = ctx.state.reviews[record.hook_id]
    stamped = msgspec.structs.replace(record, revision=mark.revision)
    if detail is not None:
        ctx.details.keep(record.hook_id, stamped.revision, detail)
    return stamped


async def _ask(ctx: Context, rule: ReviewRule, subject: ReviewSubject, evidence: Evidence) -> Checked:
    assert ctx.reviewer is not None
    try:
        return await ctx.reviewer.check(subject, rule, evidence)
    except Exception as fault:  # a fault of the adapter: an outage, never a verdict
        log.error("the checker of %s failed: %s", subject.review_id, type(fault).__name__)
        return Checked(outage="provider_failure")


class Stale(Exception):
    """A review saw something else than what is there now: the call has to be looked at again."""

    def __init__(self, call: OpenCall) -> None:
        super().__init__()
        self.call = call


async def evidence_now(ctx: Context, call: OpenCall, facts: CallFacts) -> Evidence | None:
    """The evidence of a reviewed call as it is right before its start; None where the call wasn't reviewed."""
    if ctx.reviewer is None or not any(job in call.reviews for job in BEFORE_START):
        return None
    return await gather(ctx, subject_of(ctx.state, call, facts, "action")) or Evidence()


def require_current(ctx: Context, call: OpenCall, facts: CallFacts, evidence: Evidence) -> None:
    """Raise `Stale` where a review before the start didn't see this. To be called where nothing else is published."""
    for job in BEFORE_START:
        record = call.reviews.get(job)
        if record is None or record.review is None:
            continue
        subject = subject_of(ctx.state, call, facts, job)
        if record.review.reviewed_digest != digest_seen(subject, evidence, subject.prompts):
            raise Stale(call)
