"""The card of one call: a line of tool, target, state, duration and evidence; opened, all that belongs to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from rich.cells import cell_len
from rich.text import Text
from textual.strip import Strip

from counterfoil.events import Severity, text_of
from counterfoil.scrollback import AskView, CallView, Notices, Summary, edits, summaries, visible_line
from counterfoil.tui import words
from counterfoil.tui.paint import diff
from counterfoil.tui.paint.flow import BLANK, one_line, styled, wrap
from counterfoil.tui.paint.palette import Name, Palette

Level = Literal[0, 1, 2]
"""0: compact, 1: opened with long parts folded, 2: whole."""
FOLDED = 12
WHOLE = 4_000
"""Lines of one part that are shown at level 1 and at level 2."""
MARKS: dict[str, tuple[str, Name]] = {
    "accepted": ("○", "muted"),
    "asked": ("?", "warn"),
    "started": ("▶", "accent"),
    "held": ("◫", "warn"),
    "ok": ("✓", "ok"),
    "error": ("✗", "bad"),
    "denied": ("⊘", "bad"),
    "blocked": ("⊘", "bad"),
    "cancelled": ("–", "muted"),
    "withheld": ("◫", "bad"),
    "interrupted": ("!", "bad"),
}
COLOURS: dict[Severity, Name] = {
    "conflict": "conflict",
    "blocking": "bad",
    "warning": "warn",
    "notable": "accent",
    "benign": "muted",
}


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How something is painted."""

    width: int
    palette: Palette
    level: Level = 0
    all_notices: bool = False


def card(view: CallView, look: Look, progress: str = "") -> list[Strip]:
    """The lines of a card."""
    lines = [_head(view, look)]
    notices: Notices = "all" if look.level or look.all_notices else "important"
    for line in summaries(view, notices):
        lines += evidence_line(line, look)
    if progress and view.state == "started":
        last = progress.rstrip().rsplit("\n", 1)[-1]
        lines.append(one_line(styled((f"  {last}", look.palette["muted"])), look.width))
    if look.level:
        lines += _body(view, look)
    return lines


def _head(view: CallView, look: Look) -> Strip:
    palette = look.palette
    state = words.state(view)
    mark, colour = MARKS.get(state, ("○", "muted"))
    tail = Text(end="")
    tail.append(f"  {state}", palette[colour])
    if view.duration_ms is not None:
        tail.append(f" {words.duration(view.duration_ms)}", palette["muted"])
    edit = edits.of_edit(view.tool, view.runs_with)
    if edit is not None:
        tail.append(f" {diff.summary(edit)}", palette["muted"])
    if view.effective is not None:
        tail.append(" changed", palette["accent"])
    if view.records:
        tail.append(f" {words.counted(view.records)}", palette[COLOURS[words.sorted_records(view)[0].severity]])
    head = styled(
        (f"{mark} ", palette[colour]),
        (visible_line(view.tool), palette["strong"]),
        (f" {words.target(view)}", palette["text"]),
    )
    head.truncate(max(8, look.width - cell_len(tail.plain)), overflow="ellipsis")
    head.append_text(tail)
    return one_line(head, look.width)


def evidence_line(line: Summary, look: Look) -> list[Strip]:
    """One piece of evidence: one line, or all of it where the card is opened."""
    marked = f"{words.MARKS[line.severity]} {line.severity}: {line.text}"
    text = styled((marked, look.palette[COLOURS[line.severity]]))
    return wrap(text, look.width, indent=4, first=2) if look.level else [wrap_indent(text, look)]


def wrap_indent(text: Text, look: Look) -> Strip:
    """`text` on one indented line, cut where it is too long."""
    indented = Text("  ", end="")
    indented.append_text(text)
    return one_line(indented, look.width)


