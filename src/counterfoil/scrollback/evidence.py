"""The one store of hook records and asks, attached or standalone, with the revision rules of the identity contract."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

from counterfoil.events import Ask, AskWithdrawn, HookRecord, Receipt
from counterfoil.identity import AskID, HookID, SessionID, ToolCallID
from counterfoil.scrollback.cards import AskCell, Card
from counterfoil.scrollback.entries import EvidenceEntry
from counterfoil.scrollback.revisions import step
from counterfoil.scrollback.views import AskView, Source


class RecordSlot:
    """The place of a record in the order of entries: an entry of its own for as long as no card has it."""

    __slots__ = ("hook_id", "source")

    def __init__(self, hook_id: HookID, source: Source) -> None:
        self.hook_id = hook_id
        self.source = source


class AskSlot:
    """The place of an ask in the order of entries: an entry of its own for as long as no card has it."""

    __slots__ = ("ask_id", "source")

    def __init__(self, ask_id: AskID, source: Source) -> None:
        self.ask_id = ask_id
        self.source = source


Slot = RecordSlot | AskSlot | EvidenceEntry
_Why = Literal["child_origin", "no_call", "unknown_call"]


class EvidenceBook:
    """Owns all records and asks of one scrollback. What it can't join to a card by ids stands alone."""

    def __init__(self, root: SessionID) -> None:
        self.root = root
        self._copied_from: tuple[SessionID, ...] = ()
        self._copied_through = 0
        self._records: dict[HookID, HookRecord] = {}
        self._asks: dict[AskID, AskCell] = {}
        self._attached: set[HookID | AskID] = set()
        self._waiting_records: dict[ToolCallID, list[HookID]] = defaultdict(list)
        self._waiting_asks: dict[ToolCallID, list[AskID]] = defaultdict(list)

    # ---- what comes in ------------------------------------------------------------------------------------------

    def record(self, record: HookRecord, source: Source, card: Card | None) -> Slot | None:
        """Take one published version of a record. Returns what has to stand in the order of entries, if anything."""
        held = self._records.get(record.hook_id)
        taken = step(held, record)
        if taken == "legacy":
            return EvidenceEntry(source=source, why="no_identity", record=record)
        if taken == "conflict":
            return _conflict(source, _contradiction(held, record), record=record)
        if taken == "ignore":
            return None
        self._records[record.hook_id] = record
        if taken == "replace":
            return None
        if self._may_attach(record.origin_session_id, source):
            if card is not None:
                self._attach_record(record.hook_id, card)
            elif record.tool_call_id is not None:
                self._waiting_records[record.tool_call_id].append(record.hook_id)
        return RecordSlot(record.hook_id, source)

    def ask(self, ask: Ask, source: Source, card: Card | None) -> Slot | None:
        """Take one opened ask."""
        held = self._asks.get(ask.ask_id)
        if held is not None:
            if held.ask == ask:
                return None
            return _conflict(source, f"{ask.ask_id} is asked twice, differently", ask=AskView(ask=ask))
        self._asks[ask.ask_id] = AskCell(ask, source.recorded_at)
        if self._may_attach(ask.origin_session_id, source):
            if card is not None:
                self._attach_ask(ask.ask_id, card)
            else:
                self._waiting_asks[ask.tool_call_id].append(ask.ask_id)
        return AskSlot(ask.ask_id, source)

    def receipt(self, receipt: Receipt, source: Source) -> Slot | None:
        """Take one receipt: it joins its ask by explicit ids, or stands alone."""
        cell = self._asks.get(receipt.ask_id)
        if cell is None or _ids(receipt) != _ids(cell.ask):
            return EvidenceEntry(source=source, why="unmatched", receipt=receipt)
        if receipt.arguments_digest != cell.ask.arguments_digest:
            return _conflict(source, f"{receipt.ask_id} was answered for other arguments", receipt=receipt)
        if cell.open:
            cell.receipt = receipt
            return None
        if cell.receipt == receipt:
            return None
        return _conflict(source, f"{receipt.ask_id} was closed before", receipt=receipt)

    def withdrawal(self, event: AskWithdrawn, source: Source) -> Slot | None:
        """Take one withdrawal of an ask."""
        cell = self._asks.get(event.ask_id)
        ids = (event.ask_id, event.origin_session_id, event.tool_call_id)
        if cell is None or ids != _ids(cell.ask)[:3]:
            return EvidenceEntry(source=source, why="unmatched", withdrawal=event)
        if cell.open:
            cell.withdrawn = event.reason
            return None
        if cell.withdrawn == event.reason:
            return None
        return _conflict(source, f"{event.ask_id} was closed before", withdrawal=event)

    def card_opened(self, card: Card) -> None:
        """Attach what came before its call, in the order in which it came."""
        for hook_id in self._waiting_records.pop(card.tool_call_id, ()):
            self._attach_record(hook_id, card)
        for ask_id in self._waiting_asks.pop(card.tool_call_id, ()):
            self._attach_ask(ask_id, card)

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

    def _attach_record(self, hook_id: HookID, card: Card) -> None:
        card.hook_ids.append(hook_id)
        self._attached.add(hook_id)

    def _attach_ask(self, ask_id: AskID, card: Card) -> None:
        card.ask_ids.append(ask_id)
        self._attached.add(ask_id)

    # ---- what goes out ------------------------------------------------------------------------------------------

    def records_of(self, card: Card) -> tuple[HookRecord, ...]:
        """The records on `card`, in the order in which they came."""
        return tuple(self._records[h] for h in card.hook_ids)

    def asks_of(self, card: Card) -> tuple[AskView, ...]:
        """The asks of `card`, in the order in which they came."""
        return tuple(self._asks[a].view() for a in card.ask_ids)

    def has_open_ask(self, card: Card) -> bool:
        """Whether a question about this call waits for an answer."""
        return any(self._asks[a].open for a in card.ask_ids)

    def open_asks(self) -> tuple[AskView, ...]:
        """All questions that wait for an answer, in the order in which they came."""
        return tuple(cell.view() for cell in self._asks.values() if cell.open)

    @property
    def awaiting(self) -> bool:
        """Whether a question about one of the session's own calls waits for an answer."""
        return any(cell.open and ask_id in self._attached for ask_id, cell in self._asks.items())

    @property
    def records(self) -> tuple[HookRecord, ...]:
        """All records at their latest revision."""
        return tuple(self._records.values())

    def standalone(self, slot: Slot) -> EvidenceEntry | None:
        """The entry that stands at `slot`, or None where a card has it."""
        if isinstance(slot, EvidenceEntry):
            return slot
        if isinstance(slot, RecordSlot):
            if slot.hook_id in self._attached:
                return None
            record = self._records[slot.hook_id]
            why = self._why(record.origin_session_id, record.tool_call_id, slot.source)
            return EvidenceEntry(source=slot.source, why=why, record=record)
        if slot.ask_id in self._attached:
            return None
        view = self._asks[slot.ask_id].view()
        why = self._why(view.ask.origin_session_id, view.ask.tool_call_id, slot.source)
        return EvidenceEntry(source=slot.source, why=why, ask=view)

    def _why(self, origin: SessionID, call: ToolCallID | None, source: Source) -> _Why:
        if not self._may_attach(origin, source):
            return "child_origin"
        return "no_call" if call is None else "unknown_call"


def _ids(value: Ask | Receipt) -> tuple[Any, ...]:
    return (value.ask_id, value.origin_session_id, value.tool_call_id, value.review_id)


def _contradiction(held: HookRecord | None, record: HookRecord) -> str:
    """Why a record can't be taken, in words."""
    if held is None or (record.review is not None and record.review.review_id != record.hook_id):
        return "hook_id and review_id differ"
    if (record.tool_call_id, record.origin_session_id) != (held.tool_call_id, held.origin_session_id):
        return f"{record.hook_id} is claimed for another call or origin"
    return f"{record.hook_id} says two things at revision {held.revision}"


def _conflict(source: Source, reason: str, **evidence: Any) -> EvidenceEntry:
    return EvidenceEntry(source=source, why="conflict", reason=reason, **evidence)
