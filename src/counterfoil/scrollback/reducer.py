"""The reducer: one pure step per event, the same for a live stream, a replay of the log, and a mix of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.events.codec import encode_event, kind_of
from counterfoil.identity import Offset, SessionID, ToolCallID
from counterfoil.scrollback import entries as en
from counterfoil.scrollback.cards import Card
from counterfoil.scrollback.evidence import AskSlot, EvidenceBook, RecordSlot, Slot
from counterfoil.scrollback.head import Head
from counterfoil.scrollback.live import Live
from counterfoil.scrollback.views import AskView, CallView, ChildView, LiveView, SessionView, Source


class Applied:
    """Which durable events of one session were applied: all up to a mark, and some beyond it."""

    __slots__ = ("_beyond", "through")

    def __init__(self) -> None:
        self.through = 0
        self._beyond: set[int] = set()

    def add(self, offset: int) -> bool:
        """Note `offset`. False where it was noted before."""
        if offset <= self.through or offset in self._beyond:
            return False
        self._beyond.add(offset)
        while self.through + 1 in self._beyond:
            self.through += 1
            self._beyond.remove(self.through)
        return True


class Scrollback:
    """What a person sees of one session. Applying an event twice is a no-op; the views handed out are detached."""

    def __init__(self, root: SessionID) -> None:
        self.root = root
        self._applied: dict[SessionID, Applied] = {}
        self._slots: list[en.Entry | Slot] = []
        self._cards: dict[ToolCallID, Card] = {}
        self._book = EvidenceBook(root)
        self._live = Live()
        self._head = Head(root)

    # ---- events in ----------------------------------------------------------------------------------------------

    def apply(self, envelope: Envelope) -> bool:
        """Take one event. Returns whether it was new."""
        event = envelope.event
        if type(event) in ev.TRANSIENT:
            return envelope.session_id == self.root and self._live.apply(envelope)
        if envelope.offset is not None:
            applied = self._applied.get(envelope.session_id)
            if applied is None:
                applied = self._applied[envelope.session_id] = Applied()
            if not applied.add(envelope.offset):
                return False
        if envelope.session_id != self.root and type(event) not in _FROM_CHILDREN:
            return False
        self._step(envelope, event)
        return True

    def extend(self, envelopes: Iterable[Envelope]) -> Scrollback:
        """Apply each of `envelopes`; returns itself."""
        for envelope in envelopes:
            self.apply(envelope)
        return self

    def _step(self, envelope: Envelope, event: ev.Event) -> None:
        source = Source(
            session_id=envelope.session_id,
            run_id=envelope.run_id,
            seq=envelope.seq,
            offset=envelope.offset,
            recorded_at=envelope.recorded_at,
        )
        if envelope.session_id == self.root:
            self._head.apply(event, source)
            self._live.durable(envelope)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, source)

    # ---- views out ----------------------------------------------------------------------------------------------

    @property
    def through(self) -> Offset:
        """Every durable event of the session up to this offset was applied: where to go on watching from."""
        applied = self._applied.get(self.root)
        return Offset(applied.through if applied is not None else 0)

    @property
    def entries(self) -> tuple[en.Entry, ...]:
        """All entries, in the order of the events that made them."""
        out: list[en.Entry] = []
        for slot in self._slots:
            if isinstance(slot, (RecordSlot, AskSlot)):
                entry = self._book.standalone(slot)
                if entry is not None:
                    out.append(entry)
            else:
                out.append(slot)
        return tuple(out)

    @property
    def calls(self) -> tuple[CallView, ...]:
        """A view of each call, in the order of acceptance."""
        return tuple(self._view(card) for card in self._cards.values())

    def call(self, tool_call_id: ToolCallID) -> CallView | None:
        """A view of one call."""
        card = self._cards.get(tool_call_id)
        return None if card is None else self._view(card)

    @property
    def call_ids(self) -> tuple[ToolCallID, ...]:
        """The ids of all calls, in the order of acceptance."""
        return tuple(self._cards)

    @property
    def evidence(self) -> tuple[en.EvidenceEntry, ...]:
        """The evidence that stands alone."""
        return tuple(entry for entry in self.entries if isinstance(entry, en.EvidenceEntry))

    @property
    def records(self) -> tuple[ev.HookRecord, ...]:
        """All hook records at their latest revision, attached or standalone."""
        return self._book.records

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        """The questions that wait for an answer."""
        return self._book.open_asks()

    @property
    def session(self) -> SessionView:
        """The head: what the session is and how it stands."""
        return self._head.view(awaiting=self._book.awaiting)

    @property
    def live(self) -> LiveView:
        """What streams just now."""
        return self._live.view()

    def progress(self, tool_call_id: ToolCallID) -> str:
        """The latest news of a running call."""
        return self._live.progress.get(tool_call_id, "")

    def _view(self, card: Card) -> CallView:
        return card.view(self._book.records_of(card), self._book.asks_of(card))

    # ---- steps --------------------------------------------------------------------------------------------------

    def _put(self, slot: en.Entry | Slot | None) -> None:
        if slot is not None:
            self._slots.append(slot)

    def _stray(self, event: ev.Event, source: Source, reason: str) -> None:
        body = encode_event(event).decode("utf-8", "replace")
        self._slots.append(en.UnknownEntry(source=source, kind=kind_of(event), body=body, reason=reason))

    def _card(self, event: Any, source: Source) -> Card | None:
        """The card that a `call.…` event is about, where the event can still change it."""
        card = self._cards.get(event.tool_call_id)
        if card is None:
            self._stray(event, source, "no such call")
        elif card.state == "finished":
            self._stray(event, source, "the call was finished before")
            return None
        return card

    def _created(self, e: ev.SessionCreated, source: Source) -> None:
        of = e.relationship
        if of is not None and of.forked_at is not None:
            self._book.copied(of.copied_from or (of.parent_session_id,), of.forked_at)

    def _prompt(self, e: ev.UserPrompt, source: Source) -> None:
        self._put(en.PromptEntry(source=source, parts=e.parts, prompt_source=e.source))

    def _message(self, e: ev.AssistantMessage, source: Source) -> None:
        if e.text or e.reasoning:
            self._put(en.MessageEntry(source=source, turn=e.turn, text=e.text, reasoning=e.reasoning))

    def _turn_rejected(self, e: ev.TurnRejected, source: Source) -> None:
        text = f"turn {e.turn}, attempt {e.attempt} was rejected: {e.reason}; nothing of it was recorded or run"
        self._put(en.NoticeEntry(source=source, severity="warning", code="turn_rejected", text=text))

    def _run_finished(self, e: ev.RunFinished, source: Source) -> None:
        self._put(en.RunEntry(source=source, stop_reason=e.stop_reason, usage=e.usage, turns=e.turns, error=e.error))

    def _accepted(self, e: ev.CallAccepted, source: Source) -> None:
        if e.tool_call_id in self._cards:
            self._stray(e, source, "the call was accepted before")
            return
        card = self._cards[e.tool_call_id] = Card(e, self._book.origin_of(source), source)
        self._put(en.ToolCard(source=source, tool_call_id=e.tool_call_id))
        self._book.card_opened(card)

    def _effective(self, e: ev.CallEffective, source: Source) -> None:
        if card := self._card(e, source):
            card.effective, card.digest = e.arguments, e.arguments_digest

    def _started(self, e: ev.CallStarted, source: Source) -> None:
        if card := self._card(e, source):
            card.state, card.attempt, card.started_at = "started", e.attempt, source.recorded_at

    def _held(self, e: ev.CallHeld, source: Source) -> None:
        if card := self._card(e, source):
            card.state, card.held_by, card.held_size = "held", e.review_id, e.size

    def _finished(self, e: ev.CallFinished, source: Source) -> None:
        if card := self._card(e, source):
            card.state, card.status, card.executed = "finished", e.status, e.executed
            card.result, card.duration_ms, card.finished_at = e.parts, e.duration_ms, source.recorded_at

    def _hook(self, e: ev.HookRecorded, source: Source) -> None:
        call = e.record.tool_call_id
        self._put(self._book.record(e.record, source, self._cards.get(call) if call is not None else None))

    def _ask_opened(self, e: ev.AskOpened, source: Source) -> None:
        card = self._cards.get(e.ask.tool_call_id)
        self._put(self._book.ask(e.ask, source, card))
        self._ask_state(card)

    def _ask_withdrawn(self, e: ev.AskWithdrawn, source: Source) -> None:
        self._put(self._book.withdrawal(e, source))
        self._ask_state(self._cards.get(e.tool_call_id))

    def _ask_settled(self, e: ev.AskSettled, source: Source) -> None:
        self._put(self._book.receipt(e.receipt, source))
        self._ask_state(self._cards.get(e.receipt.tool_call_id))

    def _ask_state(self, card: Card | None) -> None:
        if card is not None and card.state in ("accepted", "asked"):
            card.state = "asked" if self._book.has_open_ask(card) else "accepted"

    def _delegation_started(self, e: ev.DelegationStarted, source: Source) -> None:
        if card := self._cards.get(e.tool_call_id):
            card.children[e.child_session_id] = ChildView(
                child_session_id=e.child_session_id,
                session_kind=e.session_kind,
                member=e.member,
                preview=e.preview,
            )
        else:
            self._stray(e, source, "no such call")

    def _delegation_finished(self, e: ev.DelegationFinished, source: Source) -> None:
        card = self._cards.get(e.tool_call_id)
        child = card.children.get(e.child_session_id) if card is not None else None
        if card is None or child is None:
            self._stray(e, source, "no such delegation")
            return
        card.children[e.child_session_id] = ChildView(
            child_session_id=child.child_session_id,
            session_kind=child.session_kind,
            member=child.member,
            preview=e.preview,
            stop_reason=e.stop_reason,
        )

    def _compacted(self, e: ev.CompactionDone, source: Source) -> None:
        self._put(
            en.CompactionEntry(
                source=source,
                summary=e.summary,
                replaced_from=e.replaced_from,
                replaced_through=e.replaced_through,
                trigger=e.trigger,
            )
        )

    def _grant(self, e: ev.GrantChanged, source: Source) -> None:
        word = "revoked" if e.revoked else "learned"
        text = f"{word}: {e.rule} ({e.scope}), by {e.decided_by.name}"
        self._put(en.NoticeEntry(source=source, severity="notable", code="grant_changed", text=text))

    def _acknowledged(self, e: ev.ReviewAcknowledged, source: Source) -> None:
        text = f"review {e.review_id} was seen at revision {e.revision}, by {e.decided_by.name}"
        self._put(en.NoticeEntry(source=source, severity="benign", code="review_acknowledged", text=text))

    def _notice(self, e: ev.Notice, source: Source) -> None:
        self._put(en.NoticeEntry(source=source, severity=e.severity, code=e.code, text=e.text))

    def _unknown(self, e: ev.UnknownEvent, source: Source) -> None:
        self._stray(e, source, "not known to this version")


_FROM_CHILDREN: frozenset[type[ev.Event]] = frozenset({ev.HookRecorded, ev.AskOpened, ev.AskWithdrawn, ev.AskSettled})
"""What is shown of another session's events: as standalone evidence. The rest is in that session's scrollback."""

_HANDLERS: dict[type[ev.Event], Callable[[Scrollback, Any, Source], None]] = {
    ev.SessionCreated: Scrollback._created,
    ev.UserPrompt: Scrollback._prompt,
    ev.AssistantMessage: Scrollback._message,
    ev.TurnRejected: Scrollback._turn_rejected,
    ev.RunFinished: Scrollback._run_finished,
    ev.CallAccepted: Scrollback._accepted,
    ev.CallEffective: Scrollback._effective,
    ev.CallStarted: Scrollback._started,
    ev.CallHeld: Scrollback._held,
    ev.CallFinished: Scrollback._finished,
    ev.HookRecorded: Scrollback._hook,
    ev.AskOpened: Scrollback._ask_opened,
    ev.AskWithdrawn: Scrollback._ask_withdrawn,
    ev.AskSettled: Scrollback._ask_settled,
    ev.DelegationStarted: Scrollback._delegation_started,
    ev.DelegationFinished: Scrollback._delegation_finished,
    ev.CompactionDone: Scrollback._compacted,
    ev.GrantChanged: Scrollback._grant,
    ev.ReviewAcknowledged: Scrollback._acknowledged,
    ev.Notice: Scrollback._notice,
    ev.UnknownEvent: Scrollback._unknown,
}
