"""The virtual scrollback: only what is seen is painted, however much there is.

Where the person looks is kept as an entry and a line of it, never as a sum of heights: nothing that happens above or
below costs anything, a resize wraps only what is seen, and what is read stays where it is.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Protocol

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from counterfoil.tui.lines import LineCache
from counterfoil.tui.paint.card import Level, Look
from counterfoil.tui.paint.palette import palette

GUTTER = 2
WHEEL = 3


class Source(Protocol):
    """What the scrollback shows: entries by position, each with a key that stays and a version."""

    def count(self) -> int:
        """How many entries there are. What streams stands at the position after the last one."""
        ...

    def key(self, position: int) -> Hashable:
        """The key of the entry at `position`."""
        ...

    def position(self, key: Hashable) -> int | None:
        """Where the entry with `key` stands now."""
        ...

    def version(self, position: int) -> Hashable:
        """Another one after each change of what is painted of the entry."""
        ...

    def hidden(self, position: int, *, all_notices: bool) -> bool:
        """Whether the entry isn't shown, by the person's choice."""
        ...

    def paint(self, position: int, look: Look) -> list[Strip]:
        """The lines of the entry, or of what streams."""
        ...


class Place(msgspec.Struct, frozen=True):
    """A line of an entry."""

    position: int
    line: int


class Row(msgspec.Struct, frozen=True):
    """A line of the screen: whose it is, and what stands there."""

    position: int
    strip: Strip


class ScrollbackView(Widget, can_focus=True):
    """The entries of one session."""

    DEFAULT_CSS = """
    ScrollbackView { height: 1fr; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "previous entry", show=False),
        Binding("down,j", "select(1)", "next entry", show=False),
        Binding("enter,space", "open", "open, whole, close", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home,g", "top", "to the beginning", show=False),
        Binding("end,G", "tail", "to the end, and follow", show=False),
        Binding("c", "copy", "copy the entry", show=False),
    ]
    TAIL_NOTE: ClassVar[bool] = True
    """Whether the last line says what is below the screen."""
    dark: reactive[bool] = reactive(True, init=False)
    all_notices: reactive[bool] = reactive(False, init=False)

    class Opened(Message):
        """The person opened or closed an entry."""

        def __init__(self, key: Hashable) -> None:
            super().__init__()
            self.key = key

    def __init__(self, source: Source, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._source = source
        self.cache = LineCache()
        self.following = True
        self.selected: Hashable | None = None
        self._top = Place(0, 0)
        self._left_at = 0
        self._levels: dict[Hashable, Level] = {}
        self._rows: list[Row] | None = None
        self._streaming: list[Strip] | None = None
        self._thumb = range(0)
        self._base = Style()

    # ---- what is shown ------------------------------------------------------------------------------------------

    def show(self, source: Source) -> None:
        """Show another session, from its end."""
        self._source, self.cache = source, LineCache()
        self._levels, self.selected = {}, None
        self.following, self._top = True, Place(0, 0)
        self.changed()

    def changed(self) -> None:
        """Something of the source changed: look again at what is seen."""
        self._rows = self._streaming = None
        self.refresh()

    def watch_dark(self) -> None:
        """Paint in the colours of the other theme."""
        self.changed()

    def watch_all_notices(self) -> None:
        """Show or hide what is benign."""
        self.changed()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew what is seen; the rest when it is seen."""
        self.changed()

    @property
    def unseen(self) -> int:
        """How many entries came since the person left the end."""
        return 0 if self.following else max(0, self._source.count() - self._left_at)

    def _lines(self, position: int) -> list[Strip]:
        source = self._source
        count = source.count()
        if position < count and source.hidden(position, all_notices=self.all_notices):
            return []
        width = max(1, self.size.width - GUTTER - 1)
        key = source.key(position) if position < count else "streaming"
        level = self._levels.get(key, 0)
        look = Look(width=width, palette=palette(dark=self.dark), level=level, all_notices=self.all_notices)
        if position >= count:
            if self._streaming is None:
                self._streaming = source.paint(position, look)
            return self._streaming
        mark = (source.version(position), width, level, self.dark, self.all_notices)
        return self.cache.get(key, mark, lambda: source.paint(position, look))

    def rows(self) -> list[Row]:
        """The lines of the screen, as they stand now."""
        if self._rows is None:
            if self.following:
                self._top = self._up_from(Place(self._source.count() + 1, 0), self.size.height)
            self._rows = self._down_from(self._top, self.size.height)
            if not self.following and len(self._rows) < self.size.height:
                self._top = self._up_from(Place(self._source.count() + 1, 0), self.size.height)
                self._rows = self._down_from(self._top, self.size.height)
            self._thumb, self._base = self._measured(self._rows), self.rich_style
        return self._rows

    def _up_from(self, place: Place, lines: int) -> Place:
        """The place so many lines above `place`, or the beginning."""
        position, above = place.position, place.line
        if above >= lines:
            return Place(position, above - lines)
        lines -= above
        while position > 0:
            position -= 1
            height = len(self._lines(position))
            if height >= lines:
                return Place(position, height - lines)
            lines -= height
        return Place(0, 0)

    def _down_from(self, place: Place, lines: int) -> list[Row]:
        """The rows of so many lines from `place` on, or of as many as there are."""
        rows: list[Row] = []
        position, skip = place.position, place.line
        while len(rows) < lines and position <= self._source.count():
            for strip in self._lines(position)[skip : skip + lines - len(rows)]:
                rows.append(Row(position, strip))
            position, skip = position + 1, 0
        return rows

    # ---- painting -----------------------------------------------------------------------------------------------

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def render_line(self, y: int) -> Strip:
        rows, width = self.rows(), self.size.width
        if y >= len(rows):
            return Strip.blank(width, self._base)
        row = rows[y]
        colours = palette(dark=self.dark)
        chosen = self.selected is not None and self._key(row.position) == self.selected
        mark = Segment("▌ " if chosen else "  ", colours["accent" if self.has_focus else "muted"])
        strip = Strip([mark, *row.strip]).extend_cell_length(width - 1).crop(0, width - 1)
        if y == self.size.height - 1 and not self.following and self.TAIL_NOTE:
            strip = self._with_tail_note(strip, width - 1)
        bar = Segment("┃" if y in self._thumb else " ", colours["muted"])
        return Strip([*strip, bar]).apply_style(self._base)

    def _with_tail_note(self, strip: Strip, width: int) -> Strip:
        text = f" ↓ {self.unseen} new " if self.unseen else " ↓ end "
        at = max(0, width - cell_len(text))
        style = palette(dark=self.dark)["accent"].chain(self._base)
        note = Segment(text, style + _REVERSE)
        return Strip([*strip.crop(0, at), note])

    def _measured(self, rows: list[Row]) -> range:
        """The lines beside which a mark says where in the whole the screen stands, by entries."""
        height, count = self.size.height, self._source.count()
        if not rows or self._fits():
            return range(0)
        first, last = rows[0].position / (count + 1), (rows[-1].position + 1) / (count + 1)
        return range(int(first * height), max(int(first * height) + 1, round(last * height)))

    def _key(self, position: int) -> Hashable | None:
        return self._source.key(position) if position < self._source.count() else None

    # ---- moving -------------------------------------------------------------------------------------------------

    def move(self, lines: int) -> None:
        """Scroll by so many lines; what is below the end is followed."""
        self.rows()
        if lines < 0:
            if self.following:
                self._left_at = self._source.count()
            self._top = self._up_from(self._top, -lines)
            self.following = self._fits()
        elif not self.following:
            below = self._down_from(self._top, self.size.height + lines + 1)
            if len(below) <= self.size.height + lines:
                self.following = True
            else:
                self._top = self._place_at(self._top, lines)
        self.changed()

    def _fits(self) -> bool:
        """Whether all that is there fits on the screen."""
        return self._top == Place(0, 0) and len(self._down_from(self._top, self.size.height + 1)) <= self.size.height

    def _place_at(self, place: Place, lines: int) -> Place:
        position, line = place.position, place.line + lines
        while position <= self._source.count() and line >= (height := len(self._lines(position))):
            position, line = position + 1, line - height
        return Place(position, line)

    def action_page(self, direction: int) -> None:
        """A screen up or down, less two lines."""
        self.move(direction * max(1, self.size.height - 2))

    def action_top(self) -> None:
        """To the beginning."""
        if self.following:
            self._left_at = self._source.count()
        self._top, self.following = Place(0, 0), False
        self.following = self._fits()
        self.changed()

    def action_tail(self) -> None:
        """To the end, and follow what comes."""
        self.following = True
        self.changed()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        event.stop()
        self.move(-WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        event.stop()
        self.move(WHEEL)

    # ---- selecting ----------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Select the entry under the mouse and open it; the note of new entries goes to the end."""
        rows = self.rows()
        if event.y == self.size.height - 1 and not self.following and event.x > self.size.width - 14:
            self.action_tail()
        elif event.y < len(rows) and (key := self._key(rows[event.y].position)) is not None:
            self.selected = key
            self.action_open()

    def action_select(self, step: int) -> None:
        """Select the entry before or after, and bring it to the screen."""
        rows = self.rows()
        if not rows:
            return
        at = self._source.position(self.selected) if self.selected is not None else None
        if at is None:
            at = rows[-1].position + 1 if step < 0 else rows[0].position - 1
        at += step
        while 0 <= at < self._source.count() and not self._lines(at):
            at += step
        if 0 <= at < self._source.count():
            self.choose(self._source.key(at))
        elif step > 0:
            self.action_tail()

    def choose(self, key: Hashable) -> None:
        """Select the entry with `key` and bring it to the screen."""
        at = self._source.position(key)
        if at is None:
            return
        self.selected = key
        rows = self.rows()
        height = len(self._lines(at))
        seen = sum(1 for row in rows if row.position == at)
        if seen < min(height, self.size.height):
            self._bring(at, height, above=bool(rows) and at <= rows[0].position)
        self.changed()

    def _bring(self, at: int, height: int, *, above: bool) -> None:
        if self.following:
            self._left_at = self._source.count()
        self.following = False
        if above or height >= self.size.height:
            self._top = Place(at, 0)
        else:
            self._top = self._up_from(Place(at, height), self.size.height)
        if len(self._down_from(self._top, self.size.height + 1)) <= self.size.height:
            self.following = True

    def action_open(self) -> None:
        """Open the selected entry, then show it whole, then close it."""
        at = self._source.position(self.selected) if self.selected is not None else None
        if at is None or self.selected is None:
            return
        level = self._levels.get(self.selected, 0)
        self._levels[self.selected] = _NEXT[level] if level != 1 or self._is_folded(at) else 0
        if self.following:
            self._left_at = self._source.count()
            self.following = False
        self.changed()
        self.choose(self.selected)
        self.post_message(self.Opened(self.selected))

    def _is_folded(self, at: int) -> bool:
        return any("more lines (enter" in strip.text for strip in self._lines(at))

    def action_copy(self) -> None:
        """Copy the text of the selected entry."""
        at = self._source.position(self.selected) if self.selected is not None else None
        if at is not None:
            self.app.copy_to_clipboard("\n".join(strip.text.rstrip() for strip in self._lines(at)))


_NEXT: dict[Level, Level] = {0: 1, 1: 2, 2: 0}
_REVERSE = Style(reverse=True)
