"""Short words for views: targets, states, evidence, approvals, times. Pure, on one line, safe to print."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from counterfoil.events import HookRecord, Usage
from counterfoil.scrollback import CallView, ChildView, EvidenceEntry, visible_line
from counterfoil.scrollback.views import SEVERITIES, severity_rank
from counterfoil.scrollback.visibility import review_words

_TELLING = ("file_path", "command", "pattern", "url", "path", "bash_id", "shell_id", "description", "query")
NONE = "-"


def target(view: CallView) -> str:
    """What the call is about: its most telling argument."""
    if view.problem is not None:
        return "(arguments are no JSON object)"
    return target_of(view.runs_with)


def target_of(arguments: Mapping[str, Any]) -> str:
    """The most telling of these arguments."""
    for name in _TELLING:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return visible_line(value)
    if not arguments:
        return ""
    return visible_line(json.dumps(arguments, ensure_ascii=False))


def state(view: CallView) -> str:
    """How the call stands: its status once it is finished."""
    return view.status or view.state


def executed(view: CallView) -> str:
    """Whether side effects happened: yes, no, unknown; a dash while nobody can know."""
    return view.executed or NONE


def duration(view: CallView) -> str:
    """Milliseconds of the execution."""
    return NONE if view.duration_ms is None else str(view.duration_ms)


def evidence(view: CallView) -> str:
    """How many records the call has, and the most severe of them; and whether its arguments were changed."""
    parts = [_counted(view.records)] if view.records else []
    if view.effective is not None:
        parts.append("changed")
    return ", ".join(parts) or NONE


def _counted(records: tuple[HookRecord, ...]) -> str:
    counts = Counter(r.severity for r in records)
    return ", ".join(f"{counts[s]} {s}" for s in SEVERITIES if counts[s])


def approval(view: CallView) -> str:
    """The verdict and who gave it, or that it is still open."""
    if view.open_ask is not None:
        return "open"
    receipt = view.receipt
    if receipt is not None:
        return f"{receipt.verdict} by {visible_line(receipt.decided_by.name)}"
    return "withdrawn" if view.asks else NONE


def sorted_records(view: CallView) -> list[HookRecord]:
    """The call's records, most severe first."""
    return sorted(view.records, key=lambda r: severity_rank(r.severity))


def record(r: HookRecord) -> str:
    """One record on one line."""
    parts = [f"{r.severity}: {r.definition.name} ({r.phase}) {r.outcome}"]
    if r.review is not None:
        parts.append(review_words(r))
    if r.message:
        parts.append(r.message)
    return visible_line("; ".join(parts) + f"  [{r.hook_id} r{r.revision}]")


def review(r: HookRecord) -> list[str]:
    """Of a review, what its line doesn't say: who checked it, how sure it is, what was missing, what it cost."""
    of = r.review
    if of is None:
        return []
    facts = [
        ("policy", of.policy),
        ("checker", of.checker),
        ("confidence", of.confidence),
        ("not given to it", ", ".join(of.incomplete)),
        ("cost", tokens(of.usage) if of.usage is not None else ""),
    ]
    return [visible_line(f"  {name}: {value}") for name, value in facts if value]


def child(view: ChildView) -> str:
    """A child session: how it stands, and how much evidence it has."""
    how = view.stop_reason or "runs"
    named = f"{view.member}, " if view.member else ""
    evidence = f"; evidence: {view.evidence}, most severe {view.severity}" if view.evidence else ""
    asks = f"; {view.open_asks} open" if view.open_asks else ""
    return visible_line(f"{view.child_session_id} ({named}{view.session_kind}): {how}{evidence}{asks}")


def standalone(entry: EvidenceEntry) -> str:
    """One piece of standalone evidence on one line."""
    return visible_line(_standalone(entry))


def _standalone(entry: EvidenceEntry) -> str:
    why = f"{entry.severity}: {entry.reason or entry.why.replace('_', ' ')}"
    if entry.record is not None:
        return f"{why}: {record(entry.record)}"
    if entry.ask is not None:
        ask = entry.ask.ask
        return f"{why}: ask {ask.ask_id} of {ask.origin_session_id} for {ask.tool_call_id}: {entry.ask.state}"
    if entry.receipt is not None:
        r = entry.receipt
        return f"{why}: receipt of {r.ask_id} for {r.tool_call_id}: {r.verdict} by {visible_line(r.decided_by.name)}"
    assert entry.withdrawal is not None
    return f"{why}: {entry.withdrawal.ask_id} was withdrawn: {visible_line(entry.withdrawal.reason)}"


def when(microseconds: int) -> str:
    """A time for people, in their own time zone."""
    if not microseconds:
        return NONE
    return datetime.datetime.fromtimestamp(microseconds / 1_000_000).strftime("%Y-%m-%d %H:%M:%S")


def tokens(usage: Usage) -> str:
    """Token counts on one line."""
    parts = [f"{usage.input_tokens} in", f"{usage.output_tokens} out"]
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens} from cache")
    return f"{', '.join(parts)}, {usage.requests} requests"
