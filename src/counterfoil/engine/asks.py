"""Questions to people about calls: opened, waited for, answered once."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import msgspec

from counterfoil import errors
from counterfoil.engine.context import Context, Parked
from counterfoil.engine.hooking import notify
from counterfoil.engine.recover import withdrawal
from counterfoil.engine.review_records import disposed, moved
from counterfoil.errors import AskIsSettled, AskNotFound, UsageError
from counterfoil.events import (
    Ask,
    AskOpened,
    AskSettled,
    Event,
    GrantChanged,
    HookRecord,
    HookRecorded,
    Principal,
    Receipt,
    ReviewState,
    Scope,
    Verdict,
)
from counterfoil.events.codec import clean_text
from counterfoil.identity import AskID, Digest
from counterfoil.policy.learn import edited_rule
from counterfoil.policy.rules import RuleError
from counterfoil.state import OpenCall

log = logging.getLogger("counterfoil.engine")

TIMED_OUT = Principal(kind="policy", name="the time-out of asks")
_BECOMES: dict[tuple[Verdict, bool], ReviewState] = {
    ("allow", False): "released",
    ("deny", False): "denied",
    ("release", True): "released",
    ("withhold", True): "withheld",
}
"""What the review that raised an ask becomes by the verdict; True where a result is held."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked about a call.

    `rule` is the narrowest rule that an answer with a wider scope would learn. `review`: the record that raised the
    question. `result_digest`, `result_size`: of the held result that is asked about.
    """

    reason: str
    rule: str | None = None
    review: HookRecord | None = None
    choices: tuple[str, ...] = ("allow", "deny")
    result_digest: Digest | None = None
    result_size: int | None = None


async def put(ctx: Context, call: OpenCall, question: Question) -> Receipt:
    """Ask a person about `call`, or go on waiting where it was asked before a restart. Returns the receipt.

    Where nobody answers in time it is refused. Raises `Parked` when the drive is to be left meanwhile.
    """
    ask = ctx.state.asks.get(call.ask_id) if call.ask_id is not None else None
    if ask is None:
        ask = _ask(ctx, call, question)
        waiter = _waiter(ctx, ask.ask_id)
        await ctx.publish(*_raised(call, question, ask), AskOpened(ask=ask))
    else:
        waiter = _waiter(ctx, ask.ask_id)
    beside = [asyncio.ensure_future(notify(ctx, f"{call.tool} needs your approval: {ask.reason}"))]
    if ask.expires_at is not None:
        beside.append(asyncio.ensure_future(_expire(ctx, ask, ask.expires_at)))
    try:
        receipt = await waiter
    finally:
        ctx.waiters.pop(ask.ask_id, None)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    if receipt is None:
        raise Parked
    return receipt


def _raised(call: OpenCall, question: Question, ask: Ask) -> list[Event]:
    """The review's revision that says that a person is asked: published with the ask, at once."""
    if question.review is None:
        return []
    state: ReviewState = "held" if call.phase == "held" else "asked"
    return [HookRecorded(record=moved(question.review, state, ask.ask_id))]


def _ask(ctx: Context, call: OpenCall, question: Question, *, deferred: bool = False) -> Ask:
    timeout = ctx.settings.ask_timeout
    return Ask(
        ask_id=ctx.parts.ids.ask(),
        origin_session_id=ctx.state.meta.session_id,
        tool_call_id=call.tool_call_id,
        review_id=question.review.hook_id if question.review is not None else None,
        tool=call.tool,
        arguments=call.arguments,
        arguments_digest=call.arguments_digest,
        reason=question.reason,
        choices=question.choices,
        rule=question.rule,
        deferred=deferred,
        result_digest=question.result_digest,
        result_size=question.result_size,
        expires_at=ctx.parts.clock.now() + int(timeout * 1_000_000) if timeout and not deferred else None,
    )


async def _expire(ctx: Context, ask: Ask, at: int) -> None:
    """Refuse the ask when its time is over and nobody has answered."""
    while (left := at - ctx.parts.clock.now()) > 0:
        await ctx.parts.clock.sleep(left / 1_000_000)
    try:
        await settle(ctx, ask.ask_id, refusal(ask), principal=TIMED_OUT)
    except errors.AnswerRefused:
        log.debug("ask %s ended just before its time was over", ask.ask_id)


def refusal(ask: Ask) -> Verdict:
    """The verdict with which this ask lets nothing happen."""
    return "withhold" if "withhold" in ask.choices else "deny"


async def defer(ctx: Context, call: OpenCall, reason: str) -> NoReturn:
    """Open an ask that isn't put to anybody now, and leave the drive: raises `Parked`."""
    await ctx.publish(AskOpened(ask=_ask(ctx, call, Question(reason=reason), deferred=True)))
    raise Parked(deferred=True)


async def withdraw(ctx: Context, call: OpenCall, reason: str) -> None:
    """Take back the open ask of `call`; an answer that comes later changes nothing."""

    def withdrawn() -> list[Event]:
        if call.ask_id is None or call.ask_id not in ctx.state.asks:
            return []
        return withdrawal(ctx.state, ctx.state.asks[call.ask_id], reason)

    await ctx.publisher.publish_made(withdrawn)


