"""Every rule of attachment, as a table: what stands on the card, what stands alone and why. By ids alone."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import AskID, Digest, HookID, Revision, ToolCallID, arguments_digest, review_id
from counterfoil.scrollback import EvidenceEntry, NoticeEntry, ParallelCard, Scrollback, SubagentCard, TeamCard
from tests.scrollback.builders import CHILD, LOCAL, ROOT, RUN, Log, accepted, asked, created, finished, record, settled

CALL = ToolCallID("call_a")
REVIEW = review_id(CALL, "action")


def run(*events: ev.Event | tuple[ev.Event, str]) -> Scrollback:
    """The scrollback of these events of the root; `(event, "child")` comes from the child's own session."""
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN))
    for event in events:
        if isinstance(event, tuple):
            log.add(event[0], session=CHILD)
        else:
            log.add(event)
    return Scrollback(ROOT).extend(log.envelopes)


def told(seen: Scrollback) -> tuple[list[str], list[str], list[str]]:
    """What is on the card of the call: hooks with revisions, asks with states; and what stands alone, and why."""
    view = seen.call(CALL)
    hooks = [f"{r.hook_id} r{r.revision}" for r in view.records] if view else []
    asks = [f"{a.ask.ask_id} {a.state}" for a in view.asks] if view else []
    return hooks, asks, [f"{_name(e)} {e.why}" for e in seen.evidence]


def _name(entry: EvidenceEntry) -> str:
    if entry.record is not None:
        return entry.record.hook_id
    if entry.ask is not None:
        return entry.ask.ask.ask_id
    named = entry.receipt or entry.withdrawal
    assert named is not None
    return f"{type(named).__name__}:{named.ask_id}"


def reviewed(revision: int, state: ev.ReviewState) -> ev.HookRecorded:
    return record(REVIEW, revision, review=ev.Review(review_id=REVIEW, job="action", state=state))


def withdrawn(ask: str, call: str = "call_a") -> ev.AskWithdrawn:
    return ev.AskWithdrawn(ask_id=AskID(ask), origin_session_id=ROOT, tool_call_id=ToolCallID(call), reason="changed")


def of_review(event: ev.AskOpened | ev.AskSettled) -> ev.Event:
    if isinstance(event, ev.AskOpened):
        return ev.AskOpened(ask=msgspec.structs.replace(event.ask, review_id=REVIEW))
    return ev.AskSettled(receipt=msgspec.structs.replace(event.receipt, review_id=REVIEW))


def of_result(event: ev.AskOpened | ev.AskSettled, digest: str) -> ev.Event:
    if isinstance(event, ev.AskOpened):
        changed = msgspec.structs.replace(
            event.ask, result_digest=Digest(digest), result_size=9, choices=("release", "withhold")
        )
        return ev.AskOpened(ask=changed)
    return ev.AskSettled(
        receipt=msgspec.structs.replace(event.receipt, result_digest=Digest(digest), verdict="release")
    )


