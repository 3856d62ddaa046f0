"""The calls of an accepted turn: reads side by side, everything else alone, results in call order."""

from __future__ import annotations

import asyncio

from counterfoil.engine import holding
from counterfoil.engine.admission import admit
from counterfoil.engine.call import decision_on, execute
from counterfoil.engine.context import Context
from counterfoil.engine.hooking import after_batch, after_call
from counterfoil.events import CallFinished, Event, SessionUpdated
from counterfoil.state import OpenCall


async def dispatch(ctx: Context) -> None:
    """Bring every open call of the turn in hand to its final result, in call order.

    Also goes on after a restart: a call whose start is durable and whose end isn't is run again only where its
    tool says that this is harmless; any other is finished as interrupted, outcome unknown. A result that is held
    is never made again.
    """
    calls = list(ctx.state.open_turn.calls) if ctx.state.open_turn is not None else []
    while batch := _next_batch(ctx):
        await _run_batch(ctx, batch, await admit(ctx, batch))
    await after_batch(ctx, calls)


def _next_batch(ctx: Context) -> list[OpenCall]:
    """The next calls to take: consecutive read-only ones together, or one other."""
    batch: list[OpenCall] = []
    for call in ctx.state.open_calls():
        if not call.read_only:
            return batch or [call]
        batch.append(call)
    return batch


async def _executed(ctx: Context, call: OpenCall) -> CallFinished | None:
    """Run the call, then the hooks that look at its result, then its review. None: a person has to release it."""
    if call.phase != "held":
        result = await after_call(ctx, call, await execute(ctx, call))
        if not await holding.keep(ctx, call, result):
            return result
    facts, _ = await decision_on(ctx, call)
    return await holding.reviewed(ctx, call, facts)


async def _finish(ctx: Context, call: OpenCall, result: CallFinished | None) -> None:
    final = await holding.release(ctx, call) if result is None else result
    await ctx.publish(final, *_left_plan(ctx, call, final))


def _left_plan(ctx: Context, call: OpenCall, final: CallFinished) -> list[Event]:
    """The mode that an approved plan leads back to, with its result, at once."""
    tool = ctx.toolset.get(call.tool)
    meta = ctx.state.meta
    if tool is None or not tool.spec.leaves_plan or final.status != "ok" or meta.mode != "plan":
        return []
    return [SessionUpdated(mode=meta.mode_before_plan)]


async def _run_batch(ctx: Context, batch: list[OpenCall], refused: dict[str, CallFinished]) -> None:
    runnable = [call for call in batch if call.tool_call_id not in refused]
    if len(runnable) == 1 and len(batch) == 1:
        await _finish(ctx, runnable[0], await _executed(ctx, runnable[0]))
        return
    room = asyncio.Semaphore(ctx.settings.max_parallel)

    async def one(call: OpenCall) -> CallFinished | None:
        async with room:
            return await _executed(ctx, call)

    running = {call.tool_call_id: asyncio.ensure_future(one(call)) for call in runnable}
    try:
        for call in batch:
            task = running.get(call.tool_call_id)
            await _finish(ctx, call, refused[call.tool_call_id] if task is None else await task)
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
