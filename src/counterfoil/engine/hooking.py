"""Hooks at their places in a run: what is fired, what is published of it, and what it means for what comes next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import msgspec

from counterfoil.engine.context import Context, Stop
from counterfoil.errors import CounterfoilError
from counterfoil.events import (
    CallEffective,
    CallFinished,
    Entry,
    Event,
    GrantChanged,
    HookRecorded,
    Mode,
    Principal,
    TextPart,
    ToolOriginal,
    UserPrompt,
    text_of,
)
from counterfoil.identity import arguments_digest
from counterfoil.policy.hook_merge import NOTHING, Merged, late_notices, merge
from counterfoil.policy.hook_rules import suggested
from counterfoil.ports import HookAnswer, HookCall, HookPhase, Targets
from counterfoil.state import OpenCall

MAX_STOP_CONTINUATIONS = 8
log = logging.getLogger("counterfoil.engine")

_MODES: dict[Mode, str] = {
    "default": "default",
    "plan": "plan",
    "accept_edits": "acceptEdits",
    "dont_ask": "dontAsk",
    "bypass": "bypassPermissions",
}
"""The modes as hook scripts know them."""


@runtime_checkable
class AnswersLate(Protocol):
    """A `HookRunner` with hooks in the background."""

    def late(self) -> list[tuple[HookCall, HookAnswer]]:
        """What they came to since somebody last asked, each with the firing that it belongs to."""
        ...


async def fire(
    ctx: Context,
    phase: HookPhase,
    fields: dict[str, Any],
    *,
    match: str | None = None,
    call: OpenCall | None = None,
    targets: Targets | None = None,
    result: CallFinished | None = None,
    rule: str | None = None,
    hear: Callable[[HookAnswer], HookAnswer] = lambda answer: answer,
) -> Merged:
    """Fire the hooks of `phase` and merge their answers, each as `hear` hears it. Of these nothing is published yet;
    what hooks in the background came to meanwhile is.
    """
    if not ctx.hooks.wants(phase):
        return NOTHING
    await publish_late(ctx)
    answers = await ctx.hooks.fire(
        HookCall(
            phase=phase,
            payload=_common(ctx, phase) | fields,
            match=match,
            tool_call_id=call.tool_call_id if call is not None else None,
            targets=targets,
        )
    )
    if not answers:
        return NOTHING
    return merge(
        phase,
        [hear(answer) for answer in answers],
        session=ctx.state.meta.session_id,
        ids=ctx.parts.ids,
        tool_call_id=call.tool_call_id if call is not None else None,
        arguments=call.arguments if call is not None else None,
        result=result.parts if result is not None else None,
        rule=rule,
    )


async def publish_late(ctx: Context) -> None:
    """Tell people what hooks in the background came to."""
    if isinstance(ctx.hooks, AnswersLate):
        await ctx.publish(*(notice for call, answer in ctx.hooks.late() for notice in late_notices(call, answer)))


def _common(ctx: Context, phase: HookPhase) -> dict[str, Any]:
    """The fields that every event of the contract has."""
    state = ctx.state
    run = state.run
    return {
        "session_id": state.meta.session_id,
        "transcript_path": ctx.transcript_path,
        "cwd": state.meta.workspace,
        "permission_mode": _MODES[state.meta.mode],
        "hook_event_name": phase,
        "origin_session_id": state.meta.session_id,
        "run_id": run.run_id if run is not None else None,
        "turn": run.turn if run is not None else 0,
    }


def about(call: OpenCall) -> dict[str, Any]:
    """The fields of every event about a call; `tool_use_id` is its ToolCallID, always the same."""
    return {"tool_name": call.tool, "tool_input": call.arguments, "tool_use_id": call.tool_call_id}


def events_of(merged: Merged) -> list[Event]:
    """The records, and the contexts as input for the model."""
    return [*(HookRecorded(record=r) for r in merged.records), *(harness(text) for text in merged.contexts)]


def harness(text: str) -> UserPrompt:
    """Input for the model that comes from a hook."""
    return UserPrompt(parts=(TextPart(text=text),), source="harness")


async def before_call(ctx: Context, call: OpenCall, targets: Targets) -> Merged:
    """PreToolUse: fired once for each call, also over restarts. Publishes records and changed arguments."""
    merged = await fire(ctx, "PreToolUse", about(call), match=call.tool, call=call, targets=targets)
    await _publish_changes(ctx, call, merged, changes=True)
    return merged


async def _publish_changes(ctx: Context, call: OpenCall, merged: Merged, *more: Event, changes: bool) -> None:
    """Publish the records; then, where `changes` stand, the new arguments; then the contexts."""
    events: list[Event] = [*(HookRecorded(record=r) for r in merged.records), *more]
    if changes and merged.arguments is not None and merged.changed_by is not None:
        events.append(
            CallEffective(
                tool_call_id=call.tool_call_id,
                arguments=merged.arguments,
                arguments_digest=arguments_digest(merged.arguments),
                hook_id=merged.changed_by,
            )
        )
    await ctx.publish(*events, *(harness(text) for text in merged.contexts))


def _only_denies(answer: HookAnswer) -> HookAnswer:
    """What counts of an answer where a review asks: a denial. That an allow doesn't is said."""
    if answer.request != "allow":
        return answer
    said = "a review asks here: only a person can allow this call, the hook's answer isn't used"
    return msgspec.structs.replace(answer, request=None, updated_input=None, warnings=(*answer.warnings, said))


