"""Sheets: lines of text to be read and scrolled, on a screen of their own or in an overlay."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Label

from counterfoil.scrollback import visible_line
from counterfoil.tui.paint.card import Look
from counterfoil.tui.paint.palette import palette
from counterfoil.tui.view import GUTTER, ScrollbackView

Paint = Callable[[Look], list[Strip]]


class _One:
    """A source of one entry."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint

    def count(self) -> int:
        return 1

    def key(self, position: int) -> Hashable:
        return 0

    def position(self, key: Hashable) -> int | None:
        return 0

    def version(self, position: int) -> Hashable:
        return 0

    def hidden(self, position: int, *, all_notices: bool) -> bool:
        return False

    def paint(self, position: int, look: Look) -> list[Strip]:
        return self._paint(look) if position == 0 else []


class Sheet(ScrollbackView, can_focus=False):
    """Lines from their beginning. Whoever has the focus scrolls it."""

    TAIL_NOTE = False

    def __init__(self, paint: Paint, *, id: str | None = None) -> None:
        super().__init__(_One(paint), id=id)
        self._paint = paint
        self.following = False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        look = Look(width=max(1, width - GUTTER - 1), palette=palette(dark=self.dark))
        return len(self._paint(look))

    def on_mount(self) -> None:
        """Take the colours of the theme."""
        self.dark = self.app.current_theme.dark


class SheetScreen(ModalScreen[None]):
    """One sheet on the whole screen."""

    DEFAULT_CSS = """
    SheetScreen { background: $background; }
    SheetScreen Label { width: 1fr; background: $panel; padding: 0 1; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("home", "top", "to the beginning"),
        Binding("end", "end", "to the end"),
    ]

    def __init__(self, title: str, paint: Paint) -> None:
        super().__init__()
        self._title = title
        self._paint = paint

    def compose(self) -> ComposeResult:
        yield Label(visible_line(self._title), markup=False)
        yield Sheet(self._paint)
        yield Label("esc back · ↑↓ pgup pgdn scroll", markup=False)

    @property
    def _sheet(self) -> Sheet:
        return self.query_one(Sheet)

    def action_scroll(self, lines: int) -> None:
        """Some lines up or down."""
        self._sheet.move(lines)

    def action_page(self, direction: int) -> None:
        """A screen up or down."""
        self._sheet.action_page(direction)

    def action_top(self) -> None:
        """To the beginning."""
        self._sheet.action_top()

    def action_end(self) -> None:
        """To the end."""
        self._sheet.action_tail()
