"""The scrollback: attachment by ids alone, revision rules, detached views."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.identity import AskID, HookID, SessionID, ToolCallID, arguments_digest, review_id
from counterfoil.scrollback import MessageEntry, NoticeEntry, RunEntry, Scrollback, ToolCard, UnknownEntry
from tests.scrollback.builders import (
    CHILD,
    LOCAL,
    ROOT,
    RUN,
    Log,
    accepted,
    asked,
    created,
    finished,
    record,
    see,
    settled,
    the_evidence,
)


def test_a_call_goes_from_accepted_over_asked_and_started_to_finished() -> None:
    log, seen = Log(), Scrollback(ROOT)
    digest = arguments_digest({"file_path": "a"})
    steps: list[tuple[ev.Event, str]] = [
        (accepted("call_a", file_path="a"), "accepted"),
        (asked("ask_1", file_path="a"), "asked"),
        (settled("ask_1", file_path="a"), "accepted"),
        (ev.CallStarted(tool_call_id=ToolCallID("call_a"), arguments_digest=digest), "started"),
        (finished("call_a"), "finished"),
    ]
    for event, state in steps:
        log.add(event)
        seen.extend(log.envelopes)
        view = seen.call(ToolCallID("call_a"))
        assert view is not None and view.state == state
    view = seen.calls[0]
    assert (view.status, view.executed, view.duration_ms, ev.text_of(view.result)) == ("ok", "yes", 7, "done")
    assert view.receipt is not None and view.receipt.decided_by == LOCAL and view.open_ask is None


def test_effective_arguments_stand_beside_the_models_own() -> None:
    call = ToolCallID("call_a")
    changed = ev.CallEffective(
        tool_call_id=call, arguments={"x": 2}, arguments_digest=arguments_digest({"x": 2}), hook_id=HookID("hook_1")
    )
    view = see(accepted("call_a", x=1), changed).calls[0]
    assert (view.arguments, view.effective, view.runs_with) == ({"x": 1}, {"x": 2}, {"x": 2})
    assert view.arguments_digest == arguments_digest({"x": 2})


def test_a_record_attaches_to_the_call_that_it_names_and_waits_for_it() -> None:
    early = see(record("hook_1"))
    assert the_evidence(early).why == "unknown_call"
    late = see(record("hook_1"), record("hook_2", 2), accepted("call_a"), record("hook_3", 3))
    assert [r.hook_id for r in late.calls[0].records] == ["hook_1", "hook_2", "hook_3"]
    assert late.evidence == ()


def test_a_record_of_a_child_or_of_no_call_stands_alone() -> None:
    log = Log()
    log.add(created(), accepted("call_a"), record("hook_1", origin=CHILD), record("hook_2", call=None))
    log.add(record("hook_3"), session=CHILD)
    log.add(accepted("call_b"), finished("call_b"), session=CHILD)
    seen = Scrollback(ROOT).extend(log.envelopes)
    assert [(e.why, e.record.hook_id) for e in seen.evidence if e.record] == [
        ("child_origin", "hook_1"),
        ("no_call", "hook_2"),
        ("child_origin", "hook_3"),
    ]
    assert seen.calls[0].records == () and len(seen.calls) == 1


@pytest.mark.parametrize(
    ("second", "message_held", "conflicts"),
    [
        (record("hook_1", 6, message="new"), "new", 0),
        (record("hook_1", 4, message="old"), "first", 0),
        (record("hook_1", 5, message="first"), "first", 0),
        (record("hook_1", 5, message="other"), "first", 1),
        (record("hook_1", 5, call="call_b", message="first"), "first", 1),
        (record("hook_1", 6, call="call_b", message="first"), "first", 1),
        (record("hook_1", 5, origin=CHILD, message="first"), "first", 1),
        (record("hook_1", 0, message="no revision"), "first", 1),
    ],
)
def test_revisions_replace_are_ignored_or_become_conflict_evidence(
    second: ev.Event, message_held: str, conflicts: int
) -> None:
    seen = see(accepted("call_a"), accepted("call_b"), record("hook_1", 5, message="first"), second)
    (held,) = seen.calls[0].records
    assert held.message == message_held
    assert len(seen.evidence) == conflicts and seen.calls[1].records == ()


def test_a_review_whose_two_ids_differ_is_joined_to_nothing() -> None:
    call = ToolCallID("call_a")
    review = ev.Review(review_id=review_id(call, "action"), job="action", state="clear")
    seen = see(accepted("call_a"), record("rev_other", review=review))
    assert the_evidence(seen).why == "conflict" and the_evidence(seen).severity == "conflict"
    assert seen.calls[0].records == ()


def test_receipts_join_by_explicit_ids_only() -> None:
    of_another_call = see(accepted("call_a"), accepted("call_b"), asked("ask_1"), settled("ask_1", call="call_b"))
    assert the_evidence(of_another_call).why == "unmatched"
    assert of_another_call.calls[0].open_ask is not None
    without_ask = see(accepted("call_a"), settled("ask_1"))
    assert the_evidence(without_ask).why == "unmatched" and without_ask.calls[0].receipt is None
    other_arguments = see(accepted("call_a"), asked("ask_1"), settled("ask_1", file_path="/etc/passwd"))
    assert the_evidence(other_arguments).why == "conflict" and other_arguments.calls[0].receipt is None
    twice = see(accepted("call_a"), asked("ask_1"), settled("ask_1"), settled("ask_1", verdict="deny"))
    assert the_evidence(twice).why == "conflict"
    assert twice.calls[0].receipt is not None and twice.calls[0].receipt.verdict == "allow"


def test_a_withdrawn_ask_gives_way_to_a_new_one() -> None:
    withdrawn = ev.AskWithdrawn(
        ask_id=AskID("ask_1"), origin_session_id=ROOT, tool_call_id=ToolCallID("call_a"), reason="changed"
    )
    seen = see(accepted("call_a"), asked("ask_1"), withdrawn, asked("ask_2"))
    assert [a.state for a in seen.calls[0].asks] == ["withdrawn", "open"]
    assert [a.ask.ask_id for a in seen.open_asks] == ["ask_2"] and seen.session.status == "awaiting"


def test_views_are_detached() -> None:
    log = Log()
    log.add(created(), accepted("call_a", file_path=["a"]), asked("ask_1", file_path=["a"]))
    seen = Scrollback(ROOT).extend(log.envelopes)
    before = seen.calls[0]
    before.arguments["file_path"].append("changed")
    before.asks[0].ask.arguments["file_path"].append("changed")
    assert seen.calls[0].arguments == {"file_path": ["a"]}
    assert seen.calls[0].asks[0].ask.arguments == {"file_path": ["a"]}
    log.add(finished("call_a"))
    seen.extend(log.envelopes)
    assert before.state == "asked" and seen.calls[0].state == "finished"


def test_what_streams_gives_way_to_what_is_recorded() -> None:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN), ev.TurnStarted(turn=1, provider="p", model="m"))
    log.add(
        ev.MessageDelta(turn=1, text="Hel"), ev.ReasoningDelta(turn=1, text="hm"), ev.MessageDelta(turn=1, text="lo")
    )
    log.add(ev.CallDelta(turn=1, position=0, tool="Read"), ev.CallDelta(turn=1, position=0, arguments_text="{"))
    seen = Scrollback(ROOT).extend(log.envelopes)
    seen.extend(log.envelopes)
    assert (seen.live.text, seen.live.reasoning, seen.live.drafts) == ("Hello", "hm", (("Read", "{"),))
    log.add(ev.AssistantMessage(turn=1, text="Hello", reasoning="hm"))
    seen.extend(log.envelopes)
    assert seen.live.text == "" and isinstance(seen.entries[-1], MessageEntry)


def test_unknown_and_stray_events_are_shown_and_change_nothing() -> None:
    unknown = ev.UnknownEvent(original_kind="moon.phase", body=msgspec.Raw(b'{"kind":"moon.phase","x":1}'))
    seen = see(unknown, finished("call_z"), accepted("call_a"), finished("call_a"), finished("call_a", "error"))
    strays = [e for e in seen.entries if isinstance(e, UnknownEntry)]
    assert [e.kind for e in strays] == ["moon.phase", "call.finished", "call.finished"]
    assert strays[0].body == '{"kind":"moon.phase","x":1}'
    assert seen.calls[0].status == "ok"


def test_entries_stand_in_the_order_of_their_events() -> None:
    seen = see(
        ev.UserPrompt(parts=ev.text_parts("go")),
        ev.TurnRejected(turn=1, code="duplicate_pairing", reason="two calls carry one id"),
        ev.AssistantMessage(turn=1, text="I read"),
        accepted("call_a"),
        record("hook_1"),
        ev.Notice(severity="warning", code="x", text="y"),
        ev.RunFinished(run_id=RUN, stop_reason="end_turn"),
    )
    kinds = [type(e).__name__ for e in seen.entries]
    assert kinds == ["PromptEntry", "NoticeEntry", "MessageEntry", "ToolCard", "NoticeEntry", "RunEntry"]
    assert isinstance(seen.entries[1], NoticeEntry) and "rejected" in seen.entries[1].text
    assert isinstance(seen.entries[3], ToolCard) and isinstance(seen.entries[-1], RunEntry)
    assert seen.session.status == "completed"


def test_a_fork_shows_what_was_copied_with_its_call_and_nothing_later_of_its_parents() -> None:
    parent, grand = SessionID("ses_parent"), SessionID("ses_grand")
    log = Log()
    of = ev.Relationship(parent_session_id=parent, forked_at=6, copied_from=(parent, grand))
    log.add(msgspec.structs.replace(created(), session_kind=ev.SessionKind.FORK, relationship=of))
    log.add(accepted("call_a"), record("hook_1", origin=grand), asked("ask_1", origin=parent))
    log.add(record("hook_2", 2, origin=CHILD), record("hook_3", 3, origin=parent))
    log.add(settled("ask_1", origin=parent), record("hook_4", 4, origin=parent))
    seen = Scrollback(ROOT).extend(log.envelopes)
    (call,) = seen.calls
    assert [r.hook_id for r in call.records] == ["hook_1", "hook_3"]
    assert call.origin_session_id == parent
    assert call.receipt is not None
    assert [e.record.hook_id for e in seen.evidence if e.record] == ["hook_2", "hook_4"]
