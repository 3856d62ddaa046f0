"""How much of a result the model gets: the head and the tail, cut between characters."""

from __future__ import annotations

import re

from counterfoil.events import Part, TextPart

MODEL_CHARACTERS = 30_000
"""Characters of text of one result that the model gets (engine specification, section 6)."""


LOG_BYTES = 256 * 1024
"""Bytes of text of one result that the log keeps."""


def cut_middle(text: str, limit: int) -> str:
    """`text`, or its head and tail with a line between that says how many characters were left out."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def for_model(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """`parts` with their text together bounded to `MODEL_CHARACTERS`: the head and the tail of the whole."""
    total = sum(len(p.text) for p in parts if isinstance(p, TextPart))
    if total <= MODEL_CHARACTERS:
        return parts
    head = MODEL_CHARACTERS * 2 // 3
    tail = total - (MODEL_CHARACTERS - head)
    mark = f"\n[… {total - MODEL_CHARACTERS} characters left out …]\n"
    kept: list[Part] = []
    start = 0
    for part in parts:
        if not isinstance(part, TextPart):
            kept.append(part)
            continue
        end = start + len(part.text)
        if end <= head or start >= tail:
            kept.append(part)
        elif start <= head or end > tail:
            middle = mark if start <= head else ""
            text = part.text[: max(0, head - start)] + middle + part.text[max(0, tail - start) :]
            kept.append(TextPart(text=text, truncated_bytes=part.truncated_bytes))
        start = end
    return tuple(kept)


def for_log(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """`parts` as the log keeps them: no control characters, each text within `LOG_BYTES` of UTF-8."""
    if all(not isinstance(p, TextPart) or _fits(p.text) for p in parts):
        return parts
    return tuple(_cut_bytes(_shown(p)) if isinstance(p, TextPart) else p for p in parts)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")
_SYMBOLS = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_SYMBOLS |= {code: 0xFFFD for code in range(0x80, 0xA0) if code != 0x85} | {0x7F: 0x2421}


def _fits(text: str) -> bool:
    return len(text) * 4 <= LOG_BYTES and _CONTROLS.search(text) is None


def _shown(part: TextPart) -> TextPart:
    """What terminals obey and some APIs and stores refuse stands as a symbol: `␀`, `␛`. Tools may have done more."""
    text = part.text.replace("\r\n", "\n").translate(_SYMBOLS)
    return TextPart(text=text, truncated_bytes=part.truncated_bytes)


def _cut_bytes(part: TextPart) -> TextPart:
    data = part.text.encode("utf-8", "replace")
    if len(data) <= LOG_BYTES:
        return part
    head = data[: LOG_BYTES * 2 // 3].decode("utf-8", "ignore")
    tail = data[-(LOG_BYTES // 3) :].decode("utf-8", "ignore")
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    text = f"{head}\n[… {left_out} bytes left out …]\n{tail}"
    return TextPart(text=text, truncated_bytes=part.truncated_bytes + left_out)
