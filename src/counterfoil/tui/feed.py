"""The source of the scrollback's lines: one reading of a session's events, with keys and versions for painting."""

from __future__ import annotations

from collections.abc import Hashable

from textual.strip import Strip

from counterfoil import events as ev
from counterfoil.identity import SessionID
from counterfoil.scrollback import (
    AskView,
    CallView,
    Change,
    EntryKey,
    MessageEntry,
    Scrollback,
    ToolCard,
    entry_shown,
    visible_line,
)
from counterfoil.tui.paint.card import Look, card
from counterfoil.tui.paint.entry import PAINTERS, message, reasoning
from counterfoil.tui.paint.flow import BLANK, one_line, styled
from counterfoil.tui.paint.markdown import MarkdownLines


class Feed:
    """What one session's scrollback shows. Events go in by `apply`; lines come out for the places that are seen."""

    def __init__(self, session: SessionID) -> None:
        self.seen = Scrollback(session)
        self._flow: MarkdownLines | None = None
        self._flow_look: tuple[int, bool] = (0, True)

    def apply(self, envelope: ev.Envelope) -> Change:
        """Take one event. What it changed; false where nothing is new."""
        return self.seen.apply(envelope)

    # ---- what the view asks -------------------------------------------------------------------------------------

    def count(self) -> int:
        return len(self.seen)

    def key(self, position: int) -> Hashable:
        return self.seen.key(position)

    def position(self, key: Hashable) -> int | None:
        return self.seen.position(EntryKey(str(key)))

    def version(self, position: int) -> Hashable:
        return (self.seen.version(position), self._apart(position))

    def hidden(self, position: int, *, all_notices: bool) -> bool:
        entry = self.seen.entry(position)
        return entry is None or not entry_shown(entry, "all" if all_notices else "important")

    def _apart(self, position: int) -> bool:
        """Whether a blank line stands after a card: where something else follows."""
        for at in range(position + 1, min(position + 8, len(self.seen))):
            after = self.seen.entry(at)
            if after is not None and entry_shown(after, "important"):
                return not isinstance(after, ToolCard)
        return False

    def paint(self, position: int, look: Look) -> list[Strip]:
        if position >= len(self.seen):
            return self._streaming(look)
        entry = self.seen.entry(position)
        if entry is None:
            return []
        if isinstance(entry, ToolCard):
            view = self.seen.call(entry.tool_call_id)
            assert view is not None
            lines = card(view, look, self.seen.progress(entry.tool_call_id))
            return [*lines, BLANK] if self._apart(position) and not look.level else lines
        if isinstance(entry, MessageEntry):
            return message(entry, look, self._finished_flow(entry, look))
        return PAINTERS[type(entry)](entry, look)

    def _finished_flow(self, entry: MessageEntry, look: Look) -> MarkdownLines | None:
        """What streamed, where it became this message: its lines are painted already."""
        flow = self._flow
        if flow is None or self._flow_look != (look.width, look.palette.dark) or not flow.painted(entry.text):
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
            lines += self._flow.update(live.text)
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
        """How many pieces of evidence are hidden as benign."""
        return self.seen.hidden("important")
