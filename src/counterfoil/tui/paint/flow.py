"""Wraps styled text into the lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from counterfoil.scrollback import visible

CONSOLE = Console(width=80, color_system="truecolor", force_terminal=True, legacy_windows=False, no_color=False)
"""Only measures and wraps; nothing is ever written to it."""
TAB = 4
LONGEST = 20_000
"""Characters of one line of text that are wrapped; the rest is counted."""


def safe(text: str) -> str:
    """`text` as lines that a terminal only shows: no controls, tabs as spaces, over-long lines cut with a count."""
    shown = visible(text).expandtabs(TAB)
    if len(shown) <= LONGEST:
        return shown
    return "\n".join(_bounded(line) for line in shown.split("\n"))


def _bounded(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST]} … {len(line) - LONGEST} more characters"


def styled(*pieces: tuple[str, Style]) -> Text:
    """One piece of text made of safe, styled pieces."""
    text = Text(end="")
    for content, style in pieces:
        text.append(safe(content), style)
    return text


def wrap(text: Text, width: int, *, indent: int = 0, first: int | None = None) -> list[Strip]:
    """The lines of `text`, none wider than `width`, indented by `indent` (the first one by `first`)."""
    if width < 1:
        return []
    room = max(1, width - indent)
    lines: list[Strip] = []
    for line in text.wrap(CONSOLE, room, overflow="fold", tab_size=TAB):
        line.rstrip()
        pad = indent if lines or first is None else first
        segments = [Segment(" " * pad)] if pad else []
        segments += [s for s in line.render(CONSOLE) if s.text]
        lines.append(Strip(segments))
    return lines


def one_line(text: Text, width: int) -> Strip:
    """`text` on one line, cut with an ellipsis where it is too wide."""
    cut = text.copy()
    cut.truncate(max(1, width), overflow="ellipsis")
    return Strip([s for s in cut.render(CONSOLE) if s.text])


def joined(groups: Iterable[list[Strip]]) -> list[Strip]:
    """Groups of lines, one after the other."""
    return [line for group in groups for line in group]


BLANK = Strip([])
