"""Text that is only shown and never acts: controls, direction marks and what can't be seen, made visible."""

from __future__ import annotations

import re

_NAMES = {0x1B: "␛", 0x7F: "␡", 0x0D: "␍"}
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|(?<=[\x00-\x7f])[\u200c\u200d]|^[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f]|\\Z)"
)
"""Controls but tab and newline, line and paragraph separators, direction and invisible marks, surrogates, tags; and
joiners where they join nothing: they belong between letters of some scripts and between emoji, and hide in a command.
"""


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return _NAMES.get(code, chr(0x2400 + code))
    return _NAMES.get(code, f"<U+{code:04X}>")


def visible(text: str) -> str:
    """`text` with every character that a terminal would act on, or that can't be seen, made visible.

    Newlines and tabs stay. Escape sequences lose their power and keep their letters.
    """
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """`text` on one line: as `visible`, with newlines and tabs made visible too."""
    return visible(text).replace("\n", "␤").replace("\t", "␉")


__all__ = ["visible", "visible_line"]
