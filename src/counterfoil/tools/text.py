"""Text that is safe to record, to show and to send: cleaned of what isn't text, and bounded."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

LIMIT = 250_000
"""Bytes of one result's text. Just below what the log takes for one text, so that the log needn't cut again."""

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[\x30-\x3f]{0,256}[\x20-\x2f]{0,64}[\x40-\x7e]"  # CSI
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\n]{0,65536}(?:\x07|\x1b\\|\x9c)"  # OSC
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f]{0,65536}(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|\x1b[\x20-\x2f]{1,16}[\x30-\x7e]"  # two or more bytes: character sets and the like
    r"|\x1b[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e]"  # single-character functions
)
_VISIBLE = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_VISIBLE[0x7F] = 0x2421
_VISIBLE |= {code: 0xFFFD for code in range(0x80, 0xA0) if code != 0x85}


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """A text within its limit. `omitted` bytes of the whole aren't in it."""

    text: str
    omitted: int = 0


def clean(data: bytes | str) -> str:
    """Valid Unicode text: control sequences of terminals taken out, other control characters made visible.

    Invalid UTF-8 and lone surrogates become U+FFFD, a progress line that was drawn again and again stands
    as it was last seen, and line ends are line feeds. U+0085, U+2028 and U+2029 are kept.
    """
    text = well_formed(data)
    if "\x1b" in text or _has_c1(text):
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = _redrawn(text)
    return visible(_backspaced(text) if "\b" in text else text)


def well_formed(data: bytes | str) -> str:
    """Valid Unicode: what can't be decoded becomes U+FFFD, surrogate pairs become their character."""
    if isinstance(data, bytes):
        return data.decode("utf-8", "replace")
    try:
        data.encode()
    except UnicodeEncodeError:
        return data.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return data


def visible(text: str) -> str:
    """Control characters as symbols (`␀`, `␛`), except line feed and tab. Nothing is taken out."""
    return text.translate(_VISIBLE)


def _has_c1(text: str) -> bool:
    return not text.isascii() and any(mark in text for mark in "\x90\x98\x9b\x9d\x9e\x9f")


def _redrawn(text: str) -> str:
    """CRLF is a line end; else what stands after the last carriage return of a line was seen last."""
    lines = re.sub(r"(?<!\r)\r+\n", "\n", text).split("\n")
    return "\n".join(_last_drawn(line) if "\r" in line else line for line in lines)


def _last_drawn(line: str) -> str:
    drawn = [part for part in line.split("\r") if part]
    return drawn[-1] if drawn else ""


def _backspaced(text: str) -> str:
    """Overstriking as `man` writes it: a character and a backspace give way to what follows."""
    return re.sub(r"[^\n\x08]\x08", "", text)


def bound(text: str, limit: int = LIMIT, spill: Path | None = None) -> Bounded:
    """`text` within `limit` bytes of UTF-8: head and tail kept, the whole in `spill`, which the text then names.

    Cuts between characters, and not before a combining mark.
    """
    data = text.encode()
    if len(data) <= limit:
        return Bounded(text=text)
    where = ""
    if spill is not None:
        spill.parent.mkdir(parents=True, exist_ok=True)
        spill.write_bytes(data)
        where = f"; the whole is in {spill}"
    note_room = 80 + len(where.encode())
    room = max(limit - note_room, 0)
    head = head_of(data, room // 2)
    tail = tail_of(data, room - room // 2)
    omitted = len(data) - len(head) - len(tail)
    note = f"\n[… {omitted} bytes left out{where} …]\n"
    return Bounded(text=head.decode() + note + tail.decode(), omitted=omitted)


def head_of(data: bytes, limit: int) -> bytes:
    """At most `limit` bytes from the start of UTF-8 text, ending between characters."""
    if len(data) <= limit:
        return data
    end = _boundary(data, limit)
    for _ in range(16):
        if end <= 0 or not _combines(data, end):
            break
        end = _boundary(data, end - 1)
    return data[: max(end, 0)]


def tail_of(data: bytes, limit: int) -> bytes:
    """At most `limit` bytes from the end of UTF-8 text, beginning between characters."""
    if len(data) <= limit:
        return data
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    for _ in range(16):
        if start >= len(data) or not _combines(data, start):
            break
        start += 1
        while start < len(data) and data[start] & 0xC0 == 0x80:
            start += 1
    return data[start:]


def _boundary(data: bytes, at: int) -> int:
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _combines(data: bytes, at: int) -> bool:
    """Does the character that begins at `at` belong to the one before?"""
    if data[at] < 0xCC:
        return False
    import unicodedata

    character = data[at : at + 4].decode("utf-8", "ignore")[:1]
    return bool(character) and (unicodedata.combining(character) != 0 or character in "\u200d\ufe0e\ufe0f")


def whole_characters(data: bytes) -> int:
    """The length of `data` without a character that is still incomplete at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return len(data) if needed <= back else len(data) - back
    return len(data)


__all__ = ["LIMIT", "Bounded", "bound", "clean", "head_of", "tail_of", "visible", "well_formed", "whole_characters"]
