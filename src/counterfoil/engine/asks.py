"""Questions to people about calls: opened, waited for, answered once."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from counterfoil import errors
from counterfoil.engine.context import Context, Parked
from counterfoil.engine.hooking import notify
from counterfoil.errors import AskIsSettled, AskNotFound, UsageError
from counterfoil.events import (
    Ask,
    AskOpened,
    AskSettled,
    AskWithdrawn,
    Event,
    GrantChanged,
    Principal,
    Receipt,
    Scope,
    Verdict,
)
from counterfoil.identity import AskID
from counterfoil.state import OpenCall


async def put(ctx: Context, call: OpenCall, reason: str, rule: str | None = None) -> Receipt:
    """Ask a person about `call`, or go on waiting where it was asked before a restart. Returns the receipt.

    `rule` is the narrowest rule that an answer with a wider scope would learn.

    Raises `Parked` when the drive is to be left meanwhile.
    """
    ask_id = call.ask_id if call.ask_id in ctx.state.asks else None
    if ask_id is None:
        ask = _ask(ctx, call, reason, rule)
        ask_id = ask.ask_id
        waiter = _waiter(ctx, ask_id)
        await ctx.publish(AskOpened(ask=ask))
    else:
        waiter = _waiter(ctx, ask_id)
    notice = asyncio.ensure_future(notify(ctx, f"{call.tool} needs your approval: {reason}"))
    try:
        receipt = await waiter
    finally:
        ctx.waiters.pop(ask_id, None)
        notice.cancel()
        await asyncio.gather(notice, return_exceptions=True)
    if receipt is None:
        raise Parked
    return receipt


def _ask(ctx: Context, call: OpenCall, reason: str, rule: str | None = None, *, deferred: bool = False) -> Ask:
    return Ask(
        ask_id=ctx.parts.ids.ask(),
        origin_session_id=ctx.state.meta.session_id,
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        arguments=call.arguments,
        arguments_digest=call.arguments_digest,
        reason=reason,
        rule=rule,
        deferred=deferred,
    )


async def defer(ctx: Context, call: OpenCall, reason: str) -> NoReturn:
    """Open an ask that isn't put to anybody now, and leave the drive: raises `Parked`."""
    await ctx.publish(AskOpened(ask=_ask(ctx, call, reason, deferred=True)))
    raise Parked(deferred=True)


async def withdraw(ctx: Context, call: OpenCall, reason: str) -> None:
    """Take back the open ask of `call`; an answer that comes later changes nothing."""

    def withdrawn() -> list[Event]:
        if call.ask_id is None or call.ask_id not in ctx.state.asks:
            return []
        origin = ctx.state.asks[call.ask_id].origin_session_id
        return [
            AskWithdrawn(ask_id=call.ask_id, origin_session_id=origin, tool_call_id=call.tool_call_id, reason=reason)
        ]

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
    idempotency_key: str | None = None,
) -> Receipt:
    """Answer the ask: exactly the call that it shows, with exactly the arguments that it shows.

    Whoever waits for the answer gets it, also where the caller is cancelled meanwhile. Raises `AskIsSettled` (with
    the receipt that won), `AskWithdrawn`, `AskNotFound`; then nothing changed. The same verdict with the same key
    is one answer.
    """
    found: list[Receipt] = []
    learned: list[GrantChanged] = []

    def settled() -> list[Event]:
        ask = ctx.state.asks.get(ask_id)
        if ask is None:
            found.append(_settled_before(ctx, ask_id, verdict, idempotency_key))
            return []
        _check(ask, verdict, scope)
        receipt = Receipt(
            ask_id=ask.ask_id,
            origin_session_id=ask.origin_session_id,
            tool_call_id=ask.tool_call_id,
            review_id=ask.review_id,
            verdict=verdict,
            scope=scope,
            decided_by=principal,
            decided_at=ctx.parts.clock.now(),
            arguments_digest=ask.arguments_digest,
            note=note,
            idempotency_key=idempotency_key,
        )
        found.append(receipt)
        learned.extend(_learned(ask, receipt))
        return [AskSettled(receipt=receipt), *learned]

    try:
        await ctx.publisher.publish_made(settled)
    finally:
        _tell(ctx, ask_id, learned)
    return found[0]


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


def _check(ask: Ask, verdict: Verdict, scope: Scope) -> None:
    """Raise `UsageError` for an answer that the ask doesn't offer."""
    if scope != "once" and ask.rule is None:
        raise UsageError(f"no rule can be learned from ask {ask.ask_id}", hint="answer it for this once")
    if verdict not in ask.choices:
        raise UsageError(f"ask {ask.ask_id} offers {', '.join(ask.choices)}; the answer was {verdict}")


def _learned(ask: Ask, receipt: Receipt) -> list[GrantChanged]:
    """The rule that an allowing answer with a wider scope than this once learns: the one that the ask showed."""
    if receipt.verdict != "allow" or receipt.scope == "once" or ask.rule is None:
        return []
    return [GrantChanged(rule=ask.rule, scope=receipt.scope, ask_id=ask.ask_id, decided_by=receipt.decided_by)]


def _settled_before(ctx: Context, ask_id: AskID, verdict: Verdict, key: str | None) -> Receipt:
    receipt = ctx.state.receipts.get(ask_id)
    if receipt is not None:
        if key is not None and (receipt.idempotency_key, receipt.verdict) == (key, verdict):
            return receipt
        raise AskIsSettled(receipt)
    if ask_id in ctx.state.withdrawn:
        raise errors.AskWithdrawn(f"ask {ask_id} was withdrawn: {ctx.state.withdrawn[ask_id]}", hint="nothing changed")
    raise AskNotFound(f"no ask {ask_id} in this session", hint="`counterfoil asks` lists the open ones")
