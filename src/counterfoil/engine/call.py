"""One call (engine specification, section 5): may it start, and what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import traceback

import msgspec

from counterfoil.engine import asks, hooking, reviewing
from counterfoil.engine.context import Context
from counterfoil.engine.need import Need
from counterfoil.errors import CounterfoilError, ToolFailure
from counterfoil.events import CallFinished, CallStatus, Executed, HookRecord, Part, Receipt, TextPart
from counterfoil.events.codec import clean_text
from counterfoil.policy.arguments import problems
from counterfoil.policy.bash import shell_paths
from counterfoil.policy.learn import narrowest_rule
from counterfoil.policy.permissions import CallFacts, Decision, decide
from counterfoil.ports import Targets, Tool
from counterfoil.state import OpenCall
from counterfoil.state.bounds import for_log

log = logging.getLogger("counterfoil.engine")


async def gate(ctx: Context, call: OpenCall) -> CallFinished | None:
    """Decide whether `call` may start. None: it may. Else its final result, not yet published.

    Raises `Parked` where a person is asked and the drive is left meanwhile.
    """
    refusal = _unrunnable(ctx, call) or await _judge(ctx, call)
    if call.ask_id in ctx.state.asks:
        await asks.withdraw(ctx, call, "it is decided without a person by now")
    return refusal


async def _judge(ctx: Context, call: OpenCall) -> CallFinished | None:
    """Permission on the arguments as they came, hooks, permission again, reviews, the person."""
    facts, decision = await decision_on(ctx, call)
    if decision.verdict == "deny":
        return await _denied(ctx, call, decision.reason)
    if _to_be_hooked(ctx, call):
        merged = await hooking.before_call(ctx, call, facts.targets)
        if ctx.state.run is not None and ctx.state.run.stopped is not None:
            return not_run(call, "blocked", f"Not run: a hook stopped the run: {ctx.state.run.stopped}")
        if merged.verdict != "block" and call.original is not None:
            if refusal := _unrunnable(ctx, call):
                return refusal
            facts, decision = await decision_on(ctx, call)
        if merged.verdict == "defer" and decision.verdict != "deny":
            await asks.defer(ctx, call, merged.reason)
    if call.hook_blocked is not None:
        return not_run(call, "blocked", f"Blocked by a hook: {call.hook_blocked}")
    if decision.verdict == "deny":
        return await _denied(ctx, call, decision.reason)
    need = await reviewing.permission(ctx, call, facts, _need(call, decision))
    need = await reviewing.action(ctx, call, facts, need)
    return await _settled(ctx, call, facts, need)


def _to_be_hooked(ctx: Context, call: OpenCall) -> bool:
    """PreToolUse hooks speak once for each call: not again after a restart, and not after a person was asked."""
    return ctx.hooks.wants("PreToolUse") and not call.hooked and call.ask_id is None


def _need(call: OpenCall, decision: Decision) -> Need:
    """What rules, mode and hooks leave to be decided."""
    if call.hook_asks is not None:
        return Need(verdict="ask", reason=call.hook_asks)
    if decision.verdict == "allow" or (call.hook_allows and not decision.firm):
        return Need(verdict="go")
    return Need(verdict="ask", reason=decision.reason, substitution=decision.only_substitution)


async def _settled(ctx: Context, call: OpenCall, facts: CallFacts, need: Need) -> CallFinished | None:
    """What comes of what the call needs."""
    if need.verdict == "go":
        return None
    if need.verdict == "block":
        return not_run(call, "blocked", f"Blocked: {need.reason}.")
    if ctx.state.meta.mode == "dont_ask":
        return await _denied(ctx, call, f"{need.reason}; mode dont_ask denies what would be asked")
    return await _approval(ctx, call, facts, need)


async def decision_on(ctx: Context, call: OpenCall) -> tuple[CallFacts, Decision]:
    """The rules' and the mode's answer. A call whose targets can't be determined is denied."""
    tool = ctx.toolset.get(call.tool)
    assert tool is not None
    try:
        targets, links = await asyncio.to_thread(_touched, ctx, tool, call)
    except (CounterfoilError, OSError, ValueError) as fault:
        nothing = CallFacts(tool=call.tool, read_only=tool.spec.read_only, targets=Targets())
        return nothing, Decision(verdict="deny", reason=f"what it would touch can't be determined: {fault}")
    facts = CallFacts(tool=call.tool, read_only=tool.spec.read_only, targets=targets, links=links)
    return facts, decide(facts, ctx.settings.rules, ctx.state.meta.mode, place=ctx.place, grants=ctx.grants())


