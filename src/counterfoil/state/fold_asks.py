"""Asks: opened on a call, closed by a receipt or a withdrawal, never twice."""

from __future__ import annotations

from typing import Any

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.state.row import Row, open_call
from counterfoil.state.session import OpenCall, SessionState

REMEMBERED_ASKS = 256


def ask_opened(s: SessionState, e: ev.AskOpened, row: Row) -> None:
    """The call waits for a person. The ask must show the call as it is."""
    ask = e.ask
    call = open_call(s, ask.tool_call_id, row)
    if ask.origin_session_id not in origins(s):
        raise FoldError(f"ask {ask.ask_id} is of another session (offset {row.offset})")
    if call.phase not in ("accepted", "held"):
        raise FoldError(f"ask {ask.ask_id} opens on a call in phase {call.phase} (offset {row.offset})")
    if call.ask_id in s.asks or ask.ask_id in s.receipts or ask.ask_id in s.withdrawn:
        raise FoldError(f"ask {ask.ask_id} opens a second time, or beside another (offset {row.offset})")
    if (ask.tool, ask.arguments_digest, ask.arguments) != (call.tool, call.arguments_digest, call.arguments):
        raise FoldError(f"ask {ask.ask_id} shows other arguments than the call's (offset {row.offset})")
    _shows_what_is_held(ask, call, row)
    if ask.review_id is not None and ask.review_id not in {r.hook_id for r in call.reviews.values()}:
        raise FoldError(f"ask {ask.ask_id} names a review that its call doesn't have (offset {row.offset})")
    s.asks[ask.ask_id] = ask
    if call.phase == "accepted":
        call.phase = "asked"
    call.ask_id, call.receipt = ask.ask_id, None
    call.asked_for = "" if ask.deferred else ask.reason
    s.status = "awaiting"


def _shows_what_is_held(ask: ev.Ask, call: OpenCall, row: Row) -> None:
    """A question over a result is about the very result that is held, and any other is about no result."""
    if ask.result_digest != (call.held_digest if call.phase == "held" else None):
        raise FoldError(f"ask {ask.ask_id} is about another result than the one that is held (offset {row.offset})")


def origins(s: SessionState) -> tuple[str, ...]:
    """The sessions whose asks may stand in this log: itself, and those that it was copied from."""
    relationship = s.meta.relationship
    return (s.meta.session_id, *(relationship.copied_from if relationship is not None else ()))


def _forget_oldest(settled: dict[Any, Any]) -> None:
    """Late and repeated answers are recognised for the last `REMEMBERED_ASKS` asks."""
    while len(settled) > REMEMBERED_ASKS:
        del settled[next(iter(settled))]


def ask_withdrawn(s: SessionState, e: ev.AskWithdrawn, row: Row) -> None:
    """The ask no longer stands; the call is where it was before."""
    ask = _close_ask(s, e.ask_id, row)
    if (e.tool_call_id, e.origin_session_id) != (ask.tool_call_id, ask.origin_session_id):
        raise FoldError(f"ask {e.ask_id} is withdrawn for another call (offset {row.offset})")
    s.withdrawn[e.ask_id] = e.reason
    _forget_oldest(s.withdrawn)


def ask_settled(s: SessionState, e: ev.AskSettled, row: Row) -> None:
    """The ask has its receipt, which stays with the call that it is about."""
    receipt = e.receipt
    ask = _close_ask(s, receipt.ask_id, row)
    if _about(receipt) != _about(ask):
        raise FoldError(f"the receipt of ask {ask.ask_id} is about another call (offset {row.offset})")
    s.receipts[receipt.ask_id] = receipt
    _forget_oldest(s.receipts)
    call = s.call(receipt.tool_call_id)
    if call is not None:
        call.receipt = receipt


def _about(of: ev.Ask | ev.Receipt) -> tuple[object, ...]:
    """What an ask and its receipt have to agree on."""
    return of.origin_session_id, of.tool_call_id, of.review_id, of.arguments_digest, of.result_digest


def _close_ask(s: SessionState, ask_id: Any, row: Row) -> ev.Ask:
    ask = s.asks.pop(ask_id, None)
    if ask is None:
        raise FoldError(f"ask {ask_id} ends and isn't open (offset {row.offset})")
    call = s.call(ask.tool_call_id)
    if call is not None and call.ask_id == ask_id and call.phase == "asked":
        call.phase = "accepted"
    asked_or_not(s)
    return ask


def asked_or_not(s: SessionState) -> None:
    """The status after an ask, here or in a child, was opened or ended."""
    if s.asks or s.child_asks:
        s.status = "awaiting"
    elif s.status == "awaiting":
        s.status = "running" if s.run is not None else "idle"
