"""The colours of what is painted. No meaning is in a colour alone: marks and words carry it too."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from rich.style import Style

Name = Literal[
    "text",
    "muted",
    "strong",
    "accent",
    "prompt",
    "ok",
    "warn",
    "bad",
    "conflict",
    "add",
    "remove",
    "hunk",
    "code",
    "heading",
    "link",
]

_DARK: dict[Name, str] = {
    "text": "#d8dee4",
    "muted": "#8b97a3",
    "strong": "bold #ffffff",
    "accent": "#6cb6ff",
    "prompt": "bold #f0b95b",
    "ok": "#7fce8a",
    "warn": "#f0b95b",
    "bad": "bold #ff8078",
    "conflict": "bold #e79bff",
    "add": "#7fce8a",
    "remove": "#ff8078",
    "hunk": "#6cb6ff",
    "code": "#c9b8ff",
    "heading": "bold underline #ffffff",
    "link": "underline #6cb6ff",
}
_LIGHT: dict[Name, str] = {
    "text": "#1f2328",
    "muted": "#59636e",
    "strong": "bold #000000",
    "accent": "#0550ae",
    "prompt": "bold #7d4e00",
    "ok": "#116329",
    "warn": "#7d4e00",
    "bad": "bold #a40e26",
    "conflict": "bold #6e1f9b",
    "add": "#116329",
    "remove": "#a40e26",
    "hunk": "#0550ae",
    "code": "#512a97",
    "heading": "bold underline #000000",
    "link": "underline #0550ae",
}


class Palette:
    """The styles of one theme, by what they mean."""

    def __init__(self, *, dark: bool) -> None:
        self.dark = dark
        self._styles = {name: Style.parse(text) for name, text in (_DARK if dark else _LIGHT).items()}

    def __getitem__(self, name: Name) -> Style:
        return self._styles[name]


@lru_cache(maxsize=2)
def palette(*, dark: bool) -> Palette:
    """The palette of the dark or the light theme."""
    return Palette(dark=dark)
