"""The loop (engine specification, section 4). It reads like that page; each step is in a module of its own."""

from __future__ import annotations

import logging

from counterfoil.engine.accept import accept
from counterfoil.engine.compact import compact, due
from counterfoil.engine.context import Context, Stop
from counterfoil.engine.dispatch import dispatch
from counterfoil.engine.hooking import at_stop, stop_failure
from counterfoil.engine.limits import reached
from counterfoil.engine.recover import closing
from counterfoil.engine.turn import MalformedTurn, ask_model
from counterfoil.errors import ConfigError, CounterfoilError, ProviderError, StoreError
from counterfoil.events import CallStatus, ErrorInfo, Event, Notice, RunFinished
from counterfoil.ports import ModelTurn
from counterfoil.state import SessionState, TurnItem

log = logging.getLogger("counterfoil.engine")


async def drive(ctx: Context) -> Stop:
    """Go on with the open run until it has a reason to stop. Doesn't publish its end.

    Raises `Parked` at an ask that is to be answered later, `StoreError` when nothing more can be published,
    and `asyncio.CancelledError`.
    """
    try:
        await dispatch(ctx)
        while True:
            if stop := _stopped(ctx):
                return stop
            if _answered(ctx) and not await at_stop(ctx):
                return _stopped(ctx) or Stop(reason="end_turn")
            if stop := reached(ctx.state):
                return stop
            await _compact_if_due(ctx)
            turn = await ask_model(ctx)
            await _accept(ctx, turn)
            await dispatch(ctx)
            await ctx.publisher.snapshot()
    except ProviderError as fault:
        return Stop(reason="provider_error", error=_info(fault, permanent=fault.permanent))
    except ConfigError as fault:
        return Stop(reason="provider_error", error=_info(fault, permanent=True))
    except MalformedTurn as fault:
        return Stop(reason="malformed_turn", error=_info(fault, permanent=False))


def _stopped(ctx: Context) -> Stop | None:
    """The stop that a hook demanded."""
    run = ctx.state.run
    if run is None or run.stopped is None:
        return None
    return Stop(reason="hook_stopped", error=ErrorInfo(code="hook_stopped", message=run.stopped))


def _answered(ctx: Context) -> bool:
    """Whether the model has said its last word: its latest turn made no call and nothing came after it."""
    items = ctx.state.history.items
    run = ctx.state.run
    if run is None or run.turn == 0 or run.turn_open or not items:
        return False
    last = items[-1]
    return isinstance(last, TurnItem) and not last.calls


async def _accept(ctx: Context, turn: ModelTurn) -> None:
    """Record the whole turn at once: the message, its calls with their new ids, its end."""
    run = ctx.state.run
    assert run is not None
    entries = accept(turn, run.turn, ctx.provider.origin, ctx.parts.ids, ctx.toolset)
    await ctx.publisher.publish(*entries)
    if notice := _worth_a_notice(turn):
        await ctx.publish(notice)


def _worth_a_notice(turn: ModelTurn) -> Notice | None:
    if turn.stop_reason == "max_tokens":
        text = "the model's answer was cut at its limit of output tokens"
        return Notice(severity="warning", code="max_tokens", text=text)
    if turn.stop_reason in ("refusal", "content_filter"):
        return Notice(severity="warning", code=turn.stop_reason, text="the model or its provider refused to answer")
    if not turn.calls and not turn.text.strip():
        return Notice(severity="warning", code="empty_turn", text="the model ended with an empty answer")
    return None


async def _compact_if_due(ctx: Context) -> None:
    if not (ctx.compact_wanted or due(ctx)):
        return
    trigger = "manual" if ctx.compact_wanted else "auto"
    ctx.compact_wanted = False
    try:
        await compact(ctx, trigger=trigger)  # type: ignore[arg-type]
    except ProviderError as fault:
        text = f"history could not be compacted: {fault.message}"
        await ctx.publish(Notice(severity="warning", code="compaction_failed", text=text))


async def finish(ctx: Context, stop: Stop) -> None:
    """Close what is open and publish the one `run.finished` of the run."""
    if ctx.state.run is None:
        return
    if stop.reason in ("provider_error", "malformed_turn"):
        await stop_failure(ctx, stop)
    await ctx.publisher.publish_made(lambda: _end(ctx.state, stop))
    await ctx.publisher.snapshot(at_end=True)


def _end(state: SessionState, stop: Stop) -> list[Event]:
    run = state.run
    assert run is not None
    status: CallStatus = "cancelled" if stop.reason == "cancelled" else "interrupted"
    events = closing(state, status, "cancelled" if status == "cancelled" else "ended")
    finished = RunFinished(
        run_id=run.run_id,
        stop_reason=stop.reason,
        usage=run.usage,
        review_usage=run.review_usage,
        child_usage=run.child_usage,
        turns=run.turn,
        text=run.last_text,
        error=stop.error,
    )
    return [*events, finished]


def _info(fault: CounterfoilError, *, permanent: bool) -> ErrorInfo:
    code = fault.kind if isinstance(fault, ProviderError) else fault.code
    return ErrorInfo(code=code, message=fault.message, hint=fault.hint, permanent=permanent)


def store_stop(fault: StoreError) -> Stop:
    """The stop of a run that can't be recorded any further."""
    return Stop(reason="store_error", error=_info(fault, permanent=False))


__all__ = ["drive", "finish", "store_stop"]
