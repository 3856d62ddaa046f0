"""One call (engine specification, section 5): may it start, and what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import msgspec

from counterfoil.engine import asks
from counterfoil.engine.context import Context
from counterfoil.errors import CounterfoilError, ToolFailure
from counterfoil.events import CallFinished, CallStatus, Executed, Part, TextPart
from counterfoil.events.codec import clean_text
from counterfoil.policy.arguments import problems
from counterfoil.policy.bash import shell_paths
from counterfoil.policy.permissions import CallFacts, Decision, Place, decide
from counterfoil.ports import Targets
from counterfoil.state import OpenCall
from counterfoil.state.bounds import for_log

log = logging.getLogger("counterfoil.engine")


async def gate(ctx: Context, call: OpenCall) -> CallFinished | None:
    """Decide whether `call` may start. None: it may. Else its final result, not yet published.

    Raises `Parked` where a person is asked and the drive is left meanwhile.
    """
    refusal = _unrunnable(ctx, call)
    if refusal is None:
        decision = await _decision(ctx, call)
        if decision.verdict == "ask":
            return await _approval(ctx, call, decision)
        if decision.verdict == "deny":
            refusal = not_run(call, "denied", f"Denied: {decision.reason}.")
    if call.ask_id in ctx.state.asks:
        await asks.withdraw(ctx, call, "it is decided without a person by now")
    return refusal


async def _decision(ctx: Context, call: OpenCall) -> Decision:
    """The rules' and the mode's answer. A call whose targets can't be determined is denied."""
    tool = ctx.toolset.get(call.tool)
    assert tool is not None
    place = Place(workspace=os.path.realpath(ctx.state.meta.workspace), home=os.path.realpath(Path.home()))
    try:
        targets = await asyncio.to_thread(tool.targets, ctx.tool_context(call), call.arguments)
        links = await asyncio.to_thread(_links, targets, place)
    except (CounterfoilError, OSError, ValueError) as fault:
        return Decision(verdict="deny", reason=f"what it would touch can't be determined: {fault}")
    facts = CallFacts(tool=call.tool, read_only=tool.spec.read_only, targets=targets, links=links)
    return decide(facts, ctx.settings.rules, ctx.state.meta.mode, place=place)


def _links(targets: Targets, place: Place) -> dict[str, str]:
    """What the paths that a command line names resolve to: symlinks count as what they lead to."""
    if targets.command is None:
        return {}
    return {path: os.path.realpath(path) for path in shell_paths(targets.command, place)}


def _unrunnable(ctx: Context, call: OpenCall) -> CallFinished | None:
    """The result of a call that nothing can run: no such tool, bad arguments, over the limit."""
    if _over_limit(ctx, call):
        return not_run(call, "denied", "Not run: the limit of tool calls of this run is reached.")
    if call.problem is not None:
        return not_run(call, "error", f"The arguments could not be read: {call.problem}")
    tool = ctx.toolset.get(call.tool)
    if tool is None:
        names = ", ".join(spec.name for spec in ctx.toolset.specs)
        return not_run(call, "error", f"There is no tool named {call.tool!r}. The tools are: {names}")
    wrong = problems(tool.spec, call.arguments)
    if wrong:
        return not_run(call, "error", f"The arguments of {call.tool} are not valid:\n" + "\n".join(wrong))
    return None


def _over_limit(ctx: Context, call: OpenCall) -> bool:
    run, turn, limit = ctx.state.run, ctx.state.open_turn, ctx.state.meta.limits.max_tool_calls
    if not limit or run is None or turn is None:
        return False
    return run.tool_calls - len(turn.calls) + call.position + 1 > limit


async def _approval(ctx: Context, call: OpenCall, decision: Decision) -> CallFinished | None:
    """Ask, unless this very call with these very arguments has its answer already (from before a restart)."""
    receipt = call.receipt
    if receipt is None:
        receipt = await asks.put(ctx, call, decision.reason)
    if receipt.verdict != "allow":
        note = f" {receipt.note}" if receipt.note else ""
        return not_run(call, "denied", f"Denied by {receipt.decided_by.name}.{note}")
    if (receipt.tool_call_id, receipt.arguments_digest) != (call.tool_call_id, call.arguments_digest):
        return not_run(call, "denied", "Not run: the approval was given for other arguments.")
    return None


def not_run(call: OpenCall, status: CallStatus, text: str) -> CallFinished:
    """The final result of a call that never started."""
    return _finished(call, status, (TextPart(text=clean_text(text)),), "no", 0)


async def execute(ctx: Context, call: OpenCall) -> CallFinished:
    """Run the call, whose `call.started` is durable. Returns its final result, not yet published."""
    tool = ctx.toolset.get(call.tool)
    assert tool is not None
    began = ctx.parts.clock.monotonic()
    status: CallStatus = "ok"
    executed: Executed = "yes"
    parts: tuple[Part, ...]
    try:
        async with asyncio.timeout(tool.spec.timeout or None):
            output = await tool.run(ctx.tool_context(call), call.arguments)
        parts, executed = output.parts, output.executed
        status = "error" if output.is_error else "ok"
    except ToolFailure as fault:
        parts, status = (TextPart(text=str(fault)),), "error"
        executed = fault.executed if fault.executed in ("yes", "no") else "unknown"  # type: ignore[assignment]
    except TimeoutError:
        text = f"{call.tool} did not end within {tool.spec.timeout:g} s and was stopped."
        parts, status, executed = (TextPart(text=text),), "error", "unknown"
    except Exception as fault:  # a fault of the tool itself: the model and the person are told, the run goes on
        log.exception("tool %s failed in call %s", call.tool, call.tool_call_id)
        text = f"{call.tool} failed: {type(fault).__name__}: {fault}"
        parts, status, executed = (TextPart(text=text),), "error", "unknown"
    took = int((ctx.parts.clock.monotonic() - began) * 1000)
    return _finished(call, status, parts, executed, took)


def _finished(
    call: OpenCall, status: CallStatus, parts: tuple[Part, ...], executed: Executed, duration_ms: int
) -> CallFinished:
    cleaned = tuple(
        msgspec.structs.replace(p, text=clean_text(p.text)) if isinstance(p, TextPart) else p for p in parts
    )
    return CallFinished(
        tool_call_id=call.tool_call_id,
        status=status,
        parts=for_log(cleaned),
        executed=executed,
        duration_ms=duration_ms,
    )
