"""The scrollback: attachment by ids alone, revision rules, and equal views however the events arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.events.codec import decode_event, encode_event, kind_of
from counterfoil.identity import (
    AskID,
    HookID,
    Offset,
    Revision,
    RunID,
    SessionID,
    ToolCallID,
    arguments_digest,
    review_id,
)
from counterfoil.scrollback import (
    EvidenceEntry,
    MessageEntry,
    NoticeEntry,
    RunEntry,
    Scrollback,
    ToolCard,
    UnknownEntry,
)

ROOT, CHILD, RUN = SessionID("ses_root"), SessionID("ses_child"), RunID("run_1")
LOCAL = ev.Principal(kind="local", name="ann")


class Log:
    """Gives events their envelopes, as the publisher does."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.seq = 0
        self.offsets: dict[SessionID, int] = {}

    def add(self, *events: ev.Event, session: SessionID = ROOT) -> None:
        for event in events:
            self.seq += 1
            offset = None
            if type(event) not in ev.TRANSIENT:
                self.offsets[session] = offset = self.offsets.get(session, 0) + 1
            self.envelopes.append(
                Envelope(
                    session_id=session,
                    run_id=RUN,
                    seq=self.seq,
                    offset=None if offset is None else Offset(offset),
                    recorded_at=1_000_000 + self.seq,
                    event=event,
                )
            )


def created() -> ev.SessionCreated:
    return ev.SessionCreated(session_id=ROOT, owner=LOCAL, workspace="/w", provider="p", model="m", title="t")


def accepted(call: str, tool: str = "Read", **arguments: Any) -> ev.CallAccepted:
    return ev.CallAccepted(
        tool_call_id=ToolCallID(call),
        turn=1,
        position=0,
        tool=tool,
        arguments=arguments,
        arguments_digest=arguments_digest(arguments),
    )


def finished(call: str, status: ev.CallStatus = "ok", text: str = "done") -> ev.CallFinished:
    return ev.CallFinished(
        tool_call_id=ToolCallID(call), status=status, parts=ev.text_parts(text), executed="yes", duration_ms=7
    )


def record(
    hook: str, revision: int = 1, call: str | None = "call_a", origin: SessionID = ROOT, **fields: Any
) -> ev.HookRecorded:
    fields.setdefault("severity", "notable")
    return ev.HookRecorded(
        record=ev.HookRecord(
            hook_id=HookID(hook),
            revision=Revision(revision),
            phase="PreToolUse",
            origin_session_id=origin,
            tool_call_id=None if call is None else ToolCallID(call),
            definition=ev.Definition(name="h"),
            outcome="notice",
            **fields,
        )
    )


def asked(ask: str, call: str = "call_a", origin: SessionID = ROOT, **arguments: Any) -> ev.AskOpened:
    return ev.AskOpened(
        ask=ev.Ask(
            ask_id=AskID(ask),
            origin_session_id=origin,
            tool_call_id=ToolCallID(call),
            tool="Read",
            arguments=arguments,
            arguments_digest=arguments_digest(arguments),
            reason="because",
        )
    )


def settled(
    ask: str, call: str = "call_a", verdict: ev.Verdict = "allow", origin: SessionID = ROOT, **arguments: Any
) -> ev.AskSettled:
    return ev.AskSettled(
        receipt=ev.Receipt(
            ask_id=AskID(ask),
            origin_session_id=origin,
            tool_call_id=ToolCallID(call),
            verdict=verdict,
            decided_by=LOCAL,
            decided_at=5,
            arguments_digest=arguments_digest(arguments),
        )
    )


def see(*events: ev.Event) -> Scrollback:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN), *events)
    return Scrollback(ROOT).extend(log.envelopes)


def the_evidence(seen: Scrollback) -> EvidenceEntry:
    (entry,) = seen.evidence
    return entry


# ---- facts ------------------------------------------------------------------------------------------------------


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


# ---- properties -------------------------------------------------------------------------------------------------