A, B = accepted("call_a"), accepted("call_b")
TABLE: dict[str, tuple[list[ev.Event | tuple[ev.Event, str]], list[str], list[str], list[str]]] = {
    "a hook of the call": ([A, record("h")], ["h r1"], [], []),
    "hooks before their call, in their order": (
        [record("h2"), record("h1"), asked("ask_1"), A, record("h3")],
        ["h2 r1", "h1 r1", "h3 r1"],
        ["ask_1 open"],
        [],
    ),
    "a candidate that was revised before its call": ([record("h", 1), record("h", 3), A], ["h r3"], [], []),
    "an ask that was settled before its call": ([asked("ask_1"), settled("ask_1"), A], [], ["ask_1 settled"], []),
    "a call that never comes": ([record("h"), asked("ask_1"), B], [], [], ["h unknown_call", "ask_1 unknown_call"]),
    "no call": ([A, record("h", call=None)], [], [], ["h no_call"]),
    "a child's record with the root's call id": ([A, record("h", origin=CHILD)], [], [], ["h child_origin"]),
    "the same, before the call": ([record("h", origin=CHILD), A], [], [], ["h child_origin"]),
    "a child's event that claims the root as origin": ([A, (record("h"), "child")], [], [], ["h child_origin"]),
    "a child's ask with the root's call id": ([A, asked("ask_1", origin=CHILD)], [], [], ["ask_1 child_origin"]),
    "two calls claim one id": ([A, B, record("h"), record("h", call="call_b")], ["h r1"], [], ["h conflict"]),
    "two origins claim one id": ([A, record("h"), record("h", origin=CHILD)], ["h r1"], [], ["h conflict"]),
    "two payloads claim one id": ([A, record("h"), record("h", message="x")], ["h r1"], [], ["h conflict"]),
    "two claims before the call": ([record("h"), record("h", message="x"), A], ["h r1"], [], ["h conflict"]),
    "a lower revision": ([A, record("h", 5), record("h", 4, message="x")], ["h r5"], [], []),
    "an equal revision, the same": ([A, record("h", 5), record("h", 5)], ["h r5"], [], []),
    "a higher revision": ([A, record("h", 5), record("h", 7)], ["h r7"], [], []),
    "a higher one that was already there": ([A, record("h", 7), record("h", 5), record("h", 6)], ["h r7"], [], []),
    "legacy: no revision": ([A, record("h", 2), record("h", 0)], ["h r2"], [], ["h no_identity"]),
    "legacy: no id": ([A, record("", 3), record("", 4)], [], [], [" no_identity", " no_identity"]),
    "hook_id differs from review_id": (
        [A, record("rev_x", review=ev.Review(review_id=REVIEW, job="action", state="clear"))],
        [],
        [],
        ["rev_x conflict"],
    ),
    "a review's states are revisions of one record": (
        [A, reviewed(1, "pending"), reviewed(2, "concern"), reviewed(4, "asked"), reviewed(9, "released")],
        [f"{REVIEW} r9"],
        [],
        [],
    ),
    "a receipt of a review joins by all its ids": (
        [A, reviewed(1, "asked"), of_review(asked("ask_1")), of_review(settled("ask_1")), reviewed(2, "released")],
        [f"{REVIEW} r2"],
        ["ask_1 settled"],
        [],
    ),
    "a receipt without the review's id": (
        [A, of_review(asked("ask_1")), settled("ask_1")],
        [],
        ["ask_1 open"],
        ["Receipt:ask_1 unmatched"],
    ),
    "a receipt without ids": ([A, asked("ask_1"), settled("", call="")], [], ["ask_1 open"], ["Receipt: unmatched"]),
    "a receipt for another call": (
        [A, B, asked("ask_1"), settled("ask_1", call="call_b")],
        [],
        ["ask_1 open"],
        ["Receipt:ask_1 unmatched"],
    ),
    "a receipt of another origin": (
        [A, asked("ask_1"), settled("ask_1", origin=CHILD)],
        [],
        ["ask_1 open"],
        ["Receipt:ask_1 unmatched"],
    ),
    "a receipt for other arguments": (
        [A, asked("ask_1"), settled("ask_1", x=1)],
        [],
        ["ask_1 open"],
        ["Receipt:ask_1 conflict"],
    ),
    "a receipt for the held result": (
        [A, of_result(asked("ask_1"), "d1"), of_result(settled("ask_1"), "d1")],
        [],
        ["ask_1 settled"],
        [],
    ),
    "a receipt for another result": (
        [A, of_result(asked("ask_1"), "d1"), of_result(settled("ask_1"), "d2")],
        [],
        ["ask_1 open"],
        ["Receipt:ask_1 conflict"],
    ),
    "two verdicts": (
        [A, asked("ask_1"), settled("ask_1"), settled("ask_1", verdict="deny")],
        [],
        ["ask_1 settled"],
        ["Receipt:ask_1 conflict"],
    ),
    "two different questions under one id": (
        [A, asked("ask_1"), asked("ask_1", x=1)],
        [],
        ["ask_1 open"],
        ["ask_1 conflict"],
    ),
    "a verdict after the withdrawal": (
        [A, asked("ask_1"), withdrawn("ask_1"), settled("ask_1")],
        [],
        ["ask_1 withdrawn"],
        ["Receipt:ask_1 conflict"],
    ),
    "a withdrawal of another call's ask": (
        [A, asked("ask_1"), withdrawn("ask_1", "call_b")],
        [],
        ["ask_1 open"],
        ["AskWithdrawn:ask_1 unmatched"],
    ),
    "answers in the other order (A4)": (
        [A, B, asked("ask_1"), asked("ask_2", "call_b"), settled("ask_2", "call_b"), settled("ask_1")],
        [],
        ["ask_1 settled"],
        [],
    ),
    "a late verdict on a settled ask leaves the new one alone (A6)": (
        [A, asked("ask_1"), settled("ask_1"), asked("ask_2"), settled("ask_1", verdict="deny")],
        [],
        ["ask_1 settled", "ask_2 open"],
        ["Receipt:ask_1 conflict"],
    ),
    "a hook after the result": ([A, finished("call_a"), record("h")], ["h r1"], [], []),
    "a call that is accepted twice": ([A, record("h"), A], ["h r1"], [], []),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_attaches_and_what_stands_alone(name: str) -> None:
    events, hooks, asks, alone = TABLE[name]
    assert told(run(*events)) == (hooks, asks, alone)


@pytest.mark.parametrize("name", TABLE)
def test_it_is_the_same_after_a_restart_in_the_middle(name: str) -> None:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN))
    for event in TABLE[name][0]:
        log.add(event[0] if isinstance(event, tuple) else event, session=CHILD if isinstance(event, tuple) else ROOT)
    half = len(log.envelopes) // 2
    seen = Scrollback(ROOT).extend(log.envelopes[: half + 1]).extend(log.envelopes[half - 1 :])
    assert told(seen) == TABLE[name][1:]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("Agent", SubagentCard),
        ("Team", TeamCard),
        ("Parallel", ParallelCard),
        ("TodoWrite", None),
        ("Edit", None),
        ("Bash", None),
        ("mcp__x__y", None),
    ],
)
def test_specialised_cards_are_tool_cards_in_all_else(tool: str, kind: type | None) -> None:
    seen = run(
        record("h1"),
        accepted("call_a", tool, x=1),
        record("h2", 2),
        record("h2", 3, message="revised"),
        asked("ask_1", x=1),
        settled("ask_1", x=1),
        finished("call_a", text="out"),
    )
    assert told(seen) == (["h1 r1", "h2 r3"], ["ask_1 settled"], [])
    view = seen.calls[0]
    assert (view.status, ev.text_of(view.result), view.records[1].message) == ("ok", "out", "revised")
    position = seen.place_of(CALL)
    assert position is not None and seen.version(position) >= 4
    assert kind is None or isinstance(seen.entry(position), kind)


