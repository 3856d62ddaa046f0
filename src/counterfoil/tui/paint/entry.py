"""The lines of each kind of entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.strip import Strip

from counterfoil.events import text_of
from counterfoil.scrollback import (
    CompactionEntry,
    EvidenceEntry,
    MessageEntry,
    NoticeEntry,
    PromptEntry,
    RunEntry,
    UnknownEntry,
    visible_line,
)
from counterfoil.tui import words
from counterfoil.tui.paint.card import COLOURS, Look, ask_lines, diff_lines, folded, plain_lines
from counterfoil.tui.paint.flow import BLANK, safe, styled, wrap
from counterfoil.tui.paint.markdown import MarkdownLines

PROMPT_FOLD = 40


def prompt(entry: PromptEntry, look: Look) -> list[Strip]:
    """What went to the model, and who said it."""
    marks = {"human": ("❯ ", "prompt"), "steer": ("» ", "prompt"), "harness": ("· ", "muted")}
    mark, colour = marks[entry.prompt_source]
    style = look.palette["muted" if colour == "muted" else "strong"]
    lines = safe(text_of(entry.parts)).rstrip("\n").split("\n")
    shown = lines if look.level else lines[:PROMPT_FOLD]
    text = styled((mark, look.palette["muted" if colour == "muted" else "prompt"]), ("\n".join(shown), style))
    if entry.prompt_source == "steer":
        text.append("  (steer)", look.palette["muted"])
    out = wrap(text, look.width, indent=2, first=0)
    if len(shown) < len(lines):
        out += wrap(styled((f"… {len(lines) - len(shown)} more lines", look.palette["accent"])), look.width, indent=2)
    return [BLANK, *out, BLANK]


def message(entry: MessageEntry, look: Look, markdown: MarkdownLines | None = None) -> list[Strip]:
    """What the model said; its reasoning folded to a line."""
    lines = reasoning(entry.reasoning, look)
    if entry.text:
        lines += (markdown or MarkdownLines(look.width, look.palette)).update(entry.text)
        lines.append(BLANK)
    return lines


def reasoning(text: str, look: Look) -> list[Strip]:
    """The public reasoning: one line, or all of it where the entry is opened."""
    if not text.strip():
        return []
    if look.level:
        return wrap(styled((f"∴ {text.strip()}", look.palette["muted"])), look.width, indent=2, first=0)
    count = text.strip().count("\n") + 1
    first = visible_line(text.strip().split("\n", 1)[0])
    more = f" … {count} lines" if count > 1 else ""
    return wrap(styled((f"∴ {first[: max(8, look.width - 20)]}{more}", look.palette["muted"])), look.width)[:1]


def notice(entry: NoticeEntry, look: Look) -> list[Strip]:
    """Something that people must see."""
    text = f"{words.MARKS[entry.severity]} {entry.severity}: {entry.text}"
    return wrap(styled((text, look.palette[COLOURS[entry.severity]])), look.width, indent=2, first=0)


def run(entry: RunEntry, look: Look) -> list[Strip]:
    """The end of a run."""
    turns = "1 turn" if entry.turns == 1 else f"{entry.turns} turns"
    text = f"── {entry.stop_reason.replace('_', ' ')} · {turns} · {words.tokens(entry.usage)}"
    well = entry.stop_reason in ("end_turn", "deferred")
    lines = wrap(styled((text, look.palette["muted" if well else "warn"])), look.width)
    if entry.error is not None:
        hint = f" ({entry.error.hint})" if entry.error.hint else ""
        lines += wrap(styled((f"✗ {entry.error.message}{hint}", look.palette["bad"])), look.width, indent=2, first=0)
    return lines


def compaction(entry: CompactionEntry, look: Look) -> list[Strip]:
    """Where history is told by a summary from."""
    through = f"events {entry.replaced_from}–{entry.replaced_through}"
    text = f"≡ history compacted ({entry.trigger}): {through} are told to the model by a summary"
    lines = wrap(styled((text, look.palette["accent"])), look.width, indent=2, first=0)
    return lines + (plain_lines(entry.summary, look) if look.level else [])


def evidence(entry: EvidenceEntry, look: Look) -> list[Strip]:
    """Evidence that stands alone, and why."""
    mark = words.MARKS[entry.severity]
    text = styled((f"{mark} {words.standalone(entry)}", look.palette[COLOURS[entry.severity]]))
    lines = wrap(text, look.width, indent=2, first=0)
    if look.level and entry.record is not None and entry.record.diff:
        lines += diff_lines(entry.record.diff.split("\n"), look)
    if look.level and entry.ask is not None:
        lines += ask_lines(entry.ask, look)
    return lines


def unknown(entry: UnknownEntry, look: Look) -> list[Strip]:
    """An event that this version doesn't know."""
    text = f"? event {visible_line(entry.kind)}: {entry.reason}"
    lines = wrap(styled((text, look.palette["warn"])), look.width, indent=2, first=0)
    return lines + (folded([entry.body], look) if look.level else [])


PAINTERS: dict[type, Callable[[Any, Look], list[Strip]]] = {
    PromptEntry: prompt,
    MessageEntry: message,
    NoticeEntry: notice,
    RunEntry: run,
    CompactionEntry: compaction,
    EvidenceEntry: evidence,
    UnknownEntry: unknown,
}