_calls, _hooks = st.sampled_from(["call_a", "call_b", "call_c"]), st.sampled_from(["hook_1", "hook_2", "hook_3"])
_asks, _origins = st.sampled_from(["ask_1", "ask_2"]), st.sampled_from([ROOT, CHILD])
_texts = st.sampled_from(["one", "two"])
_any_event: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(accepted, _calls),
    st.builds(finished, _calls, st.sampled_from(["ok", "error", "denied"])),
    st.builds(lambda c: ev.CallStarted(tool_call_id=ToolCallID(c), arguments_digest=arguments_digest({})), _calls),
    st.builds(
        lambda h, r, c, o, m: record(h, r, c, o, message=m),
        _hooks,
        st.integers(0, 4),
        st.none() | _calls,
        _origins,
        _texts,
    ),
    st.builds(lambda a, c, o: asked(a, c, o), _asks, _calls, _origins),
    st.builds(lambda a, c, v, o: settled(a, c, v, o), _asks, _calls, st.sampled_from(["allow", "deny"]), _origins),
    st.builds(lambda t: ev.UserPrompt(parts=ev.text_parts(t)), _texts),
    st.builds(lambda t: ev.AssistantMessage(turn=1, text=t), _texts),
    st.builds(lambda t: ev.MessageDelta(turn=1, text=t), _texts),
    st.builds(lambda c, t: ev.CallProgress(tool_call_id=ToolCallID(c), text=t), _calls, _texts),
    st.just(ev.TurnStarted(turn=1, provider="p", model="m")),
    st.just(ev.RunStarted(run_id=RUN)),
    st.just(ev.RunFinished(run_id=RUN, stop_reason="end_turn")),
    st.builds(
        lambda n: ev.UnknownEvent(original_kind="new.kind", body=msgspec.Raw(b'{"n":%d}' % n)), st.integers(0, 2)
    ),
)
_sessions = st.lists(st.tuples(_any_event, st.sampled_from([ROOT, ROOT, ROOT, CHILD])), max_size=40)


def _log(drawn: Sequence[tuple[ev.Event, SessionID]]) -> list[Envelope]:
    log = Log()
    log.add(created())
    for event, session in drawn:
        log.add(event, session=session)
    return log.envelopes


def _final(seen: Scrollback) -> tuple[Any, ...]:
    return (seen.entries, seen.calls, seen.session, seen.open_asks, seen.records, seen.through)


@settings(max_examples=150, deadline=None)
@given(_sessions, st.data())
def test_views_are_equal_however_the_events_arrive(
    drawn: list[tuple[ev.Event, SessionID]], data: st.DataObject
) -> None:
    log = _log(drawn)
    whole = _final(Scrollback(ROOT).extend(log))
    durable = [e for e in log if e.offset is not None]
    twice = [e for e in log for _ in range(2)]
    cut = data.draw(st.integers(0, len(log)))
    back = data.draw(st.integers(0, cut))
    replayed = [
        msgspec.structs.replace(e, event=decode_event(kind_of(e.event), encode_event(e.event))) for e in durable
    ]
    assert _final(Scrollback(ROOT).extend(twice)) == whole
    assert _final(Scrollback(ROOT).extend(durable)) == whole
    assert _final(Scrollback(ROOT).extend([*log, *log])) == whole
    assert _final(Scrollback(ROOT).extend([*durable[:cut], *log[back:]])) == whole
    assert _final(Scrollback(ROOT).extend(replayed)) == whole


@settings(max_examples=150, deadline=None)
@given(_sessions)
def test_no_evidence_disappears_and_none_is_shown_on_a_card_that_it_does_not_name(
    drawn: list[tuple[ev.Event, SessionID]],
) -> None:
    seen = Scrollback(ROOT)
    visible: set[str] = set()
    for envelope in _log(drawn):
        seen.apply(envelope)
        shown = [r for call in seen.calls for r in call.records] + [e.record for e in seen.evidence if e.record]
        assert visible <= {r.hook_id for r in shown}
        visible = {r.hook_id for r in shown}
        for call in seen.calls:
            assert all((r.tool_call_id, r.origin_session_id) == (call.tool_call_id, ROOT) for r in call.records)
            assert all(a.ask.tool_call_id == call.tool_call_id for a in call.asks)
            assert all(a.receipt is None or a.receipt.tool_call_id == call.tool_call_id for a in call.asks)