def test_a_receipt_and_an_acknowledgement_stay_when_the_review_goes_on() -> None:
    ack = ev.ReviewAcknowledged(
        review_id=REVIEW,
        revision=Revision(1),
        origin_session_id=ROOT,
        tool_call_id=CALL,
        decided_by=LOCAL,
        decided_at=4,
    )
    events = [A, reviewed(1, "asked"), of_review(asked("ask_1")), ack, of_review(settled("ask_1"))]
    seen = run(*events, reviewed(5, "released"))
    view = seen.calls[0]
    assert view.receipt is not None and view.acknowledged == (ack,) and view.records[0].revision == 5
    elsewhere = [
        msgspec.structs.replace(ack, tool_call_id=ToolCallID("call_b")),
        msgspec.structs.replace(ack, origin_session_id=CHILD),
        msgspec.structs.replace(ack, revision=Revision(9)),
        msgspec.structs.replace(ack, review_id=review_id(CALL, "inbound")),
    ]
    for other in elsewhere:
        seen = run(A, B, reviewed(1, "asked"), other)
        assert all(view.acknowledged == () for view in seen.calls)
        (notice,) = (e for e in seen.entries if isinstance(e, NoticeEntry))
        assert notice.severity == "notable", "what joins nothing is not hidden"


def test_a_held_call_shows_what_is_held_and_how_it_ended() -> None:
    held = ev.CallHeld(tool_call_id=CALL, review_id=review_id(CALL, "inbound"), size=42, result_digest=Digest("d1"))
    start = ev.CallStarted(tool_call_id=CALL, arguments_digest=arguments_digest({}))
    view = run(A, start, held, of_result(asked("ask_1"), "d1")).calls[0]
    assert (view.state, view.held_size, view.held_digest) == ("held", 42, "d1")
    assert view.open_ask is not None and view.open_ask.choices == ("release", "withhold")
    done = run(A, start, held, of_result(asked("ask_1"), "d1"), of_result(settled("ask_1"), "d1"), finished("call_a"))
    assert done.calls[0].receipt is not None and done.calls[0].receipt.verdict == "release"


def test_a_call_whose_ask_came_first_is_asked() -> None:
    assert run(asked("ask_1"), A).calls[0].state == "asked"
    assert run(asked("ask_1"), settled("ask_1"), A).calls[0].state == "accepted"


def test_legacy_events_are_told_apart_by_their_source() -> None:
    def legacy(seq: int | None, message: str = "same") -> Envelope:
        return Envelope(session_id=ROOT, run_id=RUN, seq=seq, event=record("", 0, message=message))

    seen = Scrollback(ROOT).extend([legacy(1), legacy(1), legacy(2), legacy(2), legacy(1)])
    assert [e.source.seq for e in seen.evidence] == [1, 2]
    assert len({e.key for e in seen.entries}) == 2
    unplaced = Scrollback(ROOT).extend([legacy(None), legacy(None)])
    assert len({e.key for e in unplaced.entries}) == 2, "rather shown twice than lost"


def test_hook_ids_of_an_identified_record_survive_a_legacy_flood() -> None:
    flood = [record("h", 0, message=str(n)) for n in range(20)]
    seen = run(A, record("h", 1, message="mine"), *flood)
    assert [r.message for r in seen.calls[0].records] == ["mine"] and len(seen.evidence) == 20
    assert HookID("h") in {r.hook_id for r in seen.records}
