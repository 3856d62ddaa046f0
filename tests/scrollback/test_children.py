"""Children: a card of their own sort, bounded previews, and of their evidence a count and the most severe state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.identity import Offset, SessionID, ToolCallID
from counterfoil.scrollback import (
    EntryKey,
    EvidenceEntry,
    ParallelCard,
    ParallelSnapshot,
    Scrollback,
    SubagentCard,
    SubagentSnapshot,
    TeamCard,
    TeamSnapshot,
    ToolCard,
    ToolSnapshot,
    UnknownEntry,
    summaries,
)
from counterfoil.scrollback.cards import PREVIEW
from tests.scrollback.builders import CHILD, ROOT, RUN, Log, accepted, asked, created, finished, record, settled

CALL = ToolCallID("call_a")
KEY = EntryKey(CALL)
OTHER = SessionID("ses_other")


def started(child: SessionID = CHILD, call: str = "call_a", **fields: Any) -> ev.DelegationStarted:
    fields.setdefault("session_kind", ev.SessionKind.SUBAGENT)
    return ev.DelegationStarted(tool_call_id=ToolCallID(call), child_session_id=child, **fields)


def ended(child: SessionID = CHILD, preview: str = "") -> ev.DelegationFinished:
    return ev.DelegationFinished(tool_call_id=CALL, child_session_id=child, stop_reason="end_turn", preview=preview)


def log_of(*events: ev.Event) -> Log:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN), *events)
    return log


@pytest.mark.parametrize(
    ("kind", "card", "snapshot"),
    [
        (ev.SessionKind.SUBAGENT, SubagentCard, SubagentSnapshot),
        (ev.SessionKind.TEAM_MEMBER, TeamCard, TeamSnapshot),
        (ev.SessionKind.PARALLEL_BRANCH, ParallelCard, ParallelSnapshot),
        (ev.SessionKind.UNKNOWN, ToolCard, ToolSnapshot),
    ],
)
def test_what_a_call_starts_says_what_card_it_is(
    kind: ev.SessionKind, card: type[ToolCard], snapshot: type[ToolSnapshot]
) -> None:
    log = log_of(accepted("call_a", "custom_tool"))
    seen = Scrollback(ROOT).extend(log.envelopes)
    position = seen.position(seen.entries[0].key)
    assert position is not None and type(seen.entry(position)) is ToolCard
    log.add(started(session_kind=kind, member="ann"))
    before = seen.version(position)
    change = seen.apply(log.envelopes[-1])
    assert change.changed == (KEY,) and seen.version(position) > before
    assert type(seen.entry(position)) is card
    view = seen.call(CALL)
    assert type(view) is snapshot and view.children[0].member == "ann"


def test_members_and_branches_are_named() -> None:
    a, b = SessionID("ses_a"), SessionID("ses_b")
    team = [started(c, session_kind=ev.SessionKind.TEAM_MEMBER, member=m) for c, m in ((a, "ann"), (b, None))]
    view = Scrollback(ROOT).extend(log_of(accepted("call_a", "Team"), *team).envelopes).calls[0]
    assert isinstance(view, TeamSnapshot) and {n: c.child_session_id for n, c in view.members.items()} == {
        "ann": a,
        "ses_b": b,
    }
    branches = [started(c, session_kind=ev.SessionKind.PARALLEL_BRANCH) for c in (a, b)]
    view = Scrollback(ROOT).extend(log_of(accepted("call_a", "Parallel"), *branches).envelopes).calls[0]
    assert isinstance(view, ParallelSnapshot) and [c.child_session_id for c in view.branches] == [a, b]
    view = Scrollback(ROOT).extend(log_of(accepted("call_a", "Agent"), started()).envelopes).calls[0]
    assert isinstance(view, SubagentSnapshot) and view.child is not None and view.child.child_session_id == CHILD


def test_a_childs_evidence_is_counted_on_the_parents_card_and_stands_alone() -> None:
    log = log_of(accepted("call_a", "Agent"), record("early", origin=CHILD), started())
    log.add(record("block", origin=CHILD, call="call_of_child", severity="blocking"), session=CHILD)
    log.add(record("other", origin=OTHER, severity="conflict"))
    seen = Scrollback(ROOT).extend(log.envelopes)
    view = seen.calls[0]
    assert view.records == () and view.asks == ()
    assert (view.children[0].evidence, view.children[0].severity) == (2, "blocking"), "H7: the denial is visible"
    assert {e.record.hook_id for e in seen.evidence if e.record} == {"early", "block", "other"}
    (line,) = summaries(view)
    assert line.severity == "blocking" and "2 pieces of evidence, most severe blocking" in line.text


def test_three_children_ask_and_a_refusal_shows_on_the_parents_card() -> None:
    children = [SessionID(f"ses_{n}") for n in range(3)]
    log = log_of(accepted("call_a", "Parallel"))
    for child in children:
        log.add(started(child, session_kind=ev.SessionKind.PARALLEL_BRANCH))
        log.add(asked(f"ask_{child}", "call_x", child), session=child)
    seen = Scrollback(ROOT).extend(log.envelopes)
    assert [a.ask.origin_session_id for a in seen.open_asks] == children
    assert [c.open_asks for c in seen.calls[0].children] == [1, 1, 1] and seen.session.status == "running"
    refusal = settled(f"ask_{children[1]}", "call_x", "deny", children[1])
    log.add(msgspec.structs.replace(refusal, receipt=msgspec.structs.replace(refusal.receipt, note="not here")))
    change = seen.apply(log.envelopes[-1])
    assert KEY in change.changed
    assert [c.open_asks for c in seen.calls[0].children] == [1, 0, 1]
    assert [c.severity for c in seen.calls[0].children] == ["notable", "blocking", "notable"]
    assert [a.ask.origin_session_id for a in seen.open_asks] == [children[0], children[2]]


def test_the_most_severe_state_follows_the_revisions() -> None:
    log = log_of(accepted("call_a", "Agent"), started(), record("h", 1, origin=CHILD, severity="warning"))
    seen = Scrollback(ROOT).extend(log.envelopes)
    assert seen.calls[0].children[0].severity == "warning"
    log.add(record("h", 2, origin=CHILD, severity="benign"))
    assert KEY in seen.apply(log.envelopes[-1]).changed
    assert (seen.calls[0].children[0].severity, seen.calls[0].children[0].evidence) == ("benign", 1)


def test_a_conflict_of_a_child_counts_on_its_parents_card() -> None:
    one, other = (record("h", 1, origin=CHILD, message=message) for message in ("one", "other"))
    log = log_of(accepted("call_a", "Agent"), started(), one, other)
    child = Scrollback(ROOT).extend(log.envelopes).calls[0].children[0]
    assert (child.evidence, child.severity) == (2, "conflict")


def test_previews_are_bounded_and_live_ones_give_way_to_the_last() -> None:
    log = log_of(accepted("call_a", "Agent"), started(preview="p" * 10 * PREVIEW))
    progress = ev.DelegationProgress(tool_call_id=CALL, child_session_id=CHILD, preview="x" * 10 * PREVIEW + "end")
    log.add(progress)
    seen = Scrollback(ROOT).extend(log.envelopes)
    assert len(seen.calls[0].children[0].preview) == PREVIEW
    assert len(seen.preview(CHILD)) == PREVIEW and seen.preview(CHILD).endswith("end")
    log.add(ended(preview="all done"))
    seen.extend(log.envelopes)
    assert seen.preview(CHILD) == "" and seen.calls[0].children[0].preview == "all done"
    assert seen.calls[0].children[0].stop_reason == "end_turn"


def test_no_child_is_taken_over_and_none_ends_that_never_began() -> None:
    events = [accepted("call_a", "Agent"), accepted("call_b", "Agent"), started(), started(call="call_b")]
    seen = Scrollback(ROOT).extend(log_of(*events, ended(OTHER), started(OTHER, "call_z")).envelopes)
    strays = [e.reason for e in seen.entries if isinstance(e, UnknownEntry)]
    assert strays == ["the child was started by another call", "no such delegation", "no such call"]
    assert [len(view.children) for view in seen.calls] == [1, 0]


def test_a_finished_subagent_is_a_finished_call() -> None:
    seen = Scrollback(ROOT).extend(
        log_of(accepted("call_a", "Agent"), started(), ended(), finished("call_a")).envelopes
    )
    assert seen.calls[0].status == "ok" and isinstance(seen.calls[0], SubagentSnapshot)


def test_a_child_that_goes_on_for_another_call_is_on_both_cards() -> None:
    log = log_of(
        accepted("call_a", "Agent"),
        started(agent_type="finder"),
        ended(preview="found"),
        finished("call_a"),
        accepted("call_b", "Agent"),
        started(call="call_b", runs_before=1),
        asked("ask_1", "call_x", CHILD),
    )
    seen = Scrollback(ROOT).extend(log.envelopes)
    first, second = seen.calls
    assert [child.open_asks for card in (first, second) for child in card.children] == [1, 1]
    assert first.children[0].stop_reason == "end_turn" and first.children[0].agent_type == "finder"
    assert second.children[0].stop_reason is None
    assert not [entry for entry in seen.entries if isinstance(entry, UnknownEntry)]


def test_what_a_team_shares_is_on_its_card() -> None:
    def task(number: int, state: ev.TaskState) -> ev.Event:
        of = ev.TeamTask(number=number, title=f"task {number}", state=state)
        return ev.TeamTaskChanged(tool_call_id=CALL, task=of, changed_by=ToolCallID("call_x"))

    def message(number: int) -> ev.Event:
        by = ToolCallID("call_x")
        return ev.TeamMessageSent(tool_call_id=CALL, number=number, sender="ann", text=f"m{number}", sent_by=by)

    log = log_of(
        accepted("call_a", "Team"),
        task(2, "open"),
        task(1, "claimed"),
        task(2, "done"),
        *(message(n) for n in range(1, 60)),
        finished("call_a"),
        task(3, "open"),
    )
    seen = Scrollback(ROOT).extend(log.envelopes)
    view = seen.call(CALL)
    assert isinstance(view, TeamSnapshot)
    assert [(t.number, t.state) for t in view.tasks] == [(1, "claimed"), (2, "done")]
    assert [m.number for m in view.messages] == list(range(10, 60))
    late = [entry for entry in seen.entries if isinstance(entry, UnknownEntry)]
    assert [entry.reason for entry in late] == ["the call was finished before"]


def surfaced(offset: int, **what: Any) -> ev.DelegationSurfaced:
    place: dict[str, Any] = {"child_offset": Offset(offset), "origin_offset": Offset(offset), "recorded_at": 7}
    return ev.DelegationSurfaced(tool_call_id=CALL, child_session_id=CHILD, origin_session_id=CHILD, **place, **what)


def test_what_surfaces_is_evidence_of_its_origin_and_the_same_as_the_childs_own_event() -> None:
    ask, receipt = asked("ask_1", "call_a", CHILD), settled("ask_1", "call_a", "deny", CHILD)
    told = record("hook_1", origin=CHILD)
    log = log_of(
        accepted("call_a", "Agent"),
        started(),
        surfaced(3, ask=ask.ask),
        surfaced(4, record=told.record),
        surfaced(6, receipt=receipt.receipt),
    )
    seen = Scrollback(ROOT).extend(log.envelopes)
    view = seen.call(CALL)
    assert view is not None and not view.asks and not view.records
    assert (view.children[0].evidence, view.children[0].open_asks) == (2, 0)
    sources = [(e.source.session_id, e.source.offset) for e in seen.entries if isinstance(e, EvidenceEntry)]
    assert sources == [(CHILD, 3), (CHILD, 4)]
    stray = surfaced(8, ask=asked("ask_2", "call_a", CHILD).ask)
    lost = log_of(accepted("call_a", "Agent"), stray)
    seen = Scrollback(ROOT).extend(lost.envelopes)
    assert [e.reason for e in seen.entries if isinstance(e, UnknownEntry)] == ["no such delegation"]
