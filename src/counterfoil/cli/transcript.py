"""A session as text, in the order of its entries: for reading on a terminal and as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from counterfoil.cli import wording
from counterfoil.events import text_of
from counterfoil.scrollback import (
    CallView,
    CompactionEntry,
    Entry,
    EvidenceEntry,
    MessageEntry,
    NoticeEntry,
    PromptEntry,
    RunEntry,
    Scrollback,
    ToolCard,
    UnknownEntry,
    visible,
    visible_line,
)

RESULT_LINES = 12


def plain(seen: Scrollback) -> Iterator[str]:
    """One block of text for each entry."""
    for entry in seen.entries:
        if isinstance(entry, PromptEntry):
            yield _quoted(text_of(entry.parts))
        elif isinstance(entry, MessageEntry):
            yield visible(entry.text) if entry.text else f"[reasoning]\n{_quoted(entry.reasoning)}"
        elif isinstance(entry, ToolCard):
            view = seen.call(entry.tool_call_id)
            assert view is not None
            yield _call(view)
        else:
            yield _other(entry)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in visible(text).split("\n"))


def _call(view: CallView) -> str:
    lines = [call_line(view), f"  {visible_line(view.tool_call_id)}"]
    lines += [f"  {wording.record(r)}" for r in wording.sorted_records(view)]
    lines += [f"  child {wording.child(child)}" for child in view.children]
    shown = visible(text_of(view.result)).split("\n") if view.result else []
    lines += [f"  | {line}" for line in shown[:RESULT_LINES]]
    if len(shown) > RESULT_LINES:
        lines.append(f"  | … {len(shown) - RESULT_LINES} lines more")
    return "\n".join(lines)


def call_line(view: CallView) -> str:
    """One call on one line: tool, target, state, evidence, approval."""
    about = wording.target(view)
    parts = [f"{visible_line(view.tool)} {about}".rstrip(), wording.state(view)]
    if view.duration_ms is not None:
        parts.append(f"{view.duration_ms} ms")
    if view.executed not in (None, "yes"):
        parts.append(f"executed: {view.executed}")
    for word in (wording.evidence(view), wording.approval(view)):
        if word != wording.NONE:
            parts.append(word)
    return "  ".join(parts)


def _other(entry: Entry) -> str:
    if isinstance(entry, NoticeEntry):
        return f"[{entry.severity}] {visible(entry.text)}"
    if isinstance(entry, RunEntry):
        fault = f": {visible_line(entry.error.message)}" if entry.error is not None else ""
        return f"[run finished] {entry.stop_reason}{fault}"
    if isinstance(entry, CompactionEntry):
        return f"[compacted] offsets {entry.replaced_from} to {entry.replaced_through}\n{visible(entry.summary)}"
    if isinstance(entry, EvidenceEntry):
        return f"[evidence] {wording.standalone(entry)}"
    assert isinstance(entry, UnknownEntry)
    return f"[unknown] {visible_line(entry.kind)} at offset {entry.source.offset}: {entry.reason}"


def markdown(seen: Scrollback) -> str:
    """The whole session as Markdown. Texts of others stand in fences that they can't close."""
    head = seen.session
    out = [f"# {visible_line(head.title or head.session_id)}", ""]
    out += [f"- session: {_code(head.session_id)}", f"- workspace: {_code(head.workspace)}"]
    out += [f"- model: {_code(f'{head.provider} {head.model}')}", f"- status: {head.status}"]
    for entry in seen.entries:
        out.append("")
        if isinstance(entry, PromptEntry):
            out += ["## Prompt", "", _fence(text_of(entry.parts))]
        elif isinstance(entry, MessageEntry):
            out += (
                ["## Answer", "", visible(entry.text)] if entry.text else ["## Reasoning", "", _fence(entry.reasoning)]
            )
        elif isinstance(entry, ToolCard):
            view = seen.call(entry.tool_call_id)
            assert view is not None
            out += _call_section(view)
        else:
            out.append(_fence(_other(entry)))
    return "\n".join(out) + "\n"


def _call_section(view: CallView) -> list[str]:
    out = [f"### Call {_code(view.tool_call_id)}: {_code(call_line(view))}", ""]
    out.append(_fence(json.dumps(view.runs_with, indent=2, ensure_ascii=False), "json"))
    out += [f"- {_code(wording.record(r))}" for r in wording.sorted_records(view)]
    out += [f"- child {_code(wording.child(child))}" for child in view.children]
    if view.result:
        out += ["", _fence(text_of(view.result))]
    return out


def _code(text: str) -> str:
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks} {visible_line(text)} {ticks}" if len(ticks) > 1 else f"`{visible_line(text)}`"


def _fence(text: str, language: str = "") -> str:
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{visible(text)}\n{ticks}"
