"""Every rule of attachment, as a person reads it: what is painted on the card, and what by itself, at any width.

Words are looked for with all white space taken out, so that a line break in the middle neither hides nor makes one.
"""

from __future__ import annotations

import re

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.scrollback import EvidenceEntry, ToolCard
from counterfoil.tui.feed import Feed
from counterfoil.tui.paint.card import Look
from counterfoil.tui.paint.palette import palette
from tests.scrollback.builders import CHILD, ROOT, RUN, Log, created
from tests.scrollback.test_attachment import TABLE

WIDTHS = (20, 33, 80, 120)
MARK = re.compile(r"\[mark\.([^\]]*)\.r(\d+)\.([^\]]*)\]")


def marked(event: ev.Event) -> ev.Event:
    """A record says who it is in words that wrap at small widths; equal records say the same."""
    if not isinstance(event, ev.HookRecorded):
        return event
    record = event.record
    claims = f"{record.message or 'nothing'} for {record.tool_call_id or 'no call'} of {record.origin_session_id}"
    text = f"[mark. {record.hook_id or 'anonymous'} .r{record.revision}. who claims to say {claims}]"
    return ev.HookRecorded(record=msgspec.structs.replace(record, message=text))


def painted(name: str, width: int) -> tuple[dict[str, str], list[str]]:
    """What is painted, without white space: on each card by its call, and on each piece of evidence alone."""
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN))
    for event in TABLE[name][0]:
        inner = event[0] if isinstance(event, tuple) else event
        log.add(marked(inner), session=CHILD if isinstance(event, tuple) else ROOT)
    feed = Feed(ROOT)
    for envelope in log.envelopes:
        feed.apply(envelope)
    look = Look(width=width, palette=palette(dark=True), level=2, all_notices=True)
    cards: dict[str, str] = {}
    alone: list[str] = []
    for position in range(feed.count()):
        text = "".join("".join(strip.text.split()) for strip in feed.paint(position, look))
        entry = feed.seen.entry(position)
        if isinstance(entry, ToolCard):
            cards[entry.tool_call_id] = text
        elif isinstance(entry, EvidenceEntry):
            alone.append(text)
        else:
            assert not MARK.search(text), (entry, text)
    return cards, alone


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TABLE)
def test_a_record_is_painted_on_the_card_of_its_call_or_by_itself(name: str, width: int) -> None:
    _, hooks, _, standalone = TABLE[name]
    cards, alone = painted(name, width)
    seen = [f"{hook} r{revision}" for hook, revision, _ in MARK.findall(cards.get("call_a", ""))]
    assert sorted(seen) == sorted(hooks)
    assert not any(MARK.search(text) for call, text in cards.items() if call != "call_a")
    expected = [
        item.split(" ")[0] or "anonymous" for item in standalone if not item.startswith(("ask_", "Receipt", "Ask"))
    ]
    assert sorted(hook for text in alone for hook, _, _ in MARK.findall(text)) == sorted(expected)
    assert len(alone) == len(standalone)


@pytest.mark.parametrize("name", TABLE)
def test_the_words_are_the_same_at_every_width(name: str) -> None:
    def words(width: int) -> list[list[tuple[str, ...]]]:
        cards, alone = painted(name, width)
        return [MARK.findall(text) for text in (*cards.values(), *alone)]

    first = words(WIDTHS[0])
    assert all(words(width) == first for width in WIDTHS[1:])