def _touched(ctx: Context, tool: Tool, call: OpenCall) -> tuple[Targets, dict[str, str]]:
    """What the call would touch; and what the paths that a command line names resolve to."""
    targets = tool.targets(ctx.tool_context(call), call.arguments)
    if targets.command is None:
        return targets, {}
    return targets, {path: os.path.realpath(path) for path in shell_paths(targets.command, ctx.place)}


async def _denied(ctx: Context, call: OpenCall, reason: str) -> CallFinished:
    again = await hooking.permission_denied(ctx, call, reason) if ctx.hooks.wants("PermissionDenied") else False
    return not_run(call, "denied", f"Denied: {reason}." + (" You may try again." if again else ""))


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
    if tool.spec.leaves_plan and ctx.state.meta.mode != "plan":
        return not_run(call, "error", f"{call.tool} is for plan mode; the mode is {ctx.state.meta.mode}.")
    wrong = problems(tool.spec, call.arguments)
    if wrong:
        return not_run(call, "error", f"The arguments of {call.tool} are not valid:\n" + "\n".join(wrong))
    return None


def _over_limit(ctx: Context, call: OpenCall) -> bool:
    run, turn, limit = ctx.state.run, ctx.state.open_turn, ctx.state.meta.limits.max_tool_calls
    if not limit or run is None or turn is None:
        return False
    return run.tool_calls - len(turn.calls) + call.position + 1 > limit


async def _approval(ctx: Context, call: OpenCall, facts: CallFacts, need: Need) -> CallFinished | None:
    """Ask, unless this very call with these very arguments has its answer already (from before a restart)."""
    rule = None if need.review is not None else narrowest_rule(facts, rules=ctx.settings.rules, place=ctx.place)
    receipt = _usable(call, need)
    about = need.review.hook_id if need.review is not None else None
    shown = ctx.state.asks.get(call.ask_id) if call.ask_id is not None else None
    if shown is not None and shown.review_id != about:
        await asks.withdraw(ctx, call, "the question is another one by now")
    if receipt is None and call.ask_id not in ctx.state.asks and ctx.hooks.wants("PermissionRequest"):
        merged = await hooking.permission_request(ctx, call, facts.targets, rule, reviewed=need.review is not None)
        if merged.request == "deny" or merged.verdict == "block":
            return await _denied(ctx, call, merged.request_reason or merged.reason)
        if merged.request == "allow":
            refusal, decision = await _allowed_by_hook(ctx, call)
            if refusal is not None or not (decision.verdict == "ask" and decision.firm):
                return refusal
            need = Need(verdict="ask", reason=decision.reason)
    if receipt is None:
        receipt = await asks.put(ctx, call, asks.Question(reason=need.reason, rule=rule, review=need.review))
    if receipt.verdict != "allow":
        note = f" {receipt.note}" if receipt.note else ""
        return not_run(call, "denied", f"Denied by {receipt.decided_by.name}.{note}")
    if (receipt.tool_call_id, receipt.arguments_digest) != (call.tool_call_id, call.arguments_digest):
        return not_run(call, "denied", "Not run: the approval was given for other arguments.")
    return None


def _usable(call: OpenCall, need: Need) -> Receipt | None:
    """The answer that the call has, where it answers this question.

    One that was given before a review objected doesn't, and neither does one to another question: the same words may
    touch something else by now, as when a folder has become a link.
    """
    receipt = call.receipt
    if receipt is None or receipt.verdict == "deny":
        return receipt
    if need.review is None:
        return receipt if not call.asked_for or need.reason in call.asked_for else None
    return receipt if receipt.review_id == need.review.hook_id and _is_settled(need.review) else None


def _is_settled(record: HookRecord) -> bool:
    return record.review is not None and record.review.state in ("released", "denied")


async def _allowed_by_hook(ctx: Context, call: OpenCall) -> tuple[CallFinished | None, Decision]:
    """A PermissionRequest hook said yes, perhaps with other arguments: those are checked like any. Deny stays deny, and
    what a rule asks about, or what is always asked about, stays a question to a person.
    """
    _, decision = await decision_on(ctx, call)
    if refusal := _unrunnable(ctx, call):
        return refusal, decision
    refused = await _denied(ctx, call, decision.reason) if decision.verdict == "deny" else None
    return refused, decision


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
        trace = clean_text("".join(traceback.format_exception(fault)))
        log.error("tool %s failed in call %s\n%s", call.tool, call.tool_call_id, trace)
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
