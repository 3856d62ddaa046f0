"""A session's head, table and evidence, and everything about one call, as text."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
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


def _say(text: str = "") -> None:
    print_line(visible(text))


def print_session(seen: Scrollback) -> None:
    """Head, table of calls, then everything that isn't about one call."""
    print_head(seen)
    _say()
    print_calls(seen.calls)
    print_beside(seen)


def print_head(seen: Scrollback) -> None:
    """What the session is and how it stands."""
    head = seen.session
    _say(f"{head.session_id}  {visible_line(head.title)}".rstrip())
    _say(f"  workspace  {visible_line(head.workspace)}")
    place = f" at {visible_line(head.base_url)}" if head.base_url else ""
    _say(f"  model      {visible_line(head.provider)} {visible_line(head.model)}{place}  (mode {head.mode})")
    _say(f"  status     {head.status}  ({wording.when(head.updated_at)})")
    _say(f"  tokens     {wording.tokens(head.usage)}")


def print_beside(seen: Scrollback) -> None:
    """Notices, ends of runs, unknown events and standalone evidence: nothing of it is left out."""
    lines = [line for entry in seen.entries if (line := _beside(entry))]
    if lines:
        _say()
    for line in lines:
        _say(line)


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
    _say(f"{view.tool_call_id}  {visible_line(view.tool)}")
    _say(f"  origin     {view.origin_session_id}")
    _say(f"  turn       {view.turn}, position {view.position}, run {view.run_id}")
    _say(f"  state      {wording.state(view)}, executed: {wording.executed(view)}")
    _say(f"  accepted   {wording.when(view.accepted_at)}")
    if view.started_at is not None:
        _say(f"  started    {wording.when(view.started_at)}, attempt {view.attempt}")
    if view.finished_at is not None:
        _say(f"  finished   {wording.when(view.finished_at)}, {view.duration_ms} ms")
    if view.problem is not None:
        _say(f"  problem    {visible_line(view.problem)}")
    _section("arguments", _pretty(view.arguments))
    if view.effective is not None:
        _section("effective arguments", _diff(view.arguments, view.effective))
    _section("evidence", "\n".join(_records(view)) or "none")
    _section("approval", "\n".join(_ask(a) for a in view.asks) or "none was needed")
    for child in view.children:
        _section("child", wording.child(child) + (f"\n{child.preview}" if child.preview else ""))
    if view.state == "held":
        _section("held", f"the result ({view.held_size} bytes) is held by {view.held_by}")
    if view.state == "finished":
        _section("result", "\n".join(_part(p) for p in view.result) or "(empty)")


def _records(view: CallView) -> Iterator[str]:
    for record in wording.sorted_records(view):
        yield wording.record(record)
        yield from wording.review(record)
    for seen in view.acknowledged:
        who, when = visible_line(seen.decided_by.name), wording.when(seen.decided_at)
        yield f"{seen.review_id} was seen at revision {seen.revision} by {who} at {when}"


def _section(title: str, text: str) -> None:
    _say(f"\n{title}:")
    for line in visible(text).split("\n"):
        _say(f"  {line}")


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
    if ask.result_digest is not None:
        choices = " or ".join(ask.choices)
        lines.append(f"about the result of {ask.result_size} bytes, {ask.result_digest}: {choices}")
    if ask.expires_at is not None:
        lines.append(f"expires {wording.when(ask.expires_at)}")
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
