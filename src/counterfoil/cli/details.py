"""A session's head, table and evidence, and everything about one call, as text."""

from __future__ import annotations

import difflib
import json
from typing import Any

from counterfoil.cli import wording
from counterfoil.cli.render import print_calls
from counterfoil.cli.terminal import print_line
from counterfoil.events import FilePart, ImagePart, Part, TextPart
from counterfoil.scrollback import (
    AskView,
    CallView,
    CompactionEntry,
    NoticeEntry,
    RunEntry,
    Scrollback,
    UnknownEntry,
    visible,
    visible_line,
)


def print_session(seen: Scrollback) -> None:
    """Head, table of calls, then everything that isn't about one call."""
    print_head(seen)
    print_line()
    print_calls(seen.calls)
    print_beside(seen)


def print_head(seen: Scrollback) -> None:
    """What the session is and how it stands."""
    head = seen.session
    print_line(f"{head.session_id}  {visible_line(head.title)}".rstrip())
    print_line(f"  workspace  {visible_line(head.workspace)}")
    place = f" at {visible_line(head.base_url)}" if head.base_url else ""
    print_line(f"  model      {visible_line(head.provider)} {visible_line(head.model)}{place}  (mode {head.mode})")
    print_line(f"  status     {head.status}  ({wording.when(head.updated_at)})")
    print_line(f"  tokens     {wording.tokens(head.usage)}")


def print_beside(seen: Scrollback) -> None:
    """Notices, ends of runs, unknown events and standalone evidence: nothing of it is left out."""
    lines = [line for entry in seen.entries if (line := _beside(entry))]
    if lines:
        print_line()
    for line in lines:
        print_line(line)


def _beside(entry: Any) -> str:
    if isinstance(entry, NoticeEntry):
        return f"{entry.severity}: {visible_line(entry.text)}"
    if isinstance(entry, RunEntry):
        fault = f": {visible_line(entry.error.message)}" if entry.error is not None else ""
        return f"run finished: {entry.stop_reason}{fault}"
    if isinstance(entry, CompactionEntry):
        return f"compacted ({entry.trigger}): offsets {entry.replaced_from} to {entry.replaced_through}"
    if isinstance(entry, UnknownEntry):
        return f"unknown: {visible_line(entry.kind)} at offset {entry.source.offset}: {entry.reason}"
    return wording.standalone(entry) if hasattr(entry, "why") else ""


def print_call(view: CallView) -> None:
    """Everything about one call."""
    print_line(f"{view.tool_call_id}  {visible_line(view.tool)}")
    print_line(f"  origin     {view.origin_session_id}")
    print_line(f"  turn       {view.turn}, position {view.position}, run {view.run_id}")
    print_line(f"  state      {wording.state(view)}, executed: {wording.executed(view)}")
    print_line(f"  accepted   {wording.when(view.accepted_at)}")
    if view.started_at is not None:
        print_line(f"  started    {wording.when(view.started_at)}, attempt {view.attempt}")
    if view.finished_at is not None:
        print_line(f"  finished   {wording.when(view.finished_at)}, {view.duration_ms} ms")
    if view.problem is not None:
        print_line(f"  problem    {visible_line(view.problem)}")
    _section("arguments", _pretty(view.arguments))
    if view.effective is not None:
        _section("effective arguments", _diff(view.arguments, view.effective))
    _section("evidence", "\n".join(wording.record(r) for r in wording.sorted_records(view)) or "none")
    _section("approval", "\n".join(_ask(a) for a in view.asks) or "none was needed")
    for child in view.children:
        _section("child", f"{child.child_session_id} ({child.session_kind})")
    if view.state == "finished":
        _section("result", "\n".join(_part(p) for p in view.result) or "(empty)")


def _section(title: str, text: str) -> None:
    print_line(f"\n{title}:")
    for line in visible(text).split("\n"):
        print_line(f"  {line}")


def _pretty(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def _diff(before: dict[str, Any], after: dict[str, Any]) -> str:
    lines = difflib.unified_diff(
        _pretty(before).split("\n"), _pretty(after).split("\n"), "original", "effective", n=3, lineterm=""
    )
    return "\n".join(lines)


def _ask(view: AskView) -> str:
    ask = view.ask
    lines = [f"{ask.ask_id}: {visible_line(ask.reason)}", f"asked {wording.when(view.opened_at)}: {view.state}"]
    if view.receipt is not None:
        r = view.receipt
        by = f"{visible_line(r.decided_by.name)} ({r.decided_by.kind})"
        lines.append(f"{r.verdict} ({r.scope}) by {by} at {wording.when(r.decided_at)}")
        lines.append(f"for arguments {r.arguments_digest}")
        if r.note:
            lines.append(f"note: {visible_line(r.note)}")
    elif view.state == "withdrawn":
        lines.append(f"withdrawn: {visible_line(view.withdrawn_reason)}")
    return "\n".join(lines)


def _part(part: Part) -> str:
    if isinstance(part, TextPart):
        more = f"\n[{part.truncated_bytes} bytes more are not here]" if part.truncated_bytes else ""
        return part.text + more
    if isinstance(part, ImagePart):
        return f"[image {visible_line(part.name or '')} {part.media_type}]"
    assert isinstance(part, FilePart)
    return f"[file {visible_line(part.path)}, {part.size} bytes]"
