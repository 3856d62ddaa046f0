"""From a model's turn to accepted calls: validated whole, then given their ids. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from counterfoil.events import (
    AssistantMessage,
    AssistantReplay,
    CallAccepted,
    CallReplay,
    Entry,
    TurnFinished,
)
from counterfoil.events.codec import clean_text
from counterfoil.identity import IdSource, arguments_digest
from counterfoil.ports import ModelTurn, ProposedCall, Toolset

NAME_LIMIT = 200
DEPTH_LIMIT = 100
"""Levels of objects and arrays in a call's arguments: all that validates, copies or shows them can go so deep."""

Fault = Literal["duplicate_pairing", "outstanding_pairing", "empty_turn", "too_many_calls"]


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn can't be accepted. Never names a pairing id."""

    code: Fault
    reason: str


def validate(turn: ModelTurn, outstanding: set[str], max_calls: int) -> Rejection | None:
    """What is wrong with the whole turn, before anything of it is recorded (identity contract, section 2)."""
    pairings = [call.pairing_id for call in turn.calls]
    if len(set(pairings)) != len(pairings):
        return Rejection(code="duplicate_pairing", reason="two calls of the turn have the same provider id")
    if outstanding.intersection(pairings):
        return Rejection(
            code="outstanding_pairing", reason="a call has the provider id of an earlier call without a result"
        )
    if len(pairings) > max_calls:
        return Rejection(code="too_many_calls", reason=f"{len(pairings)} calls in one turn; {max_calls} are allowed")
    if not turn.calls and not turn.text.strip() and turn.stop_reason in ("end_turn", "tool_use", "other"):
        return Rejection(code="empty_turn", reason="the turn has neither text nor calls")
    return None


def accept(turn: ModelTurn, number: int, origin: str, ids: IdSource, toolset: Toolset) -> list[Entry]:
    """The batch that records `turn`: the message, each call with its new id, the end of the turn."""
    replay = AssistantReplay(origin=origin, wire=turn.wire) if turn.wire is not None else None
    text, reasoning = clean_text(turn.text), clean_text(turn.reasoning)
    entries = [Entry(AssistantMessage(turn=number, text=text, reasoning=reasoning), replay)]
    for position, call in enumerate(turn.calls):
        tool = toolset.get(call.tool)
        arguments, problem = _usable(call)
        event = CallAccepted(
            tool_call_id=ids.call(),
            turn=number,
            position=position,
            tool=clean_text(call.tool)[:NAME_LIMIT],
            arguments=arguments,
            arguments_digest=arguments_digest(arguments),
            read_only=tool is not None and tool.spec.read_only,
            problem=problem,
        )
        entries.append(Entry(event, CallReplay(origin=origin, pairing_id=call.pairing_id, made=call.made)))
    finished = TurnFinished(turn=number, usage=turn.usage, stop_reason=turn.stop_reason, model=turn.model)
    entries.append(Entry(finished))
    return entries


def _usable(call: ProposedCall) -> tuple[dict[str, Any], str | None]:
    """The call's arguments; or none, and what is wrong with them."""
    if call.arguments is None:
        return {}, call.problem
    if _deeper_than(call.arguments, DEPTH_LIMIT):
        return {}, f"The arguments are nested too deeply. At most {DEPTH_LIMIT} levels are allowed."
    return call.arguments, None


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner = [v for box in level for v in (box.values() if isinstance(box, dict) else box)]
        level = [v for v in inner if isinstance(v, (dict, list))]
        if not level:
            return False
    return True
