"""What each kind of durable event does to the scrollback: a table of small functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from counterfoil import events as ev
from counterfoil.events.codec import encode_event, kind_of
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.scrollback import entries as en
from counterfoil.scrollback.cards import Card, ChildCell
from counterfoil.scrollback.children import Children
from counterfoil.scrollback.evidence import EvidenceBook
from counterfoil.scrollback.held import Standing
from counterfoil.scrollback.order import Order
from counterfoil.scrollback.views import Source

Placed = en.Entry | Card | Standing
"""What stands at a place: an entry for good, or something that an entry is made of when it is looked at."""


class Board:
    """The reducer's state that durable events change."""

    def __init__(self, root: SessionID) -> None:
        self.order: Order[Placed] = Order()
        self.cards: dict[ToolCallID, Card] = {}
        self.children = Children(root, self.order)
        self.book = EvidenceBook(root, self.order, self.children)

    def put(self, entry: type[Any], source: Source, suffix: str = "", **fields: Any) -> None:
        """Add an entry at the end."""
        key = self.order.key_for(source, suffix)
        self.order.put(key, entry(key=key, source=source, **fields))

    def notice(self, source: Source, severity: ev.Severity, code: str, text: str) -> None:
        """Add a notice."""
        self.book.counts[severity] += 1
        self.put(en.NoticeEntry, source, severity=severity, code=code, text=text)

    def stray(self, event: ev.Event, source: Source, reason: str) -> None:
        """Show an event that changes nothing: it isn't known, or can't follow what came before."""
        body = encode_event(event).decode("utf-8", "replace")
        self.put(en.UnknownEntry, source, kind=kind_of(event), body=body, reason=reason)

    def card(self, event: Any, source: Source) -> Card | None:
        """The card that a `call.…` event is about, where the event can still change it."""
        card = self.cards.get(event.tool_call_id)
        if card is None:
            self.stray(event, source, "no such call")
        elif card.state == "finished":
            self.stray(event, source, "the call was finished before")
            return None
        else:
            self.order.touch(card.key)
        return card


def _created(board: Board, e: ev.SessionCreated, source: Source) -> None:
    of = e.relationship
    if of is not None and of.forked_at is not None:
        board.book.copied(of.copied_from or (of.parent_session_id,), of.forked_at)


def _prompt(board: Board, e: ev.UserPrompt, source: Source) -> None:
    board.put(en.PromptEntry, source, parts=e.parts, prompt_source=e.source)


def _message(board: Board, e: ev.AssistantMessage, source: Source) -> None:
    if e.reasoning:
        board.put(en.ReasoningEntry, source, "/reasoning", turn=e.turn, reasoning=e.reasoning)
    if e.text:
        board.put(en.MessageEntry, source, turn=e.turn, text=e.text)


def _turn_rejected(board: Board, e: ev.TurnRejected, source: Source) -> None:
    text = f"turn {e.turn}, attempt {e.attempt} was rejected: {e.reason}; nothing of it was recorded or run"
    board.notice(source, "warning", "turn_rejected", text)


def _run_finished(board: Board, e: ev.RunFinished, source: Source) -> None:
    board.put(
        en.RunEntry,
        source,
        stop_reason=e.stop_reason,
        usage=e.usage,
        review_usage=e.review_usage,
        turns=e.turns,
        error=e.error,
    )


def _accepted(board: Board, e: ev.CallAccepted, source: Source) -> None:
    if e.tool_call_id in board.cards:
        board.stray(e, source, "the call was accepted before")
        return
    card = board.cards[e.tool_call_id] = Card(e, board.book.origin_of(source), source)
    board.order.put(card.key, card)
    board.book.card_opened(card)
    _ask_state(board, card)


def _effective(board: Board, e: ev.CallEffective, source: Source) -> None:
    if card := board.card(e, source):
        card.effective, card.digest = e.arguments, e.arguments_digest


def _started(board: Board, e: ev.CallStarted, source: Source) -> None:
    if card := board.card(e, source):
        card.state, card.attempt, card.started_at = "started", e.attempt, source.recorded_at


def _held(board: Board, e: ev.CallHeld, source: Source) -> None:
    if card := board.card(e, source):
        card.state, card.held_by, card.held_size, card.held_digest = "held", e.review_id, e.size, e.result_digest


def _finished(board: Board, e: ev.CallFinished, source: Source) -> None:
    if card := board.card(e, source):
        card.state, card.status, card.executed = "finished", e.status, e.executed
        card.result, card.duration_ms, card.finished_at = e.parts, e.duration_ms, source.recorded_at


def _hook(board: Board, e: ev.HookRecorded, source: Source) -> None:
    call = e.record.tool_call_id
    board.book.record(e.record, source, board.cards.get(call) if call is not None else None)


def _ask_opened(board: Board, e: ev.AskOpened, source: Source) -> None:
    card = board.cards.get(e.ask.tool_call_id)
    board.book.ask(e.ask, source, card)
    _ask_state(board, card)


def _ask_withdrawn(board: Board, e: ev.AskWithdrawn, source: Source) -> None:
    board.book.withdrawal(e, source)
    _ask_state(board, board.cards.get(e.tool_call_id))


