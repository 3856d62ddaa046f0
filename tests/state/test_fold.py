"""The fold: the same from the start and from each snapshot, and closed to what can't follow."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.events import codec
from counterfoil.identity import (
    AskID,
    Digest,
    HookID,
    Offset,
    ReviewID,
    ReviewJob,
    Revision,
    RunID,
    SessionID,
    ToolCallID,
    result_digest,
    review_id,
)
from counterfoil.identity import arguments_digest as digest_of
from counterfoil.state import Row, SessionState, apply, decode_snapshot, encode_snapshot, fold
from tests.support.sessions import PERSON, SESSION, Log, Placed, accepted, created, random_log, session_log, to_rows
from tests.support.strategies import examples

RUN = RunID("run_1")
CALL = ToolCallID("call_1")
ARGUMENTS: dict[str, Any] = {"command": "ls"}
DIGEST = digest_of(ARGUMENTS)


@examples(60)
@given(session_log(max_runs=2))
def test_a_snapshot_and_the_tail_give_the_state_of_a_fold_from_the_start_at_every_prefix(log: Log) -> None:
    whole = fold(log.rows)
    state: SessionState | None = None
    for at, row in enumerate(log.rows, 1):
        state = apply(state, Row(row))
        restored = decode_snapshot(encode_snapshot(state))
        assert restored == state
        if at % 7 == 0 or at > len(log.rows) - 5:
            assert fold(log.rows[at:], restored) == whole
    assert state == whole


@examples(120)
@given(session_log())
def test_a_fold_is_the_same_each_time_and_changes_no_row(log: Log) -> None:
    before = copy.deepcopy(log.rows)
    assert encode_snapshot(fold(log.rows)) == encode_snapshot(fold(log.rows))
    assert log.rows == before


@examples(15)
@given(session_log(max_runs=2))
def test_a_row_folded_live_gives_what_it_gives_when_read(log: Log) -> None:
    live: SessionState | None = None
    for row in log.rows:
        entry = ev.Entry(codec.event_of(row), codec.decode_private(row.private))
        live = apply(live, Row(row, entry))
    assert live == fold(log.rows)


def test_the_walk_meets_every_logged_kind() -> None:
    met = {row.kind for seed in range(60) for row in random_log(seed).rows}
    assert met >= _logged()


def _logged() -> set[str]:
    return {name for name, kind in codec.KINDS.items() if kind not in ev.TRANSIENT}


@examples(120)
@given(session_log())
def test_what_the_state_counts_is_what_the_log_holds(log: Log) -> None:
    state = fold(log.rows)
    events = [codec.event_of(row) for row in log.rows]
    records = [e.record.revision for e in events if isinstance(e, ev.HookRecorded)]
    assert state.revision == max(records, default=0)
    assert state.unknown_events == sum(isinstance(e, ev.UnknownEvent) for e in events)
    assert state.runs == sum(isinstance(e, ev.RunStarted) for e in events)
    assert state.usage.requests == sum(isinstance(e, ev.TurnFinished) for e in events)
    assert state.offset == len(log.rows)
    assert (state.run, state.open_turn, state.asks, state.inbox) == (None, None, {}, [])


# ---- what can't follow --------------------------------------------------------------------------------------


def ask(ask_id: str = "ask_1", **changes: Any) -> ev.AskOpened:
    values: dict[str, Any] = {
        "ask_id": AskID(ask_id),
        "origin_session_id": SESSION,
        "tool_call_id": CALL,
        "tool": "Bash",
        "arguments": ARGUMENTS,
        "arguments_digest": DIGEST,
        "reason": "r",
    }
    return ev.AskOpened(ask=ev.Ask(**(values | changes)))


def answer(ask_id: str = "ask_1", **changes: Any) -> ev.AskSettled:
    values: dict[str, Any] = {
        "ask_id": AskID(ask_id),
        "origin_session_id": SESSION,
        "tool_call_id": CALL,
        "verdict": "allow",
        "decided_by": PERSON,
        "decided_at": 1,
        "arguments_digest": DIGEST,
    }
    return ev.AskSettled(receipt=ev.Receipt(**(values | changes)))


def withdrawn(**changes: Any) -> ev.AskWithdrawn:
    values: dict[str, Any] = {"ask_id": "ask_1", "origin_session_id": SESSION, "tool_call_id": CALL, "reason": "r"}
    return ev.AskWithdrawn(**(values | changes))


def started(call: str = CALL, digest: str = DIGEST, attempt: int = 1) -> ev.CallStarted:
    return ev.CallStarted(tool_call_id=ToolCallID(call), arguments_digest=Digest(digest), attempt=attempt)


def finished(call: str = CALL, **changes: Any) -> ev.CallFinished:
    values: dict[str, Any] = {"tool_call_id": ToolCallID(call), "status": "ok", "executed": "yes"}
    return ev.CallFinished(**(values | changes))


def acknowledged(revision: int = 1) -> ev.ReviewAcknowledged:
    return ev.ReviewAcknowledged(
        review_id=review_id(CALL, "action"),
        revision=Revision(revision),
        origin_session_id=SESSION,
        tool_call_id=CALL,
        decided_by=PERSON,
        decided_at=1,
    )


def effective(arguments: dict[str, Any] | None = None) -> ev.CallEffective:
    changed = {"command": "pwd"} if arguments is None else arguments
    return ev.CallEffective(
        tool_call_id=CALL, arguments=changed, arguments_digest=digest_of(changed), hook_id=HookID("hook_1")
    )


def compaction(through: int) -> ev.CompactionDone:
    return ev.CompactionDone(
        summary="s", replaced_from=Offset(1), replaced_through=Offset(through), archive=f"log:1-{through}"
    )


RESULT = (ev.TextPart(text="r"),)
KEPT = ev.HeldResult(status="ok", parts=RESULT, executed="yes")
INBOUND = review_id(CALL, "inbound")
HELD = ev.Entry(ev.CallHeld(tool_call_id=CALL, review_id=INBOUND, size=1, result_digest=result_digest(RESULT)), KEPT)


def review(state: ev.ReviewState, job: ReviewJob = "inbound", revision: int = 1, **changes: Any) -> ev.HookRecorded:
    made = ev.Review(review_id=review_id(CALL, job), job=job, state=state)
    values: dict[str, Any] = {
        "hook_id": review_id(CALL, job),
        "revision": Revision(revision),
        "phase": "review",
        "origin_session_id": SESSION,
        "tool_call_id": CALL,
        "definition": ev.Definition(name="checker"),
        "outcome": "reviewed",
        "severity": "warning",
        "review": made,
    }
    return ev.HookRecorded(record=ev.HookRecord(**(values | changes)))


def released(verdict: str = "release") -> ev.AskSettled:
    return answer("ask_2", verdict=verdict, review_id=INBOUND, result_digest=result_digest(RESULT))


ASKED_RELEASE = ask("ask_2", review_id=INBOUND, result_digest=result_digest(RESULT), choices=("release", "withhold"))
TURN = ev.TurnStarted(turn=1, provider="p", model="m")
MESSAGE = ev.AssistantMessage(turn=1, text="t")
TURN_END = ev.TurnFinished(turn=1)
RUN_START = ev.RunStarted(run_id=RUN)
RUN_END = ev.RunFinished(run_id=RUN, stop_reason="end_turn")
PROMPT = ev.UserPrompt(parts=(ev.TextPart(text="p"),))
REJECTED = ev.TurnRejected(turn=1, code="empty_turn", reason="r")
ACCEPTED = accepted(CALL, ARGUMENTS).event
UNREADABLE = accepted(CALL, {}, problem="not an object").event

IDLE: tuple[ev.Event, ...] = (created(),)
RUNNING = (*IDLE, RUN_START, PROMPT)
ASKED_MODEL = (*RUNNING, TURN)
OPEN = (*ASKED_MODEL, MESSAGE, ACCEPTED, TURN_END)
PARKED = (*OPEN, ask())
ALLOWED = (*PARKED, answer())
STARTED = (*ALLOWED, started())
HELD_BACK: tuple[ev.Event | ev.Entry, ...] = (*STARTED, HELD, review("held"))
DONE = (*STARTED, finished())


def rows_of(*events: ev.Event | ev.Entry, run_id: RunID | None = RUN) -> list[ev.StoredEvent]:
    """Rows of `events`, all after the first in the run."""
    return to_rows(
        Placed(event if isinstance(event, ev.Entry) else ev.Entry(event), run_id if at else None)
        for at, event in enumerate(events)
    )


ILLEGAL: dict[str, tuple[tuple[ev.Event | ev.Entry, ...], ev.Event | ev.Entry]] = {
    "the log begins with something else": ((), RUN_START),
    "the session is created twice": (IDLE, created()),
    "a run starts while one is open": (RUNNING, ev.RunStarted(run_id=RunID("run_2"))),
    "a run starts twice": (RUNNING, RUN_START),
    "a run starts while calls are open": (OPEN, ev.RunStarted(run_id=RunID("run_2"))),
    "a run ends that did not start": (IDLE, RUN_END),
    "a run ends twice": ((*RUNNING, RUN_END), RUN_END),
    "another run ends": (RUNNING, ev.RunFinished(run_id=RunID("run_2"), stop_reason="end_turn")),
    "a run ends while calls are open": (OPEN, RUN_END),
    "a turn starts outside a run": (IDLE, TURN),
    "a turn starts while calls are open": (OPEN, TURN),
    "a turn ends outside a run": (IDLE, TURN_END),
    "a turn is rejected outside a run": (IDLE, REJECTED),
    "a turn is rejected after it was accepted": (OPEN, REJECTED),
    "a message comes outside a run": (IDLE, MESSAGE),
    "a message comes while calls are open": (OPEN, MESSAGE),
    "a call is accepted outside a run": (IDLE, ACCEPTED),
    "a call is accepted outside a turn": (RUNNING, ACCEPTED),
    "a call is accepted twice": (OPEN, ACCEPTED),
    "a call is accepted twice after it finished": ((*ASKED_MODEL, MESSAGE, ACCEPTED, finished()), ACCEPTED),
    "an unknown call changes": (RUNNING, effective()),
    "a call changes while its ask is open": (PARKED, effective()),
    "a call changes after its start": (STARTED, effective()),
    "an unknown call starts": (OPEN, started("call_2")),
    "a call starts with other arguments": (OPEN, started(digest="blake2b:0")),
    "a call starts with the arguments that it had before a change": ((*OPEN, effective()), started()),
    "a call starts while its ask is open": (PARKED, started()),
    "a call starts twice": (STARTED, started()),
    "a call starts a second time as an earlier attempt": ((*STARTED, started(attempt=3)), started(attempt=2)),
    "a call starts after a denial": ((*PARKED, answer(verdict="deny")), started()),
    "a call starts whose result is held": (HELD_BACK, started(attempt=2)),
    "a call starts after its end": (DONE, started(attempt=2)),
    "a call starts that has no arguments": (
        (*ASKED_MODEL, MESSAGE, UNREADABLE, TURN_END),
        started(digest=digest_of({})),
    ),
    "a result is held of a call that did not run": (OPEN, HELD),
    "a result is held while the call is asked about": (PARKED, HELD),
    "a result is held twice": (HELD_BACK, HELD),
    "a result is held after its end": (DONE, HELD),
    "an unknown call finishes": (OPEN, finished("call_2")),
    "a call finishes while its ask is open": (PARKED, finished()),
    "a call finishes while its release is asked": ((*HELD_BACK, ASKED_RELEASE), finished(parts=RESULT)),
    "a call finishes twice": (DONE, finished()),
    "a call finishes outside its run": (IDLE, finished()),
    "an ask opens about an unknown call": (RUNNING, ask()),
    "an ask opens about a call that finished": (DONE, ask("ask_2")),
    "an ask opens about a call that runs": (STARTED, ask("ask_2")),
    "an ask opens beside another": (PARKED, ask("ask_2")),
    "an ask opens twice": (PARKED, ask()),
    "an ask opens beside another of a held result": ((*HELD_BACK, ASKED_RELEASE), ask("ask_3")),
    "an ask about a held result names another result": (HELD_BACK, ask("ask_2", result_digest=Digest("d"))),
    "an ask about a held result names none": (HELD_BACK, ask("ask_2")),
    "an ask names a result that isn't held": (OPEN, ask(result_digest=Digest("d"))),
    "an ask names a review that the call doesn't have": (OPEN, ask(review_id=review_id(CALL, "action"))),
    "a receipt releases another result": (
        (*HELD_BACK, ASKED_RELEASE),
        answer("ask_2", verdict="release", review_id=INBOUND, result_digest=Digest("d")),
    ),
    "a held result is given away without a release": (HELD_BACK, finished(parts=RESULT)),
    "a held result is given away before its review": ((*STARTED, HELD), finished(parts=RESULT)),
    "a withheld result is given away": ((*HELD_BACK, ASKED_RELEASE, released("withhold")), finished(parts=RESULT)),
    "another result than the released one is given": ((*HELD_BACK, ASKED_RELEASE, released()), finished()),
    "a held result isn't the one that its event names": (
        STARTED,
        ev.Entry(ev.CallHeld(tool_call_id=CALL, review_id=INBOUND, size=1, result_digest=Digest("d")), KEPT),
    ),
    "a held result has no private half": (STARTED, HELD.event),
    "a call starts while its review is pending": ((*OPEN, review("pending", "action")), started()),
    "a call starts that a review denied": ((*OPEN, review("denied", "action")), started()),
    "a review is of another call": (OPEN, review("clear", "action", tool_call_id=ToolCallID("call_2"))),
    "a review has the id of another job": (OPEN, review("clear", "action", hook_id=review_id(CALL, "permission"))),
    "a review is of a call that finished": (DONE, review("clear", "action")),
    "a review goes on after it was denied": (
        (*OPEN, review("denied", "action")),
        review("clear", "action", revision=2),
    ),
    "a review is acknowledged at a revision it never had": (
        (*OPEN, review("concern", "action")),
        acknowledged(revision=2),
    ),
    "an ask opens again after its answer": (ALLOWED, ask()),
    "an ask opens again after it was withdrawn": ((*PARKED, withdrawn()), ask()),
    "an ask shows a digest of other arguments": (OPEN, ask(arguments_digest=Digest("d"))),
    "an ask shows other arguments": (OPEN, ask(arguments={"command": "rm"})),
    "an ask shows what the call was before a change": ((*OPEN, effective()), ask()),
    "an ask shows another tool": (OPEN, ask(tool="Read")),
    "an ask is of another session": (OPEN, ask(origin_session_id=SessionID("ses_2"))),
    "an ask is withdrawn that is not open": (OPEN, withdrawn()),
    "an ask is withdrawn after its answer": (ALLOWED, withdrawn()),
    "an ask is withdrawn for another call": (PARKED, withdrawn(tool_call_id="call_2")),
    "an ask is withdrawn for another session": (PARKED, withdrawn(origin_session_id="ses_2")),
    "an ask is answered that is not open": (OPEN, answer()),
    "an ask is answered twice": (ALLOWED, answer()),
    "an ask is answered after it was withdrawn": ((*PARKED, withdrawn()), answer()),
    "a receipt is for another call": (PARKED, answer(tool_call_id=ToolCallID("call_2"))),
    "a receipt is for other arguments": (PARKED, answer(arguments_digest=Digest("d"))),
    "a receipt is of another session": (PARKED, answer(origin_session_id=SessionID("ses_2"))),
    "a receipt is about another review": (PARKED, answer(review_id=ReviewID(HookID("rev_1")))),
    "a compaction replaces nothing": (IDLE, compaction(1)),
    "a compaction ends before history begins": (DONE, compaction(2)),
    "a call's result can't be read": (STARTED, ev.UnknownEvent(original_kind="call.finished", body=msgspec.Raw(b"{}"))),
    "a record has no revision that can be read": (
        RUNNING,
        ev.UnknownEvent(original_kind="hook.recorded", body=msgspec.Raw(b'{"record":{}}')),
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_what_cannot_follow_is_refused_with_its_offset(case: str) -> None:
    before, event = ILLEGAL[case]
    if before:
        fold(rows_of(*before))
    with pytest.raises(FoldError, match=rf"\boffset {len(before) + 1}\b"):
        fold(rows_of(*before, event))


@pytest.mark.parametrize("case", ILLEGAL)
def test_a_refusal_leaves_a_fresh_fold_as_it_was(case: str) -> None:
    before, event = ILLEGAL[case]
    rows = rows_of(*before, event)
    good = fold(rows[:-1]) if before else None
    with pytest.raises(FoldError):
        fold(rows)
    if good is not None:
        assert fold(rows[:-1]) == good


def _moved(row: ev.StoredEvent, **changes: Any) -> ev.StoredEvent:
    return msgspec.structs.replace(row, **changes)


DISPLACED: dict[str, Callable[[list[ev.StoredEvent]], list[ev.StoredEvent]]] = {
    "a row is missing": lambda rows: [*rows[:3], *rows[4:]],
    "a row stands twice": lambda rows: [*rows[:4], *rows[3:]],
    "two rows changed places": lambda rows: [*rows[:3], rows[4], rows[3], *rows[5:]],
    "the first row is missing": lambda rows: rows[1:],
    "the first row has another offset": lambda rows: [_moved(rows[0], offset=Offset(5))],
    "a row is of another session": lambda rows: [*rows[:3], _moved(rows[3], session_id=SessionID("ses_2"))],
    "a row is of another run": lambda rows: [*rows[:3], _moved(rows[3], run_id=RunID("run_2"))],
    "a row is of no run": lambda rows: [*rows[:3], _moved(rows[3], run_id=None)],
}


@pytest.mark.parametrize("case", DISPLACED)
def test_rows_out_of_place_are_refused(case: str) -> None:
    with pytest.raises(FoldError, match=r"\boffset \d+"):
        fold(DISPLACED[case](rows_of(*DONE)))


def test_an_empty_log_has_no_state() -> None:
    with pytest.raises(FoldError):
        fold([])


# ---- what follows -------------------------------------------------------------------------------------------


def test_a_call_that_may_run_again_starts_again_as_a_later_attempt() -> None:
    state = fold(rows_of(*STARTED, started(attempt=2)))
    call = state.call(CALL)
    assert call is not None
    assert (call.phase, call.attempt) == ("started", 2)


def test_an_answer_stays_with_the_call_until_its_arguments_change() -> None:
    call = fold(rows_of(*ALLOWED)).call(CALL)
    assert call is not None and call.receipt is not None
    call = fold(rows_of(*ALLOWED, effective())).call(CALL)
    assert call is not None and call.receipt is None


def test_a_held_result_is_asked_about_released_and_finished() -> None:
    state = fold(rows_of(*HELD_BACK, ASKED_RELEASE, released(), finished(parts=RESULT)))
    assert state.open_turn is None
    assert set(state.receipts) == {"ask_1", "ask_2"}


@pytest.mark.parametrize("state", ["clear", "concern", "unresolved", "failed"])
def test_a_result_goes_on_where_nothing_enforces_the_finding(state: ev.ReviewState) -> None:
    assert fold(rows_of(*STARTED, HELD, review(state), finished(parts=RESULT))).open_turn is None


@pytest.mark.parametrize("status", ["withheld", "cancelled", "interrupted"])
def test_a_held_result_may_end_untold(status: ev.CallStatus) -> None:
    assert fold(rows_of(*HELD_BACK, finished(status=status))).open_turn is None


def test_the_newest_revision_of_a_review_stays_with_its_call_and_counts_once() -> None:
    usage = ev.Usage(input_tokens=5, requests=1)
    clear = review("clear", "permission", 3)
    checked = ev.Review(
        review_id=clear.record.hook_id, job="permission", state="concern", finding="concern", usage=usage
    )
    concern = review("concern", "permission", 2, review=checked)
    asked = review("asked", "permission", 3, review=msgspec.structs.replace(checked, state="asked"))
    state = fold(rows_of(*OPEN, review("pending", "permission"), concern, asked))
    call = state.call(CALL)
    assert call is not None and state.run is not None
    assert call.reviews["permission"].revision == 3
    assert state.review_usage == state.run.review_usage == usage
    assert state.usage == ev.Usage()
    assert state.run.permission_refusals == 1


def test_an_acknowledgement_is_kept_with_the_review_and_repeating_it_changes_nothing() -> None:
    once = fold(rows_of(*OPEN, review("concern", "action", 4), acknowledged(4)))
    twice = fold(rows_of(*OPEN, review("concern", "action", 4), acknowledged(4), acknowledged(4)))
    assert once.reviews == twice.reviews
    (mark,) = once.reviews.values()
    assert (mark.revision, mark.acknowledged) == (4, 4)


def test_the_last_genuine_prompts_are_kept_bounded() -> None:
    prompts = [ev.UserPrompt(parts=(ev.TextPart(text=f"p{n}"),)) for n in range(5)]
    nudge = ev.UserPrompt(parts=(ev.TextPart(text="go on"),), source="harness")
    state = fold(rows_of(*RUNNING, *prompts, nudge, ev.UserPrompt(parts=(ev.TextPart(text="x" * 99_999),))))
    assert state.prompts[:2] == ["p3", "p4"]
    assert len(state.prompts) == 3 and len(state.prompts[2]) < 17_000


def test_the_mode_before_plan_is_remembered() -> None:
    modes: tuple[ev.Mode, ...] = ("accept_edits", "plan", "plan")
    state = fold(rows_of(*IDLE, *(ev.SessionUpdated(mode=mode) for mode in modes)))
    assert (state.meta.mode, state.meta.mode_before_plan) == ("plan", "accept_edits")


@pytest.mark.parametrize("late", [True, False])
def test_a_turn_enters_history_when_its_end_and_all_its_results_are_there_in_either_order(late: bool) -> None:
    tail = (started(), finished(), TURN_END) if late else (TURN_END, started(), finished())
    state = fold(rows_of(*ASKED_MODEL, MESSAGE, ACCEPTED, *tail, RUN_END))
    assert state.open_turn is None
    assert len(state.history.items) == 2


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (IDLE, "idle"),
        (RUNNING, "running"),
        (PARKED, "awaiting"),
        ((*PARKED, withdrawn()), "running"),
        (ALLOWED, "running"),
        ((*DONE, RUN_END), "completed"),
        ((*DONE, ev.RunFinished(run_id=RUN, stop_reason="cancelled")), "cancelled"),
        ((*DONE, ev.RunFinished(run_id=RUN, stop_reason="provider_error")), "failed"),
    ],
)
def test_the_status_says_what_the_session_does(events: tuple[ev.Event, ...], status: str) -> None:
    assert fold(rows_of(*events)).status == status


def test_a_session_awaits_until_its_last_ask_is_closed() -> None:
    second = ToolCallID("call_2")
    both = (*ASKED_MODEL, MESSAGE, ACCEPTED, accepted(second, ARGUMENTS, 1).event, TURN_END)
    asks = (ask(), ask("ask_2", tool_call_id=second))
    assert fold(rows_of(*both, *asks, answer("ask_2", tool_call_id=second))).status == "awaiting"
    assert fold(rows_of(*both, *asks, answer("ask_2", tool_call_id=second), answer())).status == "running"


def test_an_unknown_kind_is_counted_and_changes_nothing_else() -> None:
    state = fold(rows_of(*RUNNING, ev.UnknownEvent(original_kind="new", body=msgspec.Raw(b"\xff"))))
    assert state.unknown_events == 1
    assert state.status == "running"


def test_a_notice_of_another_version_stops_nobody() -> None:
    body = msgspec.Raw(b'{"kind":"notice","severity":"loud"}')
    assert fold(rows_of(*RUNNING, ev.UnknownEvent(original_kind="notice", body=body))).unknown_events == 1


def test_a_record_of_another_version_still_raises_the_revision() -> None:
    body = b'{"kind":"hook.recorded","record":{"hook_id":"hook_9","revision":41,"outcome":"novel"}}'
    assert isinstance(codec.decode_event("hook.recorded", body), ev.UnknownEvent)
    event = ev.UnknownEvent(original_kind="hook.recorded", body=msgspec.Raw(body))
    assert fold(rows_of(*RUNNING, event)).revision == 41


def test_the_revision_never_goes_back() -> None:
    def record(revision: int) -> ev.Event:
        return ev.HookRecorded(
            record=ev.HookRecord(
                hook_id=HookID(f"hook_{revision}"),
                revision=Revision(revision),
                phase="Stop",
                origin_session_id=SESSION,
                definition=ev.Definition(name="d"),
                outcome="notice",
                severity="benign",
            )
        )

    assert fold(rows_of(*RUNNING, record(9), record(4))).revision == 9


def test_a_rule_is_learned_once_and_can_be_revoked() -> None:
    learned = ev.GrantChanged(rule="Bash(ls)", scope="always", decided_by=PERSON)
    assert [g.rule for g in fold(rows_of(*RUNNING, learned, learned)).grants] == ["Bash(ls)"]
    revoked = ev.GrantChanged(rule="Bash(ls)", scope="always", revoked=True, decided_by=PERSON)
    assert fold(rows_of(*RUNNING, learned, revoked)).grants == []


# ---- what limits count --------------------------------------------------------------------------------------


def one_turn(number: int, text: str = "same", status: ev.CallStatus = "ok") -> tuple[ev.Event, ...]:
    call = ToolCallID(f"call_{number}")
    return (
        ev.TurnStarted(turn=number, provider="p", model="m"),
        ev.AssistantMessage(turn=number),
        accepted(call, ARGUMENTS).event,
        ev.TurnFinished(turn=number, usage=ev.Usage(input_tokens=10, output_tokens=2)),
        ev.CallFinished(tool_call_id=call, status=status, executed="no", parts=(ev.TextPart(text=text),)),
    )


def run_after(*turns: tuple[ev.Event, ...]) -> Any:
    state = fold(rows_of(*RUNNING, *[event for turn in turns for event in turn]))
    assert state.run is not None
    return state.run


def test_equal_turns_with_equal_results_are_counted_until_one_differs() -> None:
    assert run_after(one_turn(1), one_turn(2), one_turn(3)).repeats == 3
    assert run_after(one_turn(1), one_turn(2), one_turn(3, text="other")).repeats == 1
    said = (TURN, ev.AssistantMessage(turn=3, text="words"), TURN_END)
    assert run_after(one_turn(1), one_turn(2), said).repeats == 0


def test_failures_in_a_row_are_counted_until_a_call_succeeds() -> None:
    assert run_after(one_turn(1, status="error"), one_turn(2, status="denied")).consecutive_failures == 2
    assert run_after(one_turn(1, status="error"), one_turn(2)).consecutive_failures == 0


def test_calls_and_tokens_of_the_run_are_counted() -> None:
    run = run_after(one_turn(1), one_turn(2))
    assert run.tool_calls == 2
    assert (run.usage.input_tokens, run.usage.output_tokens) == (20, 4)


def test_the_state_keeps_how_the_last_run_ended() -> None:
    state = fold(rows_of(*DONE, ev.RunFinished(run_id=RUN, stop_reason="budget", text="said")))
    assert state.last_run is not None
    assert (state.last_run.run_id, state.last_run.stop_reason, state.last_run.text) == (RUN, "budget", "said")


def test_a_steer_into_a_turn_that_came_to_nothing_is_told_after_it() -> None:
    state = fold(rows_of(*ASKED_MODEL, PROMPT, TURN_END))
    assert [item.offset for item in state.history.items] == [3, 5]
