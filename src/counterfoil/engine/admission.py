"""Admission: the one step from a call that may run to a call that runs."""

from __future__ import annotations

from counterfoil.engine.call import decision_on, gate, not_run
from counterfoil.engine.context import Context
from counterfoil.engine.recover import interrupted
from counterfoil.engine.reviewing import Stale, evidence_now, require_current
from counterfoil.events import CallFinished, CallStarted, Event
from counterfoil.policy.permissions import CallFacts
from counterfoil.ports import Evidence
from counterfoil.state import OpenCall

MAX_LOOKS = 5
"""How often a call is looked at again because what its review saw has changed before it could start."""


async def admit(ctx: Context, batch: list[OpenCall]) -> dict[str, CallFinished]:
    """Publish the start of every call of the batch that may run; returns the final results of those that may not.

    Raises `Parked` where a person is asked and the drive is left meanwhile.
    """
    refused: dict[str, CallFinished] = {}
    for call in batch:
        if (result := await _gated(ctx, call)) is not None:
            refused[call.tool_call_id] = result
    looks = 0
    while True:
        starting = [c for c in batch if c.tool_call_id not in refused and c.phase != "held"]
        try:
            await _start(ctx, starting)
            return refused
        except Stale as stale:
            looks += 1
            result = await gate(ctx, stale.call) if looks < MAX_LOOKS else _restless(stale.call)
            if result is not None:
                refused[stale.call.tool_call_id] = result


def _restless(call: OpenCall) -> CallFinished:
    return not_run(call, "blocked", "Not run: what its review looked at kept changing before it could start.")


async def _gated(ctx: Context, call: OpenCall) -> CallFinished | None:
    if call.phase == "held":
        return None
    if call.phase != "started":
        return await gate(ctx, call)
    tool = ctx.toolset.get(call.tool)
    if tool is not None and (tool.spec.read_only or tool.spec.idempotent):
        return None
    return interrupted(call)


async def _start(ctx: Context, calls: list[OpenCall]) -> None:
    """Publish `call.started` of all, or raise `Stale` and publish none. What is checked and what is published are one
    step: a steer that comes between them can't be overlooked.
    """
    seen: list[tuple[OpenCall, CallFacts, Evidence]] = []
    for call in calls:
        if call.reviews and call.phase != "started":
            facts, _ = await decision_on(ctx, call)
            evidence = await evidence_now(ctx, call, facts)
            if evidence is not None:
                seen.append((call, facts, evidence))

    def starts() -> list[Event]:
        for call, facts, evidence in seen:
            require_current(ctx, call, facts, evidence)
        return [
            CallStarted(tool_call_id=c.tool_call_id, arguments_digest=c.arguments_digest, attempt=c.attempt + 1)
            for c in calls
        ]

    await ctx.publisher.publish_made(starts)
