"""Diffs as coloured lines."""

from __future__ import annotations

from rich.text import Text

from counterfoil.tui.paint.flow import styled
from counterfoil.tui.paint.palette import Name, Palette


def coloured(line: str, palette: Palette) -> Text:
    """One line of a diff in its colour."""
    kinds: dict[str, Name] = {"+": "add", "-": "remove", "@": "hunk"}
    return styled((line, palette[kinds.get(line[:1], "text")]))


def summary(lines: list[str]) -> str:
    """How many lines come and go."""
    return f"+{sum(line.startswith('+') for line in lines)} −{sum(line.startswith('-') for line in lines)}"
