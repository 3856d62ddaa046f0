"""The Messages API: every history makes a valid request, and no stream breaks the assembler."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.errors import ProviderError
from counterfoil.events import CallStatus, Part, TextPart
from counterfoil.identity import Offset, ToolCallID
from counterfoil.ports import ModelSettings
from counterfoil.providers.anthropic import assemble
from counterfoil.state.history import (
    HistoryCall,
    HistoryItem,
    HistoryResult,
    PromptItem,
    SummaryItem,
    TurnItem,
)
from tests.providers.messages_kit import IMAGE, ORIGIN, body_of, turn_of, wire
from tests.providers.wirekit import accepted

FIELDS = ["type", "index", "delta", "content_block", "message", "usage", "text", "id", "name", "input", "partial_json"]
STREAMS = ["full", "blank_text", "p12_empty_input", "max_tokens_in_thinking", "unknown_block", "broken_arguments"]
texts = st.sampled_from(["", " ", "\n", "word", "two words ", "\u2028x", "ends\n"])
parts = st.lists(st.one_of(texts.map(lambda t: TextPart(text=t)), st.just(IMAGE)), max_size=3)
statuses: st.SearchStrategy[CallStatus] = st.sampled_from(["ok", "error", "denied", "interrupted"])


@st.composite
def turns(draw: st.DrawFn, offset: int) -> TurnItem:
    """A turn of this origin, of another, or of none, with any results."""
    if draw(st.booleans()):
        turn = turn_of(draw(st.sampled_from(STREAMS)))
        outputs: list[tuple[Part, ...]] = [tuple(draw(parts)) for _ in turn.calls]
        return accepted(turn, draw(st.sampled_from([ORIGIN, "other"])), offset, outputs)
    calls = [
        HistoryCall(tool_call_id=ToolCallID(f"call_{offset}_{n}"), tool="Read", arguments={"n": n})
        for n in range(draw(st.integers(0, 3)))
    ]
    results = []
    for call in calls:
        status: CallStatus = draw(statuses)
        results.append(HistoryResult(tool_call_id=call.tool_call_id, status=status, parts=tuple(draw(parts))))
    return TurnItem(offset=Offset(offset), text=draw(texts), calls=tuple(calls), results=tuple(results))


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryItem]:
    """Any history that a fold can make, up to a request."""
    items: list[HistoryItem] = []
    if draw(st.booleans()):
        items.append(SummaryItem(offset=Offset(1), text=draw(texts)))
    items.append(PromptItem(offset=Offset(2), parts=tuple(draw(parts))))
    for offset in range(3, 3 + draw(st.integers(0, 5))):
        turn = draw(turns(offset))
        items.append(turn)
        if not turn.calls or draw(st.booleans()):
            items.append(PromptItem(offset=Offset(offset), parts=tuple(draw(parts)), source="steer"))
    return items


@settings(max_examples=150, deadline=None)
@given(histories(), st.sampled_from([None, "low", "high"]), st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-6"]))
def test_every_history_makes_a_valid_request(items: list[HistoryItem], effort: str | None, model: str) -> None:
    body_of(*items, model=ModelSettings(model=model, effort=effort))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["tool_use", "thinking", "text"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)
kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(kinds, st.dictionaries(st.sampled_from(FIELDS), junk, max_size=5)), max_size=6))
def test_junk_in_a_stream_is_a_typed_failure_or_a_turn(stream: list[tuple[str, dict[str, Any]]]) -> None:
    try:
        turn = assemble([{**event, "type": kind} for kind, event in stream])
    except ProviderError:
        return
    assert isinstance(wire(turn), list)
    assert all(call.pairing_id for call in turn.calls)
