"""The one message that a checker reads: parts marked by where they come from, bounded, gaps said. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from counterfoil.events import text_of
from counterfoil.events.codec import clean_text
from counterfoil.ports import Evidence, ReviewSubject

MAX_FACTS = 128_000
MAX_PROMPTS = 48_000


class Framed(msgspec.Struct, frozen=True, kw_only=True):
    """The message, and what in it isn't whole, as codes."""

    text: str
    incomplete: tuple[str, ...] = ()


def framed(subject: ReviewSubject, evidence: Evidence, nonce: str, limit: int) -> Framed:
    """The message of one check, at most about `limit` characters of content. `nonce`: a number nobody can guess.

    The exact call, or the exact result, gets its room first; then the person's words, the evidence, the facts.
    """
    left = limit
    lines: list[str] = []
    incomplete: list[str] = list(_gaps(subject, evidence))
    for name, text, share in _parts(subject, evidence):
        shown, whole = _cut(clean_text(text), min(share, left))
        left -= len(shown)
        if not whole:
            incomplete.append(f"cut: {name.split(' ')[0]}")
        lines += [f"[[{nonce} {_label(name)}]]", shown, f"[[{nonce} end]]", ""]
    if incomplete:
        lines += [f"[[{nonce} incomplete]]", *incomplete, *evidence.missing, f"[[{nonce} end]]", ""]
    return Framed(text="\n".join(lines), incomplete=tuple(dict.fromkeys(incomplete)))


def _parts(subject: ReviewSubject, evidence: Evidence) -> Iterator[tuple[str, str, int]]:
    """Name, text and the room of each part, the most needed first."""
    call = {"tool": subject.tool, "arguments": subject.arguments, "workspace": subject.workspace, "mode": subject.mode}
    everything = 1 << 40
    yield "call", msgspec.json.format(msgspec.json.encode(call)).decode(), everything
    if subject.result is not None:
        yield "result", text_of(subject.result), everything
    yield "person", "\n\n".join(f"({n}) {text}" for n, text in enumerate(subject.prompts, 1)), MAX_PROMPTS
    if subject.reason:
        yield "why-the-rules-ask", subject.reason, 4_000
    for piece in evidence.pieces:
        yield f"evidence {piece.origin}", piece.text, everything
    if subject.facts:
        yield "earlier-calls", "\n".join(subject.facts), MAX_FACTS


def _gaps(subject: ReviewSubject, evidence: Evidence) -> Iterator[str]:
    if not subject.prompts:
        yield "no words of the person"
    if evidence.missing:
        yield f"evidence missing: {len(evidence.missing)}"


def _label(name: str) -> str:
    """A part's name in one bounded line without brackets."""
    kept = "".join(c if c.isprintable() and c not in "[]" else "?" for c in name)
    return kept if len(kept) <= 300 else kept[:299] + "…"


def _cut(text: str, room: int) -> tuple[str, bool]:
    """The head and the tail of a text that is too long, with the gap marked; and whether it is whole."""
    if len(text) <= room:
        return text, True
    half = max(0, room // 2)
    gap = f"\n[… {len(text) - 2 * half} characters are left out here …]\n"
    return text[:half] + gap + (text[-half:] if half else ""), False
