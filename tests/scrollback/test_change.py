"""A client that redraws only what `apply` names shows the same as one that draws everything anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.events.codec import envelope_of
from counterfoil.identity import ToolCallID, arguments_digest
from counterfoil.scrollback import EntryKey, Scrollback, ToolCard
from counterfoil.scrollback.cards import PREVIEW
from tests.scrollback.builders import CHILD, ROOT, RUN, Log, accepted, asked, created, finished, record, settled
from tests.scrollback.events import Drawn, drawn_sessions, log_of
from tests.scrollback.test_attachment import TABLE
from tests.support.sessions import SESSION, session_log
from tests.support.sessions import Log as StoredLog
from tests.support.strategies import examples


class Client:
    """Keeps a picture of each place, and paints anew only what a change names."""

    def __init__(self, seen: Scrollback) -> None:
        self.seen = seen
        self.pictures: dict[EntryKey, Any] = {}
        self.versions: dict[EntryKey, int] = {}
        self.head, self.live = seen.session, seen.live

    def paint(self, key: EntryKey) -> Any:
        position = self.seen.position(key)
        assert position is not None and self.seen.key(position) == key
        entry = self.seen.entry(position)
        if isinstance(entry, ToolCard):
            view = self.seen.call(entry.tool_call_id)
            assert view is not None
            news = [self.seen.preview(c.child_session_id) for c in view.children]
            return entry, view, self.seen.progress(entry.tool_call_id), news
        return entry

    def take(self, envelope: Envelope) -> None:
        change = self.seen.apply(envelope)
        assert change or not (change.added or change.changed or change.removed or change.live or change.head)
        assert not set(change.added) & set(change.changed)
        for key in (*change.added, *change.changed, *change.removed):
            position = self.seen.position(key)
            assert position is not None
            assert self.versions.get(key, -1) < self.seen.version(position), "a change has another version"
            self.versions[key], self.pictures[key] = self.seen.version(position), self.paint(key)
        if change.live:
            self.live = self.seen.live
        if change.head:
            self.head = self.seen.session

    def check(self) -> None:
        every = {self.seen.key(at): self.paint(self.seen.key(at)) for at in range(len(self.seen))}
        assert self.pictures == every and list(self.pictures) == list(every), "nothing changed unnamed"
        assert [e for e in (self.seen.entry(at) for at in range(len(self.seen))) if e] == list(self.seen.entries)
        assert self.live == self.seen.live
        now = self.seen.session
        assert (self.head.status, self.head.title, self.head.usage) == (now.status, now.title, now.usage)


def drive(envelopes: Iterable[Envelope], seen: Scrollback) -> None:
    client = Client(seen)
    for envelope in envelopes:
        client.take(envelope)
        client.check()


@examples(60)
@given(drawn_sessions)
def test_every_change_is_named_whatever_comes(drawn: Drawn) -> None:
    drive(log_of(drawn), Scrollback(ROOT))


@pytest.mark.parametrize("name", TABLE)
def test_every_change_is_named_whatever_attaches(name: str) -> None:
    events = [e if isinstance(e, tuple) else (e, ROOT) for e in TABLE[name][0]]
    drive(log_of([(event, CHILD if of == "child" else ROOT) for event, of in events]), Scrollback(ROOT))


@examples(15)
@given(session_log(max_runs=2))
def test_every_change_is_named_in_any_real_session(log: StoredLog) -> None:
    drive(map(envelope_of, log.rows), Scrollback(SESSION))


def stepped(*events: ev.Event) -> tuple[Scrollback, list[Any]]:
    log, seen = Log(), Scrollback(ROOT)
    log.add(created(), ev.RunStarted(run_id=RUN), ev.TurnStarted(turn=1, provider="p", model="m"), *events)
    return seen, [seen.apply(envelope) for envelope in log.envelopes][3:]


def test_a_candidate_moves_from_its_own_place_to_the_card() -> None:
    seen, (waits, opens) = stepped(record("hook_1"), accepted("call_a"))
    (alone,) = waits.added
    assert opens.added == ("call_a",) and opens.removed == (alone,)
    assert [seen.entry(at) is None for at in range(len(seen))] == [True, False]
    assert seen.position(alone) == 0, "places stay"


@pytest.mark.parametrize(
    "event",
    [
        record("hook_1"),
        asked("ask_1"),
        ev.CallStarted(tool_call_id=ToolCallID("call_a"), arguments_digest=arguments_digest({})),
        ev.CallProgress(tool_call_id=ToolCallID("call_a"), text="half"),
        finished("call_a"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_happens_to_a_call_changes_its_card_alone(event: ev.Event) -> None:
    _, (_, _, change) = stepped(accepted("call_a"), accepted("call_b"), event)
    assert (change.added, change.changed, change.removed) == ((), ("call_a",), ())


@pytest.mark.parametrize("call", ["call_z", None])
def test_a_revision_of_what_stands_alone_changes_its_place(call: str | None) -> None:
    seen, (stands, changes) = stepped(record("hook_1", 1, call), record("hook_1", 2, call, message="new"))
    assert changes.changed == stands.added and seen.version(0) == 1
    assert seen.evidence[0].record is not None and seen.evidence[0].record.message == "new"


@pytest.mark.parametrize(
    "end", [finished("call_a"), ev.RunFinished(run_id=RUN, stop_reason="cancelled")], ids=lambda e: type(e).__name__
)
def test_news_of_a_call_go_when_it_or_its_run_is_over(end: ev.Event) -> None:
    news = ev.CallProgress(tool_call_id=ToolCallID("call_a"), text="half" * 10_000)
    seen, (_, shows) = stepped(accepted("call_a"), news)
    assert shows.changed == ("call_a",) and 0 < len(seen.progress(ToolCallID("call_a"))) <= PREVIEW
    seen, (_, _, over) = stepped(accepted("call_a"), news, end)
    assert "call_a" in over.changed and seen.progress(ToolCallID("call_a")) == ""


def test_a_delta_changes_what_streams_and_nothing_else() -> None:
    _, (change,) = stepped(ev.MessageDelta(turn=1, text="x"))
    assert change and change.live and not (change.added or change.changed or change.head)


def test_a_second_time_changes_nothing_and_is_false() -> None:
    log, seen = Log(), Scrollback(ROOT)
    log.add(created(), accepted("call_a"), record("hook_1"), asked("ask_1"), settled("ask_1"), finished("call_a"))
    seen.extend(log.envelopes)
    versions = [seen.version(at) for at in range(len(seen))]
    assert not any(seen.apply(envelope) for envelope in log.envelopes)
    assert [seen.version(at) for at in range(len(seen))] == versions


@given(st.lists(st.integers(1, 30), max_size=60))
def test_offsets_in_any_order_are_taken_once_each(offsets: list[int]) -> None:
    from counterfoil.scrollback.applied import Offsets

    applied = Offsets()
    taken = [offset for offset in offsets if applied.add(offset)]
    assert sorted(taken) == sorted(set(offsets))
    assert applied.through == next(n for n in range(31) if n + 1 not in set(offsets))
