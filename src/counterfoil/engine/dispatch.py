"""The calls of an accepted turn: reads side by side, everything else alone, results in call order."""

from __future__ import annotations

import asyncio

from counterfoil.engine.call import execute, gate
from counterfoil.engine.context import Context
from counterfoil.engine.hooking import after_batch, after_call
from counterfoil.engine.recover import interrupted
from counterfoil.events import CallFinished, CallStarted, Event
from counterfoil.state import OpenCall


async def dispatch(ctx: Context) -> None:
    """Bring every open call of the turn in hand to its final result, in call order.

    Also goes on after a restart: a call whose start is durable and whose end isn't is run again only where its
    tool says that this is harmless; any other is finished as interrupted, outcome unknown.
    """
    calls = list(ctx.state.open_turn.calls) if ctx.state.open_turn is not None else []
    while batch := _next_batch(ctx):
        runnable: list[OpenCall] = []
        refused: dict[str, CallFinished] = {}
        for call in batch:
            result = await _admit(ctx, call)
            if result is None:
                runnable.append(call)
            else:
                refused[call.tool_call_id] = result
        await _run_batch(ctx, batch, runnable, refused)
    await after_batch(ctx, calls)


def _next_batch(ctx: Context) -> list[OpenCall]:
    """The next calls to take: consecutive read-only ones together, or one other."""
    batch: list[OpenCall] = []
    for call in ctx.state.open_calls():
        if not call.read_only:
            return batch or [call]
        batch.append(call)
    return batch


async def _admit(ctx: Context, call: OpenCall) -> CallFinished | None:
    if call.phase != "started":
        return await gate(ctx, call)
    tool = ctx.toolset.get(call.tool)
    if tool is not None and (tool.spec.read_only or tool.spec.idempotent):
        return None
    return interrupted(call)


async def _executed(ctx: Context, call: OpenCall) -> CallFinished:
    """Run the call, then the hooks that look at its result."""
    return await after_call(ctx, call, await execute(ctx, call))


async def _run_batch(
    ctx: Context, batch: list[OpenCall], runnable: list[OpenCall], refused: dict[str, CallFinished]
) -> None:
    starts: list[Event] = [
        CallStarted(tool_call_id=call.tool_call_id, arguments_digest=call.arguments_digest, attempt=call.attempt + 1)
        for call in runnable
    ]
    await ctx.publish(*starts)
    if len(runnable) == 1 and len(batch) == 1:
        await ctx.publish(await _executed(ctx, runnable[0]))
        return
    room = asyncio.Semaphore(ctx.settings.max_parallel)

    async def one(call: OpenCall) -> CallFinished:
        async with room:
            return await _executed(ctx, call)

    running = {call.tool_call_id: asyncio.ensure_future(one(call)) for call in runnable}
    try:
        for call in batch:
            task = running.get(call.tool_call_id)
            await ctx.publish(refused[call.tool_call_id] if task is None else await task)
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
