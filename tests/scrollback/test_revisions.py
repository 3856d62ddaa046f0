"""The consumer's rules for updates of a record: as a table, and as properties over any order of delivery."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.events import Definition, HookRecord, Review
from counterfoil.identity import HookID, Revision, SessionID, ToolCallID, review_id
from counterfoil.scrollback.revisions import Step, step
from tests.support.strategies import examples

CALL = ToolCallID("call_1")


def record(revision: int = 5, **changes: Any) -> HookRecord:
    values: dict[str, Any] = {
        "hook_id": HookID("hook_1"),
        "revision": Revision(revision),
        "phase": "PreToolUse",
        "origin_session_id": SessionID("ses_1"),
        "tool_call_id": CALL,
        "definition": Definition(name="h"),
        "outcome": "notice",
        "severity": "notable",
        "message": "m",
    }
    return HookRecord(**(values | changes))


OTHERS: dict[str, dict[str, Any]] = {
    "payload": {"message": "other"},
    "call": {"tool_call_id": ToolCallID("call_2")},
    "origin": {"origin_session_id": SessionID("ses_2")},
    "no call": {"tool_call_id": None},
}
REVIEW = review_id(CALL, "action")

TABLE: list[tuple[str, HookRecord | None, HookRecord, Step]] = [
    ("new", None, record(), "open"),
    ("higher", record(5), record(6, message="other"), "replace"),
    ("higher, same payload", record(5), record(6), "replace"),
    ("lower", record(5), record(4, message="other"), "ignore"),
    ("lower, other call", record(5), record(4, **OTHERS["call"]), "ignore"),
    ("equal, same", record(5), record(5), "ignore"),
    *((f"equal, other {name}", record(5), record(5, **other), "conflict") for name, other in OTHERS.items()),
    *((f"higher, other {n}", record(5), record(6, **o), "conflict") for n, o in OTHERS.items() if n != "payload"),
    ("no revision", record(5), record(0), "legacy"),
    ("no id", record(5), record(9, hook_id=HookID("")), "legacy"),
    (
        "ids that differ",
        None,
        record(review=Review(review_id=REVIEW, job="action", state="clear")),
        "conflict",
    ),
    (
        "ids that agree",
        None,
        record(hook_id=REVIEW, review=Review(review_id=REVIEW, job="action", state="clear")),
        "open",
    ),
]


@pytest.mark.parametrize(("name", "held", "incoming", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_what_an_update_does(name: str, held: HookRecord | None, incoming: HookRecord, expected: Step) -> None:
    assert step(held, incoming) == expected


records = st.builds(
    record,
    st.integers(0, 6),
    message=st.sampled_from("ab"),
    tool_call_id=st.sampled_from([CALL, ToolCallID("call_2"), None]),
    origin_session_id=st.sampled_from([SessionID("ses_1"), SessionID("ses_2")]),
)


@examples(300)
@given(records, st.lists(records, max_size=20), st.integers(0, 1 << 30))
def test_state_never_goes_back_never_moves_and_loses_nothing(
    first: HookRecord, rest: list[HookRecord], seed: int
) -> None:
    first = msgspec.structs.replace(first, revision=Revision(max(1, first.revision)))
    held, aside = first, 0
    for incoming in rest:
        before, taken = held, step(held, incoming)
        if taken == "replace":
            held = incoming
        aside += taken in ("conflict", "legacy")
        assert held.revision >= before.revision
        assert (held.tool_call_id, held.origin_session_id) == (first.tool_call_id, first.origin_session_id)
        assert step(held, held) == "ignore", "what is held is idempotent"
    contradicting = [r for r in rest if r.revision >= held.revision and r != held]
    assert aside >= len(contradicting), "whatever contradicts what is held at the end stands as evidence"
    honest = [r for r in rest if (r.tool_call_id, r.origin_session_id) == (first.tool_call_id, first.origin_session_id)]
    shuffled = list({r.revision: r for r in honest if r.revision > first.revision}.values())
    ends = set()
    for order in (shuffled, random.Random(seed).sample(shuffled, len(shuffled))):
        state = first
        for incoming in order:
            state = incoming if step(state, incoming) == "replace" else state
        ends.add(state.revision)
    assert len(ends) == 1, "in any order the highest revision stands at the end"
