"""What the evidence store holds: one record or ask, where it stands, and what joined it."""

from __future__ import annotations

import msgspec

from counterfoil.events import Ask, HookRecord, Receipt, Severity
from counterfoil.identity import SessionID
from counterfoil.scrollback.cards import Card
from counterfoil.scrollback.entries import EvidenceEntry
from counterfoil.scrollback.views import AskView, EntryKey, Source


class Cell:
    """One piece of evidence: on its card, or at a place of its own."""

    __slots__ = ("card", "place", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.card: Card | None = None
        self.place: EntryKey | None = None


class RecordCell(Cell):
    """One hook record at its latest revision."""

    __slots__ = ("record",)

    def __init__(self, record: HookRecord, source: Source) -> None:
        super().__init__(source)
        self.record = record

    @property
    def origin(self) -> SessionID:
        """The session that it comes from."""
        return self.record.origin_session_id

    @property
    def severity(self) -> Severity:
        """As the record says."""
        return self.record.severity


class AskCell(Cell):
    """One ask as far as it is known."""

    __slots__ = ("ask", "receipt", "withdrawn")

    def __init__(self, ask: Ask, source: Source) -> None:
        super().__init__(source)
        self.ask = ask
        self.receipt: Receipt | None = None
        self.withdrawn: str | None = None

    @property
    def origin(self) -> SessionID:
        """The session that asks."""
        return self.ask.origin_session_id

    @property
    def severity(self) -> Severity:
        """As its view says."""
        return AskView(ask=self.ask, receipt=self.receipt).severity

    @property
    def open(self) -> bool:
        """Whether it waits for an answer."""
        return self.receipt is None and self.withdrawn is None

    def view(self) -> AskView:
        """A detached view."""
        view = AskView(ask=self.ask, receipt=self.receipt, opened_at=self.source.recorded_at).detached()
        if self.receipt is not None:
            return msgspec.structs.replace(view, state="settled")
        if self.withdrawn is not None:
            return msgspec.structs.replace(view, state="withdrawn", withdrawn_reason=self.withdrawn)
        return view


Held = RecordCell | AskCell
Standing = EvidenceEntry | RecordCell | AskCell
"""What stands at a place of evidence: for good, or as long as no card has it."""
