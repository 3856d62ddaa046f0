"""The reducer: one pure step per event, the same for a live stream, a replay of the log, and a mix of both."""

from __future__ import annotations

from collections.abc import Iterable

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import Offset, SessionID, ToolCallID
from counterfoil.scrollback import entries as en
from counterfoil.scrollback.applied import Applied
from counterfoil.scrollback.cards import Card
from counterfoil.scrollback.head import Head
from counterfoil.scrollback.held import AskCell, RecordCell
from counterfoil.scrollback.live import Live
from counterfoil.scrollback.order import NOTHING, Change
from counterfoil.scrollback.steps import FROM_CHILDREN, STEPS, Board, Placed
from counterfoil.scrollback.views import AskView, EntryKey, LiveView, SessionView, Source, ToolSnapshot
from counterfoil.scrollback.visibility import Notices


class Scrollback:
    """What a person sees of one session. Applying an event twice is a no-op; the views handed out are detached.

    A client that redraws goes by places: `len(seen)` of them, each with a key, a version and an entry, or empty.
    `apply`, `key`, `position`, `version` and `entry` cost the same however long the session is.
    """

    def __init__(self, root: SessionID) -> None:
        self.root = root
        self._applied = Applied()
        self._board = Board(root)
        self._order = self._board.order
        self._book = self._board.book
        self._cards = self._board.cards
        self._live = Live()
        self._head = Head(root)
        self._awaiting = False

    # ---- events in ----------------------------------------------------------------------------------------------

    def apply(self, envelope: Envelope) -> Change:
        """Take one event. What it changed: false where it was applied before."""
        event = envelope.event
        own = envelope.session_id == self.root
        if type(event) in ev.TRANSIENT:
            return self._transient(envelope) if own else NOTHING
        if not self._applied.add(envelope) or not (own or type(event) in FROM_CHILDREN):
            return NOTHING
        source = Source(
            session_id=envelope.session_id,
            run_id=envelope.run_id,
            seq=envelope.seq,
            offset=envelope.offset,
            recorded_at=envelope.recorded_at,
        )
        head = live = False
        if own:
            head = self._head.apply(event, source)
            live = self._live.durable(envelope)
        step = STEPS.get(type(event))
        if step is not None:
            step(self._board, event, source)
        if type(event) in _ASK:
            was, self._awaiting = self._awaiting, self._book.awaiting
            head = head or was != self._awaiting
        if type(event) is ev.RunFinished and own:
            self._run_over()
        return self._order.taken(live=live, head=head)

    def _transient(self, envelope: Envelope) -> Change:
        if not self._live.apply(envelope):
            return NOTHING
        event = envelope.event
        if isinstance(event, (ev.CallProgress, ev.DelegationProgress)):
            self._touch_call(event.tool_call_id)
            return self._order.taken(live=False, head=False)
        return self._order.taken(live=True, head=False)

    def _touch_call(self, tool_call_id: ToolCallID) -> None:
        card = self._cards.get(tool_call_id)
        if card is not None:
            self._order.touch(card.key)

    def _run_over(self) -> None:
        """Nothing runs any more: what cards showed of running calls goes."""
        for call in self._live.progress:
            self._touch_call(call)
        for child in self._live.previews:
            self._board.children.changed(child)
        self._live.progress.clear()
        self._live.previews.clear()

    def extend(self, envelopes: Iterable[Envelope]) -> Scrollback:
        """Apply each of `envelopes`; returns itself."""
        for envelope in envelopes:
            self.apply(envelope)
        return self

    # ---- places -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many places there are, the empty ones too. It only grows, and positions stay."""
        return len(self._order)

    def __bool__(self) -> bool:
        return True

    def key(self, position: int) -> EntryKey:
        """The key of the place at `position`."""
        return self._order.key(position)

    def position(self, key: EntryKey) -> int | None:
        """Where the place with `key` is."""
        return self._order.position(key)

    def place_of(self, tool_call_id: ToolCallID) -> int | None:
        """Where the card of a call is."""
        return self._order.position(EntryKey(tool_call_id)) if tool_call_id in self._cards else None

    def version(self, position: int) -> int:
        """Another number after each change of what is shown there: lines may be kept by key, version and width."""
        return self._order.version(position)

    def entry(self, position: int) -> en.Entry | None:
        """What stands at `position`: nothing where evidence stood until its card opened."""
        item = self._order.item(position)
        return None if item is None else self._entry(item)

    def _entry(self, item: Placed) -> en.Entry:
        if isinstance(item, Card):
            return item.entry()
        if isinstance(item, (RecordCell, AskCell)):
            return self._book.standalone(item)
        return item.detached() if isinstance(item, en.EvidenceEntry) else item

    # ---- views out ----------------------------------------------------------------------------------------------

    @property
    def through(self) -> Offset:
        """Every durable event of the session up to this offset was applied: where to go on watching from."""
        return Offset(self._applied.through(self.root))

    @property
    def entries(self) -> tuple[en.Entry, ...]:
        """All entries, in the order of the events that made them."""
        return tuple(self._entry(item) for item in self._order.items())

    @property
    def calls(self) -> tuple[ToolSnapshot, ...]:
        """A snapshot of each call, in the order of acceptance."""
        return tuple(self._snapshot(card) for card in self._cards.values())

    def call(self, tool_call_id: ToolCallID) -> ToolSnapshot | None:
        """A snapshot of one call: of a subagent, a team or branches where it starts those."""
        card = self._cards.get(tool_call_id)
        return None if card is None else self._snapshot(card)

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

    def preview(self, child: SessionID) -> str:
        """The latest news of a child that runs; once it ended, they are in its view."""
        return self._live.previews.get(child, "")

    @property
    def counts(self) -> dict[ev.Severity, int]:
        """How many records, notices and other pieces of standing evidence there are of each severity."""
        return {severity: count for severity, count in self._book.counts.items() if count}

    def hidden(self, notices: Notices) -> int:
        """How many of them are not shown under this setting. None is lost: the setting brings them back."""
        return self._book.counts["benign"] if notices == "important" else 0

    def _snapshot(self, card: Card) -> ToolSnapshot:
        return card.view(self._book.records_of(card), self._book.asks_of(card), self._board.children.views(card))


_ASK = frozenset({ev.AskOpened, ev.AskWithdrawn, ev.AskSettled, ev.CallAccepted, ev.DelegationSurfaced})
"""What may change whether the session waits for an answer: a call too, whose question came first."""