def _body(view: CallView, look: Look) -> list[Strip]:
    lines = heading("arguments", look) + arguments(view.tool, view.runs_with, look)
    if view.problem is not None:
        lines += wrap(styled((view.problem, look.palette["bad"])), look.width, indent=4)
    if view.effective is not None:
        lines += heading("what hooks changed of the model's own", look)
        lines += diff_lines(edits.of_values(view.arguments, view.effective), look)
    for record in words.sorted_records(view):
        if record.diff:
            lines += heading(f"change by {record.definition.name}", look)
            lines += diff_lines(record.diff.split("\n"), look)
    for ask in view.asks:
        lines += ask_lines(ask, look)
    for child in view.children:
        text = f"child {child.child_session_id} {child.session_kind}: {child.stop_reason or 'runs'} {child.preview}"
        lines += wrap(styled((text, look.palette["muted"])), look.width, indent=4)
    if view.held_by is not None and view.state == "held":
        text = f"the result ({view.held_size} bytes) is held by {view.held_by}"
        lines += wrap(styled((text, look.palette["warn"])), look.width, indent=4)
    if view.result:
        lines += heading("result", look) + plain_lines(text_of(view.result), look)
    facts = f"{view.tool_call_id} · turn {view.turn} · executed: {view.executed or words.NONE}"
    return [*lines, *wrap(styled((facts, look.palette["muted"])), look.width, indent=2), BLANK]


def heading(text: str, look: Look) -> list[Strip]:
    """A short heading in a card."""
    return wrap(styled((visible_line(text), look.palette["muted"])), look.width, indent=2)


def arguments(tool: str, values: Mapping[str, Any], look: Look) -> list[Strip]:
    """The exact arguments of a call: an edit as a diff, a command as it is, the rest by name."""
    edit = edits.of_edit(tool, values)
    shown_as_diff = {"old_string", "new_string"} if tool == "Edit" else {"content"}
    lines: list[Strip] = []
    for name, value in values.items():
        if edit is not None and name in shown_as_diff:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name == "command" and tool == "Bash":
            lines += folded(((f"$ {line}" if not n else f"  {line}") for n, line in enumerate(text.split("\n"))), look)
        else:
            label = f"{visible_line(name)}: "
            lines += folded((label + line if not n else line for n, line in enumerate(text.split("\n"))), look)
    return lines + (diff_lines(edit, look) if edit is not None else [])


def diff_lines(lines: Iterable[str], look: Look) -> list[Strip]:
    """Lines of a diff in their colours."""
    return folded(lines, look, colours=True)


def plain_lines(text: str, look: Look) -> list[Strip]:
    """Text of a tool: only shown, never executed by the terminal."""
    return folded(text.rstrip("\n").split("\n"), look)


def folded(lines: Iterable[str], look: Look, *, colours: bool = False) -> list[Strip]:
    """The first of `lines`, wrapped, and how many more there are."""
    limit = WHOLE if look.level == 2 else FOLDED
    every = list(lines)
    out: list[Strip] = []
    for number, line in enumerate(every):
        if number >= limit or len(out) >= limit * 2:
            return out + more(len(every) - number, look)
        text = diff.coloured(line, look.palette) if colours else styled((line, look.palette["text"]))
        out += wrap(text, look.width, indent=4) or [BLANK]
    return out


def more(count: int, look: Look) -> list[Strip]:
    """The line that says how much is folded away."""
    hint = "" if look.level == 2 else " (enter shows them)"
    return wrap(styled((f"… {count} more lines{hint}", look.palette["accent"])), look.width, indent=4)


def ask_lines(view: AskView, look: Look) -> list[Strip]:
    """An ask and what became of it."""
    ask = view.ask
    text = f"ask {ask.ask_id}: {visible_line(ask.reason)}: {view.state}"
    if view.receipt is not None:
        r = view.receipt
        by = f"{r.verdict} ({r.scope}) by {visible_line(r.decided_by.name)} at {words.when(r.decided_at)}"
        text = f"{text}: {by}" + (f": “{visible_line(r.note)}”" if r.note else "")
    elif view.withdrawn_reason:
        text = f"{text}: {visible_line(view.withdrawn_reason)}"
    return wrap(styled((text, look.palette["muted"])), look.width, indent=4, first=2)
