"""All of one call or one record, for reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import msgspec
from textual.strip import Strip

from counterfoil.events import HookRecord
from counterfoil.scrollback import CallView
from counterfoil.scrollback.visibility import review_words
from counterfoil.tui import words
from counterfoil.tui.paint.card import COLOURS, Look, card, diff_lines, heading, plain_lines
from counterfoil.tui.paint.flow import BLANK, styled, wrap

Paint = Callable[[Look], list[Strip]]


def of_lines(lines: Sequence[str]) -> Paint:
    """Plain lines."""

    def paint(look: Look) -> list[Strip]:
        return [
            strip
            for line in lines
            for strip in wrap(styled((line, look.palette["text"])), look.width, indent=2, first=0) or [BLANK]
        ]

    return paint


def of_call(view: CallView) -> Paint:
    """A call: its card opened, every record, times, and the call as JSON."""

    def paint(look: Look) -> list[Strip]:
        whole = msgspec.structs.replace(look, level=2, all_notices=True)
        times = [("accepted", view.accepted_at), ("started", view.started_at), ("finished", view.finished_at)]
        lines = card(view, whole)
        for name, at in times:
            lines += wrap(styled((f"{name}: {words.when(at or 0)}", look.palette["muted"])), look.width, indent=2)
        for record in words.sorted_records(view):
            lines += [BLANK, *_record(record, whole)]
        raw = json.dumps(msgspec.to_builtins(view), ensure_ascii=False, indent=2)
        return [*lines, BLANK, *heading("as JSON", whole), *plain_lines(raw, whole)]

    return paint


def of_record(record: HookRecord) -> Paint:
    """A record, whole."""
    return lambda look: _record(record, msgspec.structs.replace(look, level=2))


def _record(record: HookRecord, look: Look) -> list[Strip]:
    text = f"{words.MARKS[record.severity]} {words.record(record)}"
    lines = wrap(styled((text, look.palette[COLOURS[record.severity]])), look.width, indent=2, first=0)
    facts = [
        ("id", f"{record.hook_id} revision {record.revision}"),
        ("call", record.tool_call_id or "none"),
        ("origin", record.origin_session_id),
        ("tier", record.definition.tier),
        ("time", f"{words.when(record.started_at)}, {record.duration_ms} ms"),
        ("before, after", f"{record.before or words.NONE} {record.after or words.NONE}"),
    ]
    if record.review is not None:
        review = record.review
        facts += [
            ("review", f"{review_words(record)}; {review.checker}"),
            ("about", ", ".join(review.categories) or words.NONE),
            ("not seen by the checker", ", ".join(review.incomplete) or "nothing"),
        ]
    for name, value in facts:
        lines += wrap(styled((f"{name}: {value}", look.palette["muted"])), look.width, indent=4, first=2)
    return lines + (diff_lines(record.diff.split("\n"), look) if record.diff else [])