async def permission_request(
    ctx: Context, call: OpenCall, targets: Targets, rule: str | None, *, reviewed: bool = False
) -> Merged:
    """PermissionRequest: hooks may answer what a person would be asked, and have `rule` learned for the session: the
    one that an answer of a person could learn. Where a review asks (`reviewed`) they may deny alone. Publishes records,
    changed arguments and the rule.
    """
    fields = about(call) | {"permission_suggestions": suggested(rule)}
    merged = await fire(
        ctx,
        "PermissionRequest",
        fields,
        match=call.tool,
        call=call,
        targets=targets,
        rule=rule,
        hear=_only_denies if reviewed else lambda answer: answer,
    )
    learned: list[Event] = []
    if merged.learned is not None and rule is not None and rule not in ctx.grants():
        by = Principal(kind="policy", name=f"hook {merged.learned.name}")
        learned.append(GrantChanged(rule=rule, scope="session", decided_by=by))
    await _publish_changes(ctx, call, merged, *learned, changes=merged.request == "allow")
    return merged


async def touched(ctx: Context, call: OpenCall) -> Targets | None:
    """What `call` touches, as its tool says, for the `if` of hooks. None where that can't be determined: an `if` then
    looks at the arguments.
    """
    tool = ctx.toolset.get(call.tool)
    if tool is None:
        return None
    try:
        return await asyncio.to_thread(tool.targets, ctx.tool_context(call), call.arguments)
    except (CounterfoilError, OSError, ValueError) as fault:
        log.info("what call %s touches can't be determined for its hooks: %s", call.tool_call_id, fault)
        return None


async def permission_denied(ctx: Context, call: OpenCall, reason: str, targets: Targets | None = None) -> bool:
    """PermissionDenied. True where a hook lets the model try again. Without `targets` the tool is asked for them."""
    if not ctx.hooks.wants("PermissionDenied"):
        return False
    fields = about(call) | {"reason": reason}
    targets = targets or await touched(ctx, call)
    merged = await fire(ctx, "PermissionDenied", fields, match=call.tool, call=call, targets=targets)
    await ctx.publish(*events_of(merged))
    return merged.retry


async def after_call(
    ctx: Context, call: OpenCall, result: CallFinished, targets: Targets | None = None
) -> CallFinished:
    """PostToolUse, or PostToolUseFailure: may replace the result that the model sees, or add context.

    Without `targets` the tool is asked for them.
    """
    failed = result.status != "ok"
    phase: HookPhase = "PostToolUseFailure" if failed else "PostToolUse"
    if not ctx.hooks.wants(phase):
        return result
    text = text_of(result.parts)
    fields = about(call) | {"duration_ms": result.duration_ms}
    fields |= (
        {"error": text, "is_interrupt": result.status == "interrupted"} if failed else {"tool_response": _told(text)}
    )
    targets = targets or await touched(ctx, call)
    merged = await fire(ctx, phase, fields, match=call.tool, call=call, targets=targets, result=result)
    replaced = result
    entries: list[Event | Entry] = []
    for record in merged.records:
        before = merged.replaced.get(record.hook_id)
        entries.append(Entry(HookRecorded(record=record), None if before is None else ToolOriginal(parts=before)))
    entries += [harness(context) for context in merged.contexts]
    if merged.output is not None and not failed:
        replaced = msgspec.structs.replace(result, parts=merged.output)
    await ctx.publisher.publish(*entries)
    return replaced


