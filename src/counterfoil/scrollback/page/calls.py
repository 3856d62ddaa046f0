"""One call as a card that opens: arguments, evidence, asks and receipts, result."""

from __future__ import annotations

import difflib
import json
from typing import Any

from counterfoil.events import HookRecord, ImagePart, Part, TextPart
from counterfoil.scrollback.page.words import block, identity, line, pretty, when
from counterfoil.scrollback.views import AskView, CallView, severity_rank
from counterfoil.scrollback.visibility import review_words

_TELLING = ("file_path", "command", "pattern", "url", "path", "query", "description")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def card(view: CallView) -> str:
    """The whole card."""
    state = view.status or view.state
    records = sorted(view.records, key=lambda record: (severity_rank(record.severity), record.revision))
    badges = "".join(
        f'<li class="{record.severity}">{line(record.message or record.outcome)}</li>' for record in records
    )
    head = (
        f'<span class="tool">{line(view.tool)}</span> <span class="target">{line(_target(view))}</span> '
        f'<span class="state {line(state)}">{line(state)}</span> <span class="quiet">{_ran(view)}</span>'
    )
    shown = f'<ul class="badges">{badges}</ul>' if badges else ""
    summary = f"<summary>{head}{shown}</summary>"
    return f'<details class="card" id="{line(view.tool_call_id)}">{summary}{_body(view, records)}</details>'


def _ran(view: CallView) -> str:
    took = f"{view.duration_ms} ms" if view.duration_ms is not None else ""
    receipt = view.receipt
    by = f"{line(receipt.verdict)} by {line(receipt.decided_by.name)}" if receipt is not None else ""
    return " · ".join(filter(None, [f"executed: {view.executed}" if view.executed else "", took, by]))


def _target(view: CallView) -> str:
    for name in _TELLING:
        value = view.runs_with.get(name)
        if isinstance(value, str) and value:
            return value if len(value) <= 160 else value[:159] + "…"
    return ""


def _body(view: CallView, records: list[HookRecord]) -> str:
    place = f"turn {view.turn}, position {view.position}, accepted {when(view.accepted_at)}"
    parts = [
        f"<p>{identity(view.tool_call_id)} {place}</p>",
        _section("Arguments", pretty(view.arguments)),
    ]
    if view.problem is not None:
        parts.append(_section("Problem", block(view.problem)))
    if view.effective is not None:
        parts.append(_section("What runs instead", _difference(view.arguments, view.effective)))
    if records:
        parts.append(_section("Evidence", "".join(record_html(record) for record in records)))
    if view.asks:
        parts.append(_section("Approval", "".join(ask_html(ask) for ask in view.asks)))
    if view.held_size is not None:
        parts.append(f"<p>The result was held back ({view.held_size} bytes).</p>")
    for child in view.children:
        evidence = f", {child.evidence} evidence, most severe {child.severity}" if child.evidence else ""
        how = f"{child.session_kind}: {child.stop_reason or 'runs'}{evidence}"
        parts.append(f"<p>child session {identity(child.child_session_id)} ({line(how)}) {line(child.preview)}</p>")
    for seen in view.acknowledged:
        who = f"{line(seen.decided_by.name)} {when(seen.decided_at)}"
        parts.append(f"<p>{identity(seen.review_id)} was seen at revision {seen.revision} by {who}</p>")
    if view.state == "finished":
        parts.append(_section("Result", "".join(part_html(part) for part in view.result) or "<p>(empty)</p>"))
    return "".join(parts)


def _section(title: str, inner: str) -> str:
    return f"<h4>{title}</h4>{inner}"


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    was, runs = (json.dumps(value, indent=2, ensure_ascii=False).split("\n") for value in (before, after))
    return block("\n".join(difflib.unified_diff(was, runs, "original", "effective", n=3, lineterm="")))


def record_html(record: HookRecord) -> str:
    """One record of a hook or a review, with its revision."""
    where = f"{line(record.phase)} · {line(record.definition.name)} ({line(record.definition.tier)})"
    review = f" · {line(review_words(record))} · {line(record.review.checker)}" if record.review is not None else ""
    change = block(record.diff) if record.diff else ""
    return (
        f'<div class="record {record.severity}"><p><b>{line(record.outcome)}</b> {line(record.message)}</p>'
        f'<p class="quiet">{identity(record.hook_id)} revision {record.revision} · {where}{review}</p>{change}</div>'
    )


def ask_html(view: AskView) -> str:
    """One question, exactly as it was put, and its receipt."""
    ask = view.ask
    parts = [
        f'<div class="record"><p><b>asked</b> {line(ask.reason)} {when(view.opened_at)}</p>',
        f'<p class="quiet">{identity(ask.ask_id)} for arguments {line(ask.arguments_digest)}</p>',
        pretty(ask.arguments),
    ]
    if ask.result_digest is not None:
        parts.append(f"<p>about the result of {ask.result_size} bytes, {line(ask.result_digest)}</p>")
    receipt = view.receipt
    if receipt is not None:
        by = f"{line(receipt.decided_by.name)} ({receipt.decided_by.kind})"
        parts.append(f"<p><b>{line(receipt.verdict)}</b> ({receipt.scope}) by {by} {when(receipt.decided_at)}</p>")
        if receipt.note:
            parts.append(f"<p>note: {line(receipt.note)}</p>")
    elif view.state == "withdrawn":
        parts.append(f"<p><b>withdrawn</b>: {line(view.withdrawn_reason)}</p>")
    else:
        parts.append("<p><b>open</b></p>")
    return "".join(parts) + "</div>"


def part_html(part: Part) -> str:
    """One part of a prompt or a result."""
    if isinstance(part, TextPart):
        cut = f'<p class="quiet">{part.truncated_bytes} bytes more are not recorded</p>' if part.truncated_bytes else ""
        return block(part.text) + cut
    if isinstance(part, ImagePart):
        label = line(part.name or part.media_type)
        safe = part.media_type in _IMAGES and all(c.isalnum() or c in "+/=" for c in part.data)
        return (
            f'<img alt="{label}" src="data:{part.media_type};base64,{part.data}">'
            if safe
            else f"<p>[image {label}]</p>"
        )
    return f"<p>[file {line(part.path)}]</p>"
