"""The dark and the light theme, and how things look where nobody wants colours."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

DARK = Theme(
    name="counterfoil-dark",
    primary="#6cb6ff",
    secondary="#c9b8ff",
    accent="#f0b95b",
    warning="#f0b95b",
    error="#ff8078",
    success="#7fce8a",
    foreground="#d8dee4",
    background="#12161b",
    surface="#1b2128",
    panel="#262e37",
    dark=True,
)
LIGHT = Theme(
    name="counterfoil-light",
    primary="#0550ae",
    secondary="#512a97",
    accent="#7d4e00",
    warning="#7d4e00",
    error="#a40e26",
    success="#116329",
    foreground="#1f2328",
    background="#ffffff",
    surface="#f3f5f7",
    panel="#dfe4e9",
    dark=False,
)
NAMES = {"dark": DARK.name, "light": LIGHT.name}
APART = 0.35
"""How far a background must be from that of the screen, in lightness, to be shown as reverse."""


class NoColours(LineFilter):
    """Takes all colours out. What only a background marks, a cursor or a chosen row, is shown in reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.style is None else Segment(segment.text, _plain(segment.style, background))
            for segment in segments
        ]


def _plain(style: Style, screen: Color) -> Style:
    reverse = bool(style.reverse)
    if style.bgcolor is not None and not style.bgcolor.is_default:
        behind = Color.from_rich_color(style.bgcolor)
        reverse = reverse != (abs(behind.brightness - screen.brightness) > APART)
    return Style(
        bold=style.bold, italic=style.italic, underline=style.underline, strike=style.strike, reverse=reverse or None
    )
