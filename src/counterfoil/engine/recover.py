"""What closes open calls and runs, so that whatever comes next meets a valid history. Pure."""

from __future__ import annotations

from counterfoil.engine.review_records import disposed, moved
from counterfoil.events import (
    Ask,
    AskWithdrawn,
    CallFinished,
    CallStatus,
    DelegationFinished,
    Event,
    HookRecord,
    HookRecorded,
    RunFinished,
    StopReason,
    TextPart,
    TurnFinished,
)
from counterfoil.state import OpenCall, SessionState

_UNKNOWN = "Interrupted while it ran: it is not known whether its effects happened. Look before you do it again."
_NOT_RUN = "Not run: the run was {why} before this call started."


def closing(state: SessionState, status: CallStatus, why: str) -> list[Event]:
    """Withdraw every open ask and finish every open call, in call order, with what is known of it.

    A call that had started has `executed: unknown`; one that hadn't was not run. A turn that was copied without
    its end gets one. A child that is still said to run ended with the run: whoever drives it closes it first.
    """
    stop: StopReason = "cancelled" if status == "cancelled" else "interrupted"
    events: list[Event] = [
        DelegationFinished(tool_call_id=child.tool_call_id, child_session_id=child.session_id, stop_reason=stop)
        for child in state.running_children()
    ]
    for ask in state.asks.values():
        events += withdrawal(state, ask, f"the run was {why}")
    for call in state.open_calls():
        events += [
            HookRecorded(record=moved(record, "withdrawn")) for record in call.reviews.values() if _pends(record)
        ]
    events += [_close(call, status, why) for call in state.open_calls()]
    if state.open_turn is not None and state.run is not None and state.run.turn_open:
        events.append(TurnFinished(turn=state.open_turn.turn, stop_reason="other"))
    return events


def withdrawal(state: SessionState, ask: Ask, reason: str) -> list[Event]:
    """What takes back an open ask: it, and the review that raised it."""
    gone = AskWithdrawn(
        ask_id=ask.ask_id, origin_session_id=ask.origin_session_id, tool_call_id=ask.tool_call_id, reason=reason
    )
    return [gone, *disposed(state, ask, "withdrawn")]


def _pends(record: HookRecord) -> bool:
    return record.review is not None and record.review.state == "pending"


def closing_run(state: SessionState, stop: StopReason, status: CallStatus, why: str) -> list[Event]:
    """Everything that ends the open run: its calls and itself. Nothing where no run is open."""
    if state.run is None:
        return []
    run = state.run
    finished = RunFinished(
        run_id=run.run_id,
        stop_reason=stop,
        usage=run.usage,
        review_usage=run.review_usage,
        child_usage=run.child_usage,
        turns=run.turn,
        text=run.last_text,
    )
    return [*closing(state, status, why), finished]


def _close(call: OpenCall, status: CallStatus, why: str) -> CallFinished:
    if call.phase == "held":
        text = "Withheld: the result was held back and the run ended."
        executed = call.held.executed if call.held is not None else "unknown"
        return CallFinished(
            tool_call_id=call.tool_call_id, status="withheld", parts=(TextPart(text=text),), executed=executed
        )
    if call.phase == "started":
        return interrupted(call, status)
    text = _NOT_RUN.format(why=why)
    return CallFinished(tool_call_id=call.tool_call_id, status=status, parts=(TextPart(text=text),), executed="no")


def interrupted(call: OpenCall, status: CallStatus = "interrupted") -> CallFinished:
    """The result of a call that had started and whose end nobody saw."""
    return CallFinished(
        tool_call_id=call.tool_call_id, status=status, parts=(TextPart(text=_UNKNOWN),), executed="unknown"
    )
