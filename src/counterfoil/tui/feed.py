"""The source of the scrollback's lines: one reading of a session's events, with keys and versions for painting."""

from __future__ import annotations

from collections.abc import Hashable

from textual.strip import Strip

from counterfoil import events as ev
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.scrollback import (
    AskView,
    CallView,
    Entry,
    EvidenceEntry,
    MessageEntry,
    NoticeEntry,
    Scrollback,
    ToolCard,
    visible_line,
)
from counterfoil.tui.paint.card import Look, card
from counterfoil.tui.paint.entry import PAINTERS, message, reasoning
from counterfoil.tui.paint.flow import BLANK, one_line, safe, styled
from counterfoil.tui.paint.markdown import MarkdownLines


class Feed:
    """What one session's scrollback shows. Events go in by `apply`; lines come out for the positions that are seen."""

    def __init__(self, session: SessionID) -> None:
        self.seen = Scrollback(session)
        self._stale = True
        self._entries: tuple[Entry, ...] = ()
        self._positions: dict[Hashable, int] = {}
        self._versions: dict[ToolCallID, int] = {}
        self._flow: MarkdownLines | None = None
        self._flow_look: tuple[int, bool] = (0, True)

    def apply(self, envelope: ev.Envelope) -> bool:
        """Take one event. Returns whether anything changed."""
        changed = bool(self.seen.apply(envelope))
        event = envelope.event
        if changed and type(event) not in ev.TRANSIENT:
            self._stale = True
        call = _call_of(event)
        if call is not None:
            self._versions[call] = self._versions.get(call, 0) + 1
        return changed

    # ---- what the view asks -------------------------------------------------------------------------------------

    def entries(self) -> tuple[Entry, ...]:
        """All entries now."""
        if self._stale:
            self._stale = False
            self._entries = self.seen.entries
            self._positions = {key_of(entry): at for at, entry in enumerate(self._entries)}
        return self._entries

    def count(self) -> int:
        return len(self.entries())

    def key(self, position: int) -> Hashable:
        return key_of(self.entries()[position])

    def position(self, key: Hashable) -> int | None:
        self.entries()
        return self._positions.get(key)

    def version(self, position: int) -> Hashable:
        entry = self.entries()[position]
        if isinstance(entry, ToolCard):
            return self._versions.get(entry.tool_call_id, 0)
        if isinstance(entry, EvidenceEntry):
            record, ask = entry.record, entry.ask
            return (record.revision if record is not None else 0, ask.state if ask is not None else "")
        return 0

    def hidden(self, position: int, *, all_notices: bool) -> bool:
        entry = self.entries()[position]
        benign = isinstance(entry, (NoticeEntry, EvidenceEntry)) and entry.severity == "benign"
        return benign and not all_notices

    def paint(self, position: int, look: Look) -> list[Strip]:
        entries = self.entries()
        if position >= len(entries):
            return self._streaming(look)
        entry = entries[position]
        if isinstance(entry, ToolCard):
            view = self.seen.call(entry.tool_call_id)
            assert view is not None
            lines = card(view, look, self.seen.progress(entry.tool_call_id))
            after = entries[position + 1] if position + 1 < len(entries) else None
            return lines if isinstance(after, ToolCard) or look.level else [*lines, BLANK] if after else lines
        if isinstance(entry, MessageEntry):
            return message(entry, look, self._finished_flow(entry, look))
        return PAINTERS[type(entry)](entry, look)

    def _finished_flow(self, entry: MessageEntry, look: Look) -> MarkdownLines | None:
        """What streamed, where it became this message: its lines are painted already."""
        flow = self._flow
        if flow is None or self._flow_look != (look.width, look.palette.dark) or not flow.painted(safe(entry.text)):
            return None
        self._flow = None
        return flow

    def _streaming(self, look: Look) -> list[Strip]:
        live = self.seen.live
        lines = reasoning(live.reasoning, look) if not live.text else []
        if live.text:
            if self._flow is None or self._flow_look != (look.width, look.palette.dark):
                self._flow = MarkdownLines(look.width, look.palette)
                self._flow_look = (look.width, look.palette.dark)
            lines += self._flow.update(safe(live.text))
        for tool, arguments in live.drafts:
            text = f"… {visible_line(tool) or 'a call'} {visible_line(arguments[-look.width :])}"
            lines.append(one_line(styled((text, look.palette["muted"])), look.width))
        return lines

    # ---- what screens ask ---------------------------------------------------------------------------------------

    @property
    def open_asks(self) -> tuple[AskView, ...]:
        """The questions that wait for an answer and were put to somebody."""
        return tuple(view for view in self.seen.open_asks if not view.ask.deferred)

    @property
    def calls(self) -> tuple[CallView, ...]:
        """A view of each call."""
        return self.seen.calls

    def hidden_count(self) -> int:
        """How many entries and attached records are hidden as benign."""
        entries = sum(self.hidden(at, all_notices=False) for at in range(self.count()))
        standalone = {e.record.hook_id for e in self.seen.evidence if e.record is not None}
        records = (r for r in self.seen.records if r.severity == "benign" and r.hook_id not in standalone)
        return entries + sum(1 for _ in records)


def key_of(entry: Entry) -> Hashable:
    """What names an entry for good: its call, or the event that made it."""
    if isinstance(entry, ToolCard):
        return entry.tool_call_id
    source = entry.source
    return (type(entry).__name__, source.session_id, source.offset, source.run_id, source.seq)


def _call_of(event: ev.Event) -> ToolCallID | None:
    """The call whose card an event may change."""
    if isinstance(event, ev.HookRecorded):
        return event.record.tool_call_id
    if isinstance(event, ev.AskOpened):
        return event.ask.tool_call_id
    if isinstance(event, ev.AskSettled):
        return event.receipt.tool_call_id
    call: ToolCallID | None = getattr(event, "tool_call_id", None)
    return call
