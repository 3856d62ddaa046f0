"""The one store of hook records and asks, attached or standalone, with the revision rules of the identity contract."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Literal

from counterfoil.events import Ask, AskWithdrawn, HookRecord, Receipt, ReviewAcknowledged, Severity
from counterfoil.identity import AskID, HookID, SessionID, ToolCallID
from counterfoil.scrollback.cards import Card
from counterfoil.scrollback.children import Children
from counterfoil.scrollback.entries import EvidenceEntry
from counterfoil.scrollback.held import AskCell, Held, RecordCell
from counterfoil.scrollback.order import Order
from counterfoil.scrollback.revisions import contradiction, step
from counterfoil.scrollback.views import AskView, EntryKey, Source

_Why = Literal["child_origin", "no_call", "unknown_call"]


class EvidenceBook:
    """Owns all records and asks of one scrollback. What it can't join to a card by ids stands alone."""

    def __init__(self, root: SessionID, order: Order[Any], children: Children) -> None:
        self.root = root
        self.counts: Counter[Severity] = Counter()
        self._order, self._children = order, children
        self._copied_from: tuple[SessionID, ...] = ()
        self._copied_through = 0
        self._records: dict[HookID, RecordCell] = {}
        self._asks: dict[AskID, AskCell] = {}
        self._open: dict[AskID, AskCell] = {}
        self._waiting: dict[ToolCallID, list[Held]] = defaultdict(list)

    # ---- what comes in ------------------------------------------------------------------------------------------

    def record(self, record: HookRecord, source: Source, card: Card | None) -> None:
        """Take one published version of a record."""
        cell = self._records.get(record.hook_id)
        held = cell.record if cell is not None else None
        taken = step(held, record)
        if taken == "legacy":
            self._stand(source, why="no_identity", record=record)
        elif taken == "conflict":
            self._conflict(source, contradiction(held, record), record=record)
        elif cell is None:
            cell = self._records[record.hook_id] = RecordCell(record, source)
            self.counts[record.severity] += 1
            self._take(cell, record.tool_call_id, card)
        elif taken == "replace":
            self.counts[cell.severity] -= 1
            self.counts[record.severity] += 1
            cell.record = record
            self._changed(cell)

    def ask(self, ask: Ask, source: Source, card: Card | None) -> None:
        """Take one opened ask."""
        held = self._asks.get(ask.ask_id)
        if held is None:
            cell = self._asks[ask.ask_id] = self._open[ask.ask_id] = AskCell(ask, source)
            self._take(cell, ask.tool_call_id, card)
        elif held.ask != ask:
            self._conflict(source, f"{ask.ask_id} is asked twice, differently", ask=AskView(ask=ask).detached())

    def receipt(self, receipt: Receipt, source: Source) -> None:
        """Take one receipt: it joins its ask by explicit ids, or stands alone."""
        cell = self._asks.get(receipt.ask_id)
        if cell is None or _ids(receipt) != _ids(cell.ask):
            self._stand(source, why="unmatched", receipt=receipt)
        elif receipt.arguments_digest != cell.ask.arguments_digest:
            self._conflict(source, f"{receipt.ask_id} was answered for other arguments", receipt=receipt)
        elif receipt.result_digest != cell.ask.result_digest:
            self._conflict(source, f"{receipt.ask_id} was answered for another result", receipt=receipt)
        elif cell.open:
            cell.receipt = receipt
            self._closed(cell)
        elif cell.receipt != receipt:
            self._conflict(source, f"{receipt.ask_id} was closed before", receipt=receipt)

    def withdrawal(self, event: AskWithdrawn, source: Source) -> None:
        """Take one withdrawal of an ask."""
        cell = self._asks.get(event.ask_id)
        ids = (event.ask_id, event.origin_session_id, event.tool_call_id)
        if cell is None or ids != _ids(cell.ask)[:3]:
            self._stand(source, why="unmatched", withdrawal=event)
        elif cell.open:
            cell.withdrawn = event.reason
            self._closed(cell)
        elif cell.withdrawn != event.reason:
            self._conflict(source, f"{event.ask_id} was closed before", withdrawal=event)

    def acknowledged(self, event: ReviewAcknowledged) -> bool:
        """Take one acknowledgement: whether it joins a review on a card by explicit ids."""
        cell = self._records.get(event.review_id)
        if cell is None or cell.card is None or event.revision > cell.record.revision:
            return False
        if (event.origin_session_id, event.tool_call_id) != (cell.origin, cell.record.tool_call_id):
            return False
        cell.card.acknowledged.append(event)
        self._order.touch(cell.card.key)
        return True

    def card_opened(self, card: Card) -> None:
        """Attach what came before its call, in the order in which it came."""
        for cell in self._waiting.pop(card.tool_call_id, ()):
            self._attach(cell, card)

    def copied(self, lineage: tuple[SessionID, ...], through: int) -> None:
        """This session is a fork: its events up to offset `through` were written in the sessions of `lineage`.

        Nearest first; copied asks, receipts and records name these sessions as their origin.
        """
        self._copied_from, self._copied_through = lineage, through

    def _is_copy(self, source: Source) -> bool:
        return source.session_id == self.root and (source.offset or self._copied_through + 1) <= self._copied_through

    def origin_of(self, source: Source) -> SessionID:
        """The session that the event at `source`, one of this session's own log, comes from."""
        return self._copied_from[0] if self._copied_from and self._is_copy(source) else self.root

    def _may_attach(self, origin: SessionID, source: Source) -> bool:
        if source.session_id != self.root:
            return False
        return origin == self.root or (self._is_copy(source) and origin in self._copied_from)

    # ---- where it stands ----------------------------------------------------------------------------------------

    def _take(self, cell: Held, call: ToolCallID | None, card: Card | None) -> None:
        """A new record or ask: onto its card, or to a place of its own, where it may wait for its card."""
        if not self._may_attach(cell.origin, cell.source):
            self._children.evidence(cell)
        elif card is not None:
            self._attach(cell, card)
            return
        elif call is not None:
            self._waiting[call].append(cell)
        cell.place = self._order.key_for(cell.source)
        self._order.put(cell.place, cell)

    def _attach(self, cell: Held, card: Card) -> None:
        cell.card = card
        if isinstance(cell, RecordCell):
            card.hook_ids.append(cell.record.hook_id)
        else:
            card.ask_ids.append(cell.ask.ask_id)
        if cell.place is not None:
            self._order.remove(cell.place)
            cell.place = None
        self._order.touch(card.key)

    def _changed(self, cell: Held) -> None:
        if cell.card is not None:
            self._order.touch(cell.card.key)
        if cell.place is not None:
            self._order.touch(cell.place)
            self._children.changed(cell.origin)

    def _closed(self, cell: AskCell) -> None:
        del self._open[cell.ask.ask_id]
        self._changed(cell)

    def _stand(self, source: Source, **evidence: Any) -> None:
        key = self._order.key_for(source)
        entry = EvidenceEntry(key=key, source=source, **evidence)
        self.counts[entry.severity] += 1
        self._order.put(key, entry)
        self._children.evidence(entry)

    def _conflict(self, source: Source, reason: str, **evidence: Any) -> None:
        self._stand(source, why="conflict", reason=reason, **evidence)

    # ---- what goes out ------------------------------------------------------------------------------------------

    def records_of(self, card: Card) -> tuple[HookRecord, ...]:
        """The records on `card`, in the order in which they came."""
        return tuple(self._records[h].record for h in card.hook_ids)

    def asks_of(self, card: Card) -> tuple[AskView, ...]:
        """The asks of `card`, in the order in which they came."""
        return tuple(self._asks[a].view() for a in card.ask_ids)

    def has_open_ask(self, card: Card) -> bool:
        """Whether a question about this call waits for an answer."""
        return any(self._asks[a].open for a in card.ask_ids)

    def open_asks(self) -> tuple[AskView, ...]:
        """All questions that wait for an answer, in the order in which they came."""
        return tuple(cell.view() for cell in self._open.values())

    @property
    def awaiting(self) -> bool:
        """Whether a question about one of the session's own calls waits for an answer."""
        return any(cell.card is not None for cell in self._open.values())

    @property
    def records(self) -> tuple[HookRecord, ...]:
        """All records at their latest revision."""
        return tuple(cell.record for cell in self._records.values())

    def standalone(self, cell: Held) -> EvidenceEntry:
        """The entry of a record or ask that stands alone."""
        key, call = cell.place or EntryKey(""), cell.record if isinstance(cell, RecordCell) else cell.ask
        why = self._why(cell.origin, call.tool_call_id, cell.source)
        if isinstance(cell, RecordCell):
            return EvidenceEntry(key=key, source=cell.source, why=why, record=cell.record)
        return EvidenceEntry(key=key, source=cell.source, why=why, ask=cell.view())

    def _why(self, origin: SessionID, call: ToolCallID | None, source: Source) -> _Why:
        if not self._may_attach(origin, source):
            return "child_origin"
        return "no_call" if call is None else "unknown_call"


def _ids(value: Ask | Receipt) -> tuple[Any, ...]:
    return (value.ask_id, value.origin_session_id, value.tool_call_id, value.review_id)