def _ask_settled(board: Board, e: ev.AskSettled, source: Source) -> None:
    board.book.receipt(e.receipt, source)
    _ask_state(board, board.cards.get(e.receipt.tool_call_id))


def _ask_state(board: Board, card: Card | None) -> None:
    if card is not None and card.state in ("accepted", "asked"):
        card.state = "asked" if board.book.has_open_ask(card) else "accepted"


def _delegation_started(board: Board, e: ev.DelegationStarted, source: Source) -> None:
    card = board.cards.get(e.tool_call_id)
    if card is None:
        board.stray(e, source, "no such call")
    elif board.children.runs_for_another(e.child_session_id, card):
        board.stray(e, source, "the child was started by another call")
    else:
        board.children.started(card, ChildCell(e))
        board.order.touch(card.key)


def _delegation_surfaced(board: Board, e: ev.DelegationSurfaced, source: Source) -> None:
    """What came up from a child is shown as what it is, with its own origin and place."""
    card = board.cards.get(e.tool_call_id)
    if card is None or e.child_session_id not in card.children:
        board.stray(e, source, "no such delegation")
        return
    own = Source(session_id=e.origin_session_id, offset=e.origin_offset, recorded_at=e.recorded_at)
    if e.record is not None:
        _hook(board, ev.HookRecorded(record=e.record), own)
    elif e.ask is not None:
        _ask_opened(board, ev.AskOpened(ask=e.ask), own)
    elif e.receipt is not None:
        _ask_settled(board, ev.AskSettled(receipt=e.receipt), own)
    elif e.withdrawal is not None:
        gone = e.withdrawal
        _ask_withdrawn(
            board,
            ev.AskWithdrawn(
                ask_id=gone.ask_id,
                origin_session_id=gone.origin_session_id,
                tool_call_id=gone.tool_call_id,
                reason=gone.reason,
            ),
            own,
        )


def _delegation_finished(board: Board, e: ev.DelegationFinished, source: Source) -> None:
    card = board.cards.get(e.tool_call_id)
    child = card.children.get(e.child_session_id) if card is not None else None
    if card is None or child is None:
        board.stray(e, source, "no such delegation")
        return
    child.finished(e)
    board.order.touch(card.key)


def _team(board: Board, e: ev.TeamTaskChanged | ev.TeamMessageSent, source: Source) -> None:
    if card := board.card(e, source):
        if isinstance(e, ev.TeamTaskChanged):
            card.tasks[e.task.number] = e.task
        else:
            card.messages.append(e)


def _compacted(board: Board, e: ev.CompactionDone, source: Source) -> None:
    board.put(
        en.CompactionEntry,
        source,
        summary=e.summary,
        replaced_from=e.replaced_from,
        replaced_through=e.replaced_through,
        trigger=e.trigger,
    )


def _grant(board: Board, e: ev.GrantChanged, source: Source) -> None:
    word = "revoked" if e.revoked else "learned"
    board.notice(source, "notable", "grant_changed", f"{word}: {e.rule} ({e.scope}), by {e.decided_by.name}")


def _acknowledged(board: Board, e: ev.ReviewAcknowledged, source: Source) -> None:
    text = f"review {e.review_id} was seen at revision {e.revision}, by {e.decided_by.name}"
    joined = board.book.acknowledged(e)
    board.notice(
        source,
        "benign" if joined else "notable",
        "review_acknowledged",
        text if joined else f"{text}; no review of {e.tool_call_id} here has this id and revision",
    )


def _notice(board: Board, e: ev.Notice, source: Source) -> None:
    board.notice(source, e.severity, e.code, e.text)


def _unknown(board: Board, e: ev.UnknownEvent, source: Source) -> None:
    board.stray(e, source, "not known to this version")


FROM_CHILDREN: frozenset[type[ev.Event]] = frozenset({ev.HookRecorded, ev.AskOpened, ev.AskWithdrawn, ev.AskSettled})
"""What is shown of another session's events: as standalone evidence. The rest is in that session's scrollback."""

STEPS: dict[type[ev.Event], Callable[[Board, Any, Source], None]] = {
    ev.SessionCreated: _created,
    ev.UserPrompt: _prompt,
    ev.AssistantMessage: _message,
    ev.TurnRejected: _turn_rejected,
    ev.RunFinished: _run_finished,
    ev.CallAccepted: _accepted,
    ev.CallEffective: _effective,
    ev.CallStarted: _started,
    ev.CallHeld: _held,
    ev.CallFinished: _finished,
    ev.HookRecorded: _hook,
    ev.AskOpened: _ask_opened,
    ev.AskWithdrawn: _ask_withdrawn,
    ev.AskSettled: _ask_settled,
    ev.DelegationStarted: _delegation_started,
    ev.DelegationSurfaced: _delegation_surfaced,
    ev.DelegationFinished: _delegation_finished,
    ev.TeamTaskChanged: _team,
    ev.TeamMessageSent: _team,
    ev.CompactionDone: _compacted,
    ev.GrantChanged: _grant,
    ev.ReviewAcknowledged: _acknowledged,
    ev.Notice: _notice,
    ev.UnknownEvent: _unknown,
}
