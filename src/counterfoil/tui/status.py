"""The status line: session, model, mode, tokens and cost, context used, open asks, connection."""

from __future__ import annotations

import msgspec
from rich.cells import cell_len
from rich.text import Text
from textual.reactive import reactive
from textual.widget import Widget

from counterfoil.scrollback import visible_line
from counterfoil.tui import words
from counterfoil.tui.paint.palette import Name, palette


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the status line says."""

    session: str = ""
    title: str = ""
    model: str = ""
    mode: str = "default"
    state: str = "idle"
    connection: str = "embedded"
    tokens: int = 0
    cost: float | None = None
    context: float | None = None
    asks: int = 0
    hidden: int = 0
    all_notices: bool = False


class StatusLine(Widget):
    """One line; what has no room is left out, the least important first."""

    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; background: $panel; padding: 0 1; }
    """
    standing: reactive[Standing] = reactive(Standing())

    def render(self) -> Text:
        colours = palette(dark=self.app.current_theme.dark)
        text = Text(no_wrap=True, end="")
        for piece, colour in pieces(self.standing, max(1, self.size.width)):
            if text.plain:
                text.append(" · ", colours["muted"])
            text.append(piece, colours[colour])
        return text


def pieces(s: Standing, width: int) -> list[tuple[str, Name]]:
    """What is said in `width` cells, in order."""
    every: list[tuple[int, str, Name]] = []
    if s.asks:
        every.append((0, f"{s.asks} ask{'s' if s.asks > 1 else ''} open", "bad"))
    every.append((1, s.state, "accent" if s.state == "running" else "text"))
    every.append((2, f"mode {s.mode}", "warn" if s.mode == "bypass" else "text"))
    every.append((3, visible_line(s.model), "text"))
    if s.all_notices:
        every.append((5, "all notices", "muted"))
    elif s.hidden:
        every.append((9, f"{s.hidden} hidden (F9)", "muted"))
    if s.context is not None:
        every.append((6, f"context {s.context:.0%}", "warn" if s.context > 0.8 else "muted"))
    every.append((7, f"{words.amount(s.tokens)} tokens", "muted"))
    if s.cost is not None:
        every.append((8, f"${s.cost:.2f}", "muted"))
    if s.session:
        every.append((10, visible_line(s.title)[:24] or s.session[:12], "muted"))
    every.append((4, s.connection, "bad" if "lost" in s.connection else "muted"))
    while len(every) > 1 and sum(cell_len(text) + 3 for _, text, _ in every) - 3 > width:
        every.remove(max(every))
    return [(text, colour) for _, text, colour in every]
