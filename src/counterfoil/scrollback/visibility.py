"""What is shown under which setting. Hiding is a view: nothing is dropped, and only what is benign can be hidden."""

from __future__ import annotations

from typing import Literal

from counterfoil.events import HookRecord, Severity
from counterfoil.events.base import Value
from counterfoil.identity import AskID, HookID
from counterfoil.scrollback import entries as en
from counterfoil.scrollback.views import AskView, ChildView, ToolSnapshot, severity_rank
from counterfoil.scrollback.visible import visible_line

Notices = Literal["important", "all"]
"""The setting `ui.notices`."""


def shown(severity: Severity | None, notices: Notices) -> bool:
    """Whether something of this severity is shown. What is no notice has none, and always is."""
    return notices == "all" or severity != "benign"


def severity_of(entry: en.Entry) -> Severity | None:
    """How severe an entry is: of notices and evidence alone."""
    return entry.severity if isinstance(entry, (en.NoticeEntry, en.EvidenceEntry)) else None


def entry_shown(entry: en.Entry, notices: Notices) -> bool:
    """Whether an entry is shown."""
    return shown(severity_of(entry), notices)


class Summary(Value, frozen=True, kw_only=True):
    """One piece of evidence on a card, as one short line that is safe to show. `id` names what it tells of."""

    severity: Severity
    text: str
    id: HookID | AskID | str


def summaries(view: ToolSnapshot, notices: Notices = "important") -> tuple[Summary, ...]:
    """The evidence on a card, a line for each piece, most severe first; in the order of events among equals."""
    seen = {a.review_id for a in view.acknowledged}
    lines = [
        *(_of_record(record, seen=record.hook_id in seen) for record in view.records),
        *(_of_ask(ask) for ask in view.asks),
        *(_of_child(child) for child in view.children if child.severity is not None),
    ]
    return tuple(sorted((s for s in lines if shown(s.severity, notices)), key=lambda s: severity_rank(s.severity)))


def hidden_on(view: ToolSnapshot, notices: Notices) -> int:
    """How many lines of a card are not shown."""
    return len(summaries(view, "all")) - len(summaries(view, notices))


def _of_record(record: HookRecord, *, seen: bool) -> Summary:
    text = record_words(record) + (" (seen)" if seen else "")
    return Summary(severity=record.severity, text=text, id=record.hook_id)


def record_words(record: HookRecord) -> str:
    """One record on one line: who spoke, what came of it, and why."""
    name = visible_line(record.definition.name)
    what = review_words(record) if record.review is not None else record.outcome.replace("_", " ")
    return f"{name}: {what}" + (f": {visible_line(record.message)}" if record.message else "")


def review_words(record: HookRecord) -> str:
    """How a review stands. An outage of the checker is named as one: it is no finding."""
    review = record.review
    assert review is not None
    words = [f"{review.job} review {review.state}", review.enforcement]
    if review.finding == "failed" or review.state == "failed":
        words.append(f"checker outage: {review.outage or 'unknown'}")
    elif review.finding is not None and review.finding != review.state:
        words.append(review.finding)
    return ", ".join([*words, *review.categories])


def _of_ask(view: AskView) -> Summary:
    receipt = view.receipt
    if receipt is not None:
        who = visible_line(receipt.decided_by.name)
        note = f": {visible_line(receipt.note)}" if receipt.note else ""
        text = f"{receipt.verdict} ({receipt.scope}) by {who}{note}"
    elif view.state == "withdrawn":
        text = f"ask withdrawn: {visible_line(view.withdrawn_reason)}"
    else:
        text = f"asks: {visible_line(view.ask.reason)}"
    return Summary(severity=view.severity, text=text, id=view.ask.ask_id)


def _of_child(child: ChildView) -> Summary:
    assert child.severity is not None
    pieces = "1 piece" if child.evidence == 1 else f"{child.evidence} pieces"
    asks = f", {child.open_asks} open" if child.open_asks else ""
    name = visible_line(child.member or child.child_session_id)
    return Summary(
        severity=child.severity,
        text=f"child {name}: {pieces} of evidence, most severe {child.severity}{asks}",
        id=child.child_session_id,
    )


__all__ = [
    "Notices",
    "Summary",
    "entry_shown",
    "hidden_on",
    "record_words",
    "review_words",
    "severity_of",
    "shown",
    "summaries",
]
