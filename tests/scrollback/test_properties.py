"""Properties: equal views however the events arrive, and no evidence lost or misplaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.events.codec import decode_event, encode_event, kind_of
from counterfoil.identity import SessionID, ToolCallID, arguments_digest
from counterfoil.scrollback import Scrollback
from tests.scrollback.builders import (
    CHILD,
    ROOT,
    RUN,
    Log,
    accepted,
    asked,
    created,
    finished,
    record,
    settled,
)

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
