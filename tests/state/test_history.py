"""History: whole turns with all of their results, prompts between them and never inside."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events import codec
from counterfoil.identity import Offset
from counterfoil.state import (
    EncodedHistory,
    History,
    HistoryItem,
    PromptItem,
    Row,
    SessionState,
    SummaryItem,
    TurnItem,
    apply,
    fold,
)
from tests.support.sessions import CANARY, Log, Told, random_log, session_log
from tests.support.strategies import examples

SORTS = {PromptItem: "prompt", TurnItem: "turn", SummaryItem: "summary"}


def told(item: HistoryItem) -> Told:
    """An item as the walk's own model has it."""
    calls = tuple(call.tool_call_id for call in item.calls) if isinstance(item, TurnItem) else ()
    return SORTS[type(item)], item.offset, calls


@examples(120)
@given(session_log())
def test_history_is_what_was_told_at_every_prefix(log: Log) -> None:
    """Order, steers behind the results of their turn, and what a compaction drops and keeps."""
    state: SessionState | None = None
    for at, row in enumerate(log.rows, 1):
        state = apply(state, Row(row))
        assert [told(item) for item in state.history.items] == log.told[at], f"after offset {at}: {row.kind}"


@examples(60)
@given(session_log())
def test_every_turn_has_one_result_for_each_call_in_call_order_at_every_prefix(log: Log) -> None:
    state: SessionState | None = None
    for row in log.rows:
        state = apply(state, Row(row))
        turns = [item for item in state.history.items if isinstance(item, TurnItem)]
        for turn in turns:
            assert [r.tool_call_id for r in turn.results] == [c.tool_call_id for c in turn.calls]
        ids = [call.tool_call_id for turn in turns for call in turn.calls]
        assert len(ids) == len(set(ids))
        open_ids = {call.tool_call_id for call in state.open_turn.calls} if state.open_turn else set()
        assert not open_ids & set(ids), "a turn in hand is no part of history"


@examples(60)
@given(session_log())
def test_history_replays_what_the_model_wrote_and_not_what_a_hook_made_of_it(log: Log) -> None:
    written = {e.tool_call_id: e.arguments for e in map(codec.event_of, log.rows) if isinstance(e, ev.CallAccepted)}
    for item in fold(log.rows).history.items:
        if isinstance(item, TurnItem):
            for call in item.calls:
                assert call.arguments == written[call.tool_call_id]
                assert call.replay is not None and call.replay.pairing_id.startswith(CANARY)
            assert item.replay is not None and CANARY.encode() in bytes(item.replay.wire)


@examples(60)
@given(session_log())
def test_pairing_ids_are_outstanding_until_their_call_has_its_result(log: Log) -> None:
    state: SessionState | None = None
    for row in log.rows:
        state = apply(state, Row(row))
        assert len(state.outstanding_pairings()) == len(state.open_calls())
    assert state is not None and state.outstanding_pairings() == set()


@examples(60)
@given(session_log())
def test_the_walk_keeps_pairing_ids_out_of_what_is_public(log: Log) -> None:
    assert not [row.kind for row in log.rows if CANARY.encode() in row.public]
    with_private = {row.kind for row in log.rows if row.private and CANARY.encode() in row.private}
    assert with_private >= {row.kind for row in log.rows if row.kind in ("assistant.message", "call.accepted")}


def test_the_walk_repeats_pairing_ids_over_turns() -> None:
    halves = [codec.decode_private(row.private) for row in random_log(1, runs=6).rows]
    pairings = [half.pairing_id for half in halves if isinstance(half, ev.CallReplay)]
    assert len(set(pairings)) < len(pairings)


def items(*offsets: int) -> list[HistoryItem]:
    return [PromptItem(offset=Offset(offset), parts=()) for offset in offsets]


@pytest.mark.parametrize(
    ("offsets", "through", "left"),
    [
        ([2, 5, 9], 5, [5, 9]),
        ([2, 5, 9], 9, [9]),
        ([2, 5, 9], 2, [2, 5, 9]),
        ([2, 5, 9], 7, [7, 9]),
        ([2, 5, 9], 99, [99]),
        ([2, 7, 6, 9], 7, [7, 6, 9]),
        ([2, 7, 6, 9], 6, [6, 9]),
    ],
)
def test_a_compaction_replaces_what_stands_before_and_nothing_behind(
    offsets: list[int], through: int, left: list[int]
) -> None:
    """7 is a turn, and 6 a steer that came while it was made."""
    history = History(items=items(*offsets))
    generation = history.generation
    history.compact(Offset(through), "s")
    assert [item.offset for item in history.items] == left
    assert isinstance(history.items[0], SummaryItem)
    assert not [item for item in history.items[1:] if isinstance(item, SummaryItem)]
    assert history.generation > generation


@pytest.mark.parametrize("offsets", [[], [5]])
def test_a_compaction_of_nothing_is_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="no item"):
        History(items=items(*offsets)).compact(Offset(4), "s")


class Wire:
    """Encodes items and counts how often; fails on demand."""

    def __init__(self) -> None:
        self.encoded: list[int] = []
        self.fail_on: int | None = None

    def __call__(self, item: HistoryItem) -> list[msgspec.Raw]:
        if item.offset == self.fail_on:
            raise RuntimeError("no")
        self.encoded.append(item.offset)
        return [msgspec.Raw(str(item.offset).encode()), msgspec.Raw(b"0")]


def offsets_of(messages: list[msgspec.Raw]) -> list[int]:
    return [int(bytes(raw)) for raw in messages[::2]]


@examples(60)
@given(st.lists(st.integers(0, 3), max_size=12))
def test_each_item_is_encoded_once_until_a_compaction(steps: list[int]) -> None:
    history, memo, wire = History(), EncodedHistory(), Wire()
    at = 0
    for step in steps:
        if step == 0 and history.items:
            history.compact(history.items[len(history.items) // 2].offset, "s")
            wire.encoded.clear()
        for _ in range(step):
            at += 1
            history.append(PromptItem(offset=Offset(at), parts=()))
        assert offsets_of(memo.messages(history, wire)) == [item.offset for item in history.items]
    assert len(wire.encoded) == len(set(wire.encoded))


def test_an_encoder_that_fails_once_leaves_nothing_twice() -> None:
    history, memo, wire = History(items=items(1, 2, 3)), EncodedHistory(), Wire()
    wire.fail_on = 3
    with pytest.raises(RuntimeError):
        memo.messages(history, wire)
    wire.fail_on = None
    assert offsets_of(memo.messages(history, wire)) == [1, 2, 3]
