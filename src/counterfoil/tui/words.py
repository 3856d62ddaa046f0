"""Short words for views: targets, states, evidence, tokens. Pure, on one line, safe to show."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from counterfoil.events import HookRecord, Severity, Usage
from counterfoil.scrollback import CallView, EvidenceEntry, visible_line
from counterfoil.scrollback.views import SEVERITIES, severity_rank
from counterfoil.scrollback.visibility import record_words

_TELLING = ("file_path", "command", "pattern", "url", "path", "bash_id", "shell_id", "description", "query")
NONE = "-"
MARKS: dict[Severity, str] = {"conflict": "⨂", "blocking": "■", "warning": "▲", "notable": "◆", "benign": "·"}


def target_of(arguments: Mapping[str, Any]) -> str:
    """The most telling of these arguments."""
    for name in _TELLING:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return visible_line(value)
    return visible_line(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def target(view: CallView) -> str:
    """What the call is about."""
    return "(arguments are no JSON object)" if view.problem is not None else target_of(view.runs_with)


def state(view: CallView) -> str:
    """How the call stands: its status once it is finished."""
    return view.status or view.state


def duration(milliseconds: int | None) -> str:
    """A duration for people."""
    if milliseconds is None:
        return NONE
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def counted(records: tuple[HookRecord, ...]) -> str:
    """How many records there are of each severity, most severe first."""
    counts = Counter(r.severity for r in records)
    return " ".join(f"{MARKS[s]}{counts[s]}" for s in SEVERITIES if counts[s])


def sorted_records(view: CallView) -> list[HookRecord]:
    """The call's records, most severe first."""
    return sorted(view.records, key=lambda r: severity_rank(r.severity))


def record(r: HookRecord) -> str:
    """One record on one line, without its id."""
    return f"{r.severity}: {record_words(r)} ({r.phase})"


def approval(view: CallView) -> str:
    """The verdict and who gave it, or that it is still open."""
    if view.open_ask is not None:
        return "open"
    receipt = view.receipt
    if receipt is not None:
        return f"{receipt.verdict} by {visible_line(receipt.decided_by.name)}"
    return "withdrawn" if view.asks else NONE


def standalone(entry: EvidenceEntry) -> str:
    """One piece of standalone evidence on one line."""
    why = f"{entry.severity}: {entry.reason or entry.why.replace('_', ' ')}"
    if entry.record is not None:
        return f"{why}: {record(entry.record)}  [{entry.record.hook_id} r{entry.record.revision}]"
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


def amount(number: int) -> str:
    """A count for people: 950, 12.3k, 4.5M."""
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def tokens(usage: Usage) -> str:
    """Token counts on one line."""
    parts = [f"{usage.input_tokens} in", f"{usage.output_tokens} out"]
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens} from cache")
    return f"{', '.join(parts)}, {usage.requests} requests"


def title_of(prompt: str) -> str:
    """A session's title: the first line of its first prompt, in 80 characters at most."""
    line = visible_line(prompt.strip().split("\n", 1)[0])
    return line if len(line) <= 80 else line[:79] + "…"
