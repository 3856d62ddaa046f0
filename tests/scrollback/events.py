"""Any events in any order: also such that no honest session has."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import AskID, Digest, Revision, SessionID, ToolCallID, arguments_digest, review_id
from tests.scrollback.builders import CHILD, LOCAL, ROOT, RUN, Log, accepted, asked, created, finished, record, settled

CALLS = [ToolCallID(f"call_{letter}") for letter in "abc"]
CHILDREN = [CHILD, SessionID("ses_other")]
_calls, _hooks = st.sampled_from(CALLS), st.sampled_from(["hook_1", "hook_2"])
_asks, _origins = st.sampled_from(["ask_1", "ask_2"]), st.sampled_from([ROOT, CHILD])
_children = st.sampled_from(CHILDREN)
_texts = st.sampled_from(["one", "two"])
_severities = st.sampled_from(["benign", "notable", "warning", "blocking"])
_states = st.sampled_from(["pending", "clear", "concern", "failed", "asked", "held", "released", "withheld"])
_kinds = st.sampled_from(list(ev.SessionKind))


def _reviewed(call: ToolCallID, revision: int, state: ev.ReviewState, origin: SessionID) -> ev.Event:
    review = review_id(call, "action")
    of = ev.Review(review_id=review, job="action", state=state)
    return record(review, revision, call, origin, review=of)


def _acknowledged(call: ToolCallID, revision: int) -> ev.Event:
    return ev.ReviewAcknowledged(
        review_id=review_id(call, "action"),
        revision=Revision(revision),
        origin_session_id=ROOT,
        tool_call_id=call,
        decided_by=LOCAL,
        decided_at=1,
    )


def _withdrawn(ask: str, call: ToolCallID, origin: SessionID) -> ev.Event:
    return ev.AskWithdrawn(ask_id=AskID(ask), origin_session_id=origin, tool_call_id=call, reason="changed")


_of_calls: list[st.SearchStrategy[ev.Event]] = [
    st.builds(accepted, _calls, st.sampled_from(["Read", "Agent"])),
    st.builds(accepted, _calls),
    st.builds(finished, _calls, st.sampled_from(["ok", "error", "denied"])),
    st.builds(lambda c: ev.CallStarted(tool_call_id=c, arguments_digest=arguments_digest({})), _calls),
    st.builds(
        lambda c: ev.CallHeld(tool_call_id=c, review_id=review_id(c, "inbound"), size=3, result_digest=Digest("d")),
        _calls,
    ),
    st.builds(lambda c, t: ev.CallProgress(tool_call_id=c, text=t), _calls, _texts),
    st.builds(
        lambda c, s, k: ev.DelegationStarted(tool_call_id=c, child_session_id=s, session_kind=k),
        _calls,
        _children,
        _kinds,
    ),
    st.builds(
        lambda c, s, t: ev.DelegationProgress(tool_call_id=c, child_session_id=s, preview=t), _calls, _children, _texts
    ),
    st.builds(
        lambda c, s: ev.DelegationFinished(tool_call_id=c, child_session_id=s, stop_reason="end_turn"),
        _calls,
        _children,
    ),
    st.builds(
        lambda c, n, t: ev.TeamTaskChanged(tool_call_id=c, task=ev.TeamTask(number=n, title=t), changed_by=c),
        _calls,
        st.integers(1, 3),
        _texts,
    ),
    st.builds(
        lambda c, n, t: ev.TeamMessageSent(tool_call_id=c, number=n, sender="a", text=t, sent_by=c),
        _calls,
        st.integers(1, 3),
        _texts,
    ),
]
_of_evidence: list[st.SearchStrategy[ev.Event]] = [
    st.builds(
        lambda h, r, c, o, m, s: record(h, r, c, o, message=m, severity=s),
        _hooks,
        st.integers(0, 4),
        st.none() | _calls,
        _origins,
        _texts,
        _severities,
    ),
    st.builds(_reviewed, _calls, st.integers(1, 4), _states, _origins),
    st.builds(_acknowledged, _calls, st.integers(1, 3)),
    st.builds(lambda a, c, o: asked(a, c, o), _asks, _calls, _origins),
    st.builds(lambda a, c, v, o: settled(a, c, v, o), _asks, _calls, st.sampled_from(["allow", "deny"]), _origins),
    st.builds(_withdrawn, _asks, _calls, _origins),
]
_others: list[st.SearchStrategy[ev.Event]] = [
    st.builds(lambda t: ev.UserPrompt(parts=ev.text_parts(t)), _texts),
    st.builds(lambda t: ev.AssistantMessage(turn=1, text=t), _texts),
    st.builds(lambda t: ev.AssistantMessage(turn=1, text=t, reasoning="hm"), _texts),
    st.builds(lambda t: ev.MessageDelta(turn=1, text=t), _texts),
    st.builds(lambda s, t: ev.Notice(severity=s, code="n", text=t), _severities, _texts),
    st.just(ev.TurnStarted(turn=1, provider="p", model="m")),
    st.just(ev.RunStarted(run_id=RUN)),
    st.just(ev.RunFinished(run_id=RUN, stop_reason="end_turn")),
    st.builds(
        lambda n: ev.UnknownEvent(original_kind="new.kind", body=msgspec.Raw(b'{"n":%d}' % n)), st.integers(0, 2)
    ),
]
Drawn = list[tuple[ev.Event, SessionID]]
drawn_sessions: st.SearchStrategy[Drawn] = st.lists(
    st.tuples(
        st.one_of(*_of_calls, *_of_evidence, *_of_evidence, *_others), st.sampled_from([ROOT, ROOT, ROOT, CHILD])
    ),
    min_size=4,
    max_size=50,
)


def log_of(drawn: Sequence[tuple[ev.Event, SessionID]]) -> list[Envelope]:
    """The envelopes of these events, each of its session."""
    log = Log()
    log.add(created())
    for event, session in drawn:
        log.add(event, session=session)
    return log.envelopes