def _told(text: str) -> dict[str, Any]:
    return {"content": text, "is_error": False}


async def after_batch(ctx: Context, calls: list[OpenCall]) -> None:
    """PostToolBatch: after all calls of a turn, before the model is asked again."""
    if not calls or not ctx.hooks.wants("PostToolBatch"):
        return
    told = [
        about(call) | {"tool_response": _told(text_of(call.result.parts) if call.result is not None else "")}
        for call in calls
    ]
    await ctx.publish(*events_of(await fire(ctx, "PostToolBatch", {"tool_calls": told})))


async def at_stop(ctx: Context) -> bool:
    """Stop: True where a hook makes the loop go on, with its reason as input. Bounded."""
    run = ctx.state.run
    if run is None or not ctx.hooks.wants("Stop") or run.stop_continuations >= MAX_STOP_CONTINUATIONS:
        return False
    fields = {"stop_hook_active": run.stop_continuations > 0, "last_assistant_message": run.last_text}
    merged = await fire(ctx, "Stop", fields)
    goes_on = merged.verdict == "block" or bool(merged.contexts)
    events = events_of(merged)
    if merged.verdict == "block":
        events.append(harness(merged.reason))
    await ctx.publish(*events)
    return goes_on and merged.stop is None


async def stop_failure(ctx: Context, stop: Stop) -> None:
    """StopFailure: the run ends by a fault of the provider."""
    error = stop.error
    fields = {"error": error.code if error else stop.reason, "error_details": error.message if error else ""}
    merged = await fire(ctx, "StopFailure", fields, match=fields["error"])
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))


async def session_start(ctx: Context, source: str) -> list[Event]:
    """SessionStart: contexts come back as input to be recorded after the prompt. Publishes the records."""
    merged = await fire(ctx, "SessionStart", {"source": source, "model": ctx.state.meta.model}, match=source)
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))
    return [harness(text) for text in merged.contexts]


async def prompt_submitted(ctx: Context, text: str) -> tuple[str | None, list[Event]]:
    """UserPromptSubmit: the reason for which the prompt is dropped, or None; and contexts. Publishes the records."""
    merged = await fire(ctx, "UserPromptSubmit", {"prompt": text})
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))
    return (merged.reason if merged.verdict == "block" else merged.stop), [harness(t) for t in merged.contexts]


async def notify(ctx: Context, message: str) -> None:
    """Notification: a person is waited for."""
    fields = {"notification_type": "permission_prompt", "message": message, "title": "Approval needed"}
    merged = await fire(ctx, "Notification", fields, match="permission_prompt")
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))


async def before_compaction(ctx: Context, trigger: str) -> str | None:
    """PreCompact: the reason for which history isn't compacted now, or None."""
    merged = await fire(ctx, "PreCompact", {"trigger": trigger, "custom_instructions": ""}, match=trigger)
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))
    return merged.reason if merged.verdict == "block" else None


async def after_compaction(ctx: Context, trigger: str, summary: str) -> None:
    """PostCompact."""
    merged = await fire(ctx, "PostCompact", {"trigger": trigger, "compact_summary": summary}, match=trigger)
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))


async def session_end(ctx: Context, reason: str) -> None:
    """SessionEnd: this process is done with the session. Hooks in the background get their last time and are heard."""
    merged = await fire(ctx, "SessionEnd", {"reason": reason}, match=reason)
    await ctx.publish(*(HookRecorded(record=r) for r in merged.records))
    await ctx.hooks.close()
    await publish_late(ctx)