def _waiter(ctx: Context, ask_id: AskID) -> asyncio.Future[Receipt | None]:
    waiter: asyncio.Future[Receipt | None] = asyncio.get_running_loop().create_future()
    ctx.waiters[ask_id] = waiter
    return waiter


def park(ctx: Context) -> None:
    """Leave the drive at its open ask, if it waits at one. The ask stays open."""
    for waiter in ctx.waiters.values():
        if not waiter.done():
            waiter.set_result(None)


async def settle(
    ctx: Context,
    ask_id: AskID,
    verdict: Verdict,
    *,
    principal: Principal,
    scope: Scope = "once",
    note: str = "",
    rule: str = "",
    idempotency_key: str | None = None,
) -> Receipt:
    """Answer the ask: exactly the call that it shows, with exactly the arguments that it shows.

    Whoever waits for the answer gets it, also where the caller is cancelled meanwhile. Raises `AskIsSettled` (with
    the receipt that won), `AskWithdrawn`, `AskNotFound`; then nothing changed. The same verdict with the same key
    is one answer. `rule`: what the person wrote in place of the rule that the ask shows.
    """
    found: list[Receipt] = []
    late: list[Receipt] = []
    learned: list[GrantChanged] = []

    def settled() -> list[Event]:
        ask = ctx.state.asks.get(ask_id)
        if ask is None:
            found.append(_settled_before(ctx, ask_id, verdict, idempotency_key))
            return []
        now = ctx.parts.clock.now()
        if _is_over(ask, now) and principal != TIMED_OUT:
            receipt = _receipt(ask, refusal(ask), TIMED_OUT, now)
            late.append(receipt)
        else:
            wanted = _check(ask, verdict, scope, rule)
            receipt = _receipt(ask, verdict, principal, now, scope, note, idempotency_key)
            learned.extend(_learned(receipt, wanted))
        found.append(receipt)
        return [AskSettled(receipt=receipt), *disposed(ctx.state, ask, _BECOMES[receipt.verdict, _held(ask)]), *learned]

    try:
        await ctx.publisher.publish_made(settled)
    finally:
        _tell(ctx, ask_id, learned)
    if late:
        raise AskIsSettled(late[0])
    return found[0]


def _is_over(ask: Ask, now: int) -> bool:
    return ask.expires_at is not None and now >= ask.expires_at


def _held(ask: Ask) -> bool:
    return ask.result_digest is not None


def _receipt(
    ask: Ask,
    verdict: Verdict,
    principal: Principal,
    now: int,
    scope: Scope = "once",
    note: str = "",
    key: str | None = None,
) -> Receipt:
    return Receipt(
        ask_id=ask.ask_id,
        origin_session_id=ask.origin_session_id,
        tool_call_id=ask.tool_call_id,
        review_id=ask.review_id,
        verdict=verdict,
        scope=scope,
        decided_by=principal,
        decided_at=now,
        arguments_digest=ask.arguments_digest,
        result_digest=ask.result_digest,
        note=note,
        idempotency_key=key,
    )


def _tell(ctx: Context, ask_id: AskID, learned: list[GrantChanged]) -> None:
    """What follows from an answer once it is in the log."""
    receipt = ctx.state.receipts.get(ask_id)
    if receipt is None:
        return
    for change in learned:
        if change.scope == "always":
            ctx.settings.on_grant(ctx.state.meta, change)
    waiter = ctx.waiters.get(ask_id)
    if waiter is not None and not waiter.done():
        waiter.set_result(receipt)


def _check(ask: Ask, verdict: Verdict, scope: Scope, rule: str) -> str | None:
    """The rule that an answer may learn. Raises `UsageError` for an answer that the ask doesn't offer."""
    if scope != "once" and ask.rule is None:
        raise UsageError(f"no rule can be learned from ask {ask.ask_id}", hint="answer it for this once")
    if verdict not in ask.choices:
        raise UsageError(f"ask {ask.ask_id} offers {', '.join(ask.choices)}; the answer was {verdict}")
    if not rule or ask.rule is None or scope == "once":
        if rule:
            raise UsageError("only an answer for the session or for good learns a rule", hint="say for how long")
        return ask.rule
    try:
        return edited_rule(clean_text(rule), ask.rule)
    except RuleError as fault:
        raise UsageError(fault.message, hint=fault.hint) from fault


def _learned(receipt: Receipt, rule: str | None) -> list[GrantChanged]:
    """The rule that an allowing answer with a wider scope than this once learns: as it was shown, or as written."""
    if receipt.verdict != "allow" or receipt.scope == "once" or rule is None:
        return []
    return [GrantChanged(rule=rule, scope=receipt.scope, ask_id=receipt.ask_id, decided_by=receipt.decided_by)]


def _settled_before(ctx: Context, ask_id: AskID, verdict: Verdict, key: str | None) -> Receipt:
    receipt = ctx.state.receipts.get(ask_id)
    if receipt is not None:
        if key is not None and (receipt.idempotency_key, receipt.verdict) == (key, verdict):
            return receipt
        raise AskIsSettled(receipt)
    if ask_id in ctx.state.withdrawn:
        raise errors.AskWithdrawn(f"ask {ask_id} was withdrawn: {ctx.state.withdrawn[ask_id]}", hint="nothing changed")
    raise AskNotFound(f"no ask {ask_id} in this session", hint="`counterfoil asks` lists the open ones")
