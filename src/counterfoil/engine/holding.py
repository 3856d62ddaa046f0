"""Results that are reviewed before anybody sees them (job `inbound`): kept durably, released once or withheld."""

from __future__ import annotations

import msgspec

from counterfoil.engine import asks
from counterfoil.engine.context import Context
from counterfoil.engine.review_records import moved, told
from counterfoil.engine.reviewing import check, rule_of, standing_review
from counterfoil.engine.subjects import digest_seen, subject_of
from counterfoil.events import CallFinished, CallHeld, Entry, HeldResult, HookRecord, HookRecorded, TextPart
from counterfoil.identity import result_digest, review_id
from counterfoil.policy.permissions import CallFacts
from counterfoil.policy.reviews import dispose
from counterfoil.ports import Evidence, ReviewRule
from counterfoil.state import OpenCall


async def keep(ctx: Context, call: OpenCall, result: CallFinished) -> bool:
    """Keep the result back where a policy reviews it: durable before the check, so that nothing is ever run again."""
    if rule_of(ctx, call, "inbound") is None:
        return False
    held = CallHeld(
        tool_call_id=call.tool_call_id,
        review_id=review_id(call.tool_call_id, "inbound"),
        size=len(msgspec.json.encode(result.parts)),
        result_digest=result_digest(result.parts),
    )
    kept = HeldResult(
        status=result.status, parts=result.parts, executed=result.executed, duration_ms=result.duration_ms
    )
    await ctx.publisher.publish(Entry(held, kept))
    return True


async def reviewed(ctx: Context, call: OpenCall, facts: CallFacts) -> CallFinished | None:
    """Review what is held, or go on from the review that was done before a restart.

    Returns the final result, not yet published; None where a person has to release it.
    """
    if call.receipt is not None:
        return _answered(call)
    if call.ask_id in ctx.state.asks:
        return None
    record, rule = await _finding(ctx, call, facts)
    assert record.review is not None and record.review.finding is not None
    what = dispose(rule, record.review.finding, ctx.state.meta.mode)
    if what in ("go", "warn"):
        return _kept(call)
    if what == "block" or ctx.state.meta.mode == "dont_ask":
        await ctx.publish(HookRecorded(record=moved(record, "withheld")))
        return _withheld(call, f"by policy: {told(record.review)}")
    return None


async def _finding(ctx: Context, call: OpenCall, facts: CallFacts) -> tuple[HookRecord, ReviewRule]:
    assert call.held is not None
    subject = subject_of(ctx.state, call, facts, "inbound", result=call.held.parts)
    digest = digest_seen(subject, Evidence(), subject.prompts)
    standing = standing_review(ctx, call.tool_call_id, "inbound", digest)
    rule = rule_of(ctx, call, "inbound") or _as_it_was(call.reviews.get("inbound"))
    if standing is not None:
        return standing, rule
    evidence = Evidence() if ctx.reviewer is not None else None
    return await check(ctx, rule, subject, evidence, digest), rule


def _as_it_was(record: HookRecord | None) -> ReviewRule:
    """The policy of a review that isn't configured any more: what it holds stays held."""
    review = record.review if record is not None else None
    return ReviewRule(
        name=review.policy if review is not None else "no longer configured",
        jobs=("inbound",),
        tools=("*",),
        checker=review.checker if review is not None else "",
        enforcement=review.enforcement if review is not None else "enforced",
    )


async def release(ctx: Context, call: OpenCall) -> CallFinished:
    """Put the held result to a person and return the final result. Raises `Parked`."""
    record = call.reviews["inbound"]
    assert record.review is not None
    question = asks.Question(
        reason=told(record.review),
        choices=("release", "withhold"),
        review=record,
        result_digest=call.held_digest,
        result_size=call.held_size,
    )
    await asks.put(ctx, call, question)
    return _answered(call)


def _answered(call: OpenCall) -> CallFinished:
    receipt = call.receipt
    if receipt is None or receipt.result_digest != call.held_digest:
        return _withheld(call, "the answer was given for another result")
    if receipt.verdict == "release":
        return _kept(call)
    return _withheld(call, f"by {receipt.decided_by.name}. {receipt.note}".rstrip())


def _kept(call: OpenCall) -> CallFinished:
    """Exactly what the tool, and the hooks after it, gave."""
    held = call.held
    assert held is not None
    return CallFinished(
        tool_call_id=call.tool_call_id,
        status=held.status,
        parts=held.parts,
        executed=held.executed,
        duration_ms=held.duration_ms,
    )


def _withheld(call: OpenCall, why: str) -> CallFinished:
    held = call.held
    assert held is not None
    return CallFinished(
        tool_call_id=call.tool_call_id,
        status="withheld",
        parts=(TextPart(text=f"The call ran. Its result was withheld {why}"),),
        executed=held.executed,
        duration_ms=held.duration_ms,
    )
