"""The Messages API: recorded streams, replay, and requests over real HTTP to the model server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterfoil.errors import ProviderError
from counterfoil.events import AssistantReplay, CallReplay, TextPart, Usage
from counterfoil.identity import Offset
from counterfoil.ports import ModelRequest, ModelSettings, ModelTurn, ReasoningChunk, TextChunk
from counterfoil.providers.anthropic import Anthropic, Assembler, assemble, request
from counterfoil.state.history import (
    EncodedHistory,
    History,
    TurnItem,
)
from tests.providers.messages_kit import IMAGE, MODEL, ORIGIN, arguments, body_of, replayed, turn_of, wire
from tests.providers.wirekit import READ, accepted, asked, events, plain, prompt
from tests.support.model_server import ModelServer

# ---- recorded streams -------------------------------------------------------------------------------------


def test_a_full_turn_is_kept_exactly() -> None:
    turn = turn_of("full")
    assert (turn.text, turn.reasoning, turn.stop_reason) == ("I'll look.", "Let me think.", "tool_use")
    assert arguments(turn) == [{"file_path": "a.txt"}, {"pattern": "x", "n": 1.0}]
    assert turn.model == "claude-sonnet-4-5-20250929"
    expected = Usage(input_tokens=132, output_tokens=89, cache_read_tokens=100, cache_write_tokens=7, requests=1)
    assert turn.usage == expected
    assert turn.wire is not None
    assert b'"input":{"pattern": "x", "n": 1.0}' in bytes(turn.wire)
    assistant, results = replayed(turn)
    assert assistant["content"] == wire(turn)
    assert assistant["content"][0]["signature"] == "CANARY-sig-EqQBCgIYAhIM+/=="
    assert assistant["content"][1] == {"type": "redacted_thinking", "data": "CANARY-redacted-Emw"}
    assert [r["tool_use_id"] for r in results["content"]] == ["toolu_01A", "toolu_01B"]


def test_private_strings_are_in_no_public_field() -> None:
    assembler = Assembler()
    chunks = [chunk for event in events("anthropic_full") for chunk in assembler.feed(event)]
    turn = assembler.finish()
    public = repr((turn.text, turn.reasoning, turn.model, [(c.tool, c.arguments) for c in turn.calls], chunks))
    assert "CANARY" not in public
    assert "toolu" not in public


@pytest.mark.parametrize("name", ["full", "blank_text", "p13_usage_and_comments", "unknown_block"])
def test_chunks_add_up_to_the_turn(name: str) -> None:
    assembler = Assembler()
    chunks = [chunk for event in events(f"anthropic_{name}") for chunk in assembler.feed(event)]
    turn = assembler.finish()
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == turn.text
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningChunk)) == turn.reasoning


def test_p01_blocks_that_share_an_index_are_two_calls() -> None:
    assert arguments(turn_of("p01_shared_index")) == [{"file_path": "a"}, {"file_path": "b"}]


def test_p04_an_empty_id_is_made_and_replayed_in_both_places() -> None:
    turn = turn_of("p04_empty_id")
    made = [call.pairing_id for call in turn.calls]
    assert all(call.made for call in turn.calls)
    assert len(set(made)) == 2
    assistant, results = replayed(turn)
    assert [b["id"] for b in assistant["content"]] == made
    assert [b["tool_use_id"] for b in results["content"]] == made


def test_p05_an_id_that_comes_again_in_a_later_turn_is_replayed_with_its_own_turn() -> None:
    turn = turn_of("p05_repeated_id")
    body = body_of(prompt("go"), accepted(turn, ORIGIN, 2), accepted(turn, ORIGIN, 3))
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert [m["content"][0]["tool_use_id"] for m in body["messages"][2::2]] == ["call_0", "call_0"]


def test_p06_a_duplicate_id_is_kept_as_two_calls_for_the_engine_to_reject() -> None:
    turn = turn_of("p06_same_id_twice")
    assert [call.pairing_id for call in turn.calls] == ["call_0", "call_0"]
    assert not any(call.made for call in turn.calls)


def test_p07_odd_ids_are_replayed_exactly() -> None:
    turn = turn_of("p07_odd_ids")
    ids = ["x" * 200, 'an id with "quotes" and spaces']
    history = History([prompt("go"), accepted(turn, ORIGIN, 2)])
    _, assistant, results = plain(request(history, [READ], MODEL, origin=ORIGIN))["messages"]
    assert [b["id"] for b in assistant["content"]] == ids
    assert [b["tool_use_id"] for b in results["content"]] == ids


def test_p08_calls_count_for_more_than_the_stop_reason() -> None:
    turn = turn_of("p08_end_turn_with_calls")
    assert (turn.stop_reason, len(turn.calls)) == ("tool_use", 1)


def test_p09_input_that_comes_whole_at_the_start_counts() -> None:
    turn = turn_of("p09_object_input")
    assert arguments(turn) == [{"file_path": "a"}, {"file_path": "b"}]
    assert [b["input"] for b in wire(turn)] == arguments(turn)


def test_p10_a_stream_that_is_cut_gives_no_turn() -> None:
    with pytest.raises(ProviderError) as cut:
        turn_of("p10_cut")
    assert (cut.value.kind, cut.value.permanent) == ("stream_cut", False)


def test_p11_one_tool_twice_is_two_calls_in_order() -> None:
    assistant, results = replayed(turn_of("p11_same_tool_twice"))
    assert [b["input"]["file_path"] for b in assistant["content"]] == ["a", "b"]
    assert [b["content"][0]["text"] for b in results["content"]] == ["result 0", "result 1"]


def test_p12_empty_input_is_an_empty_object() -> None:
    turn = turn_of("p12_empty_input")
    assert (arguments(turn), turn.calls[0].problem) == ([{}], None)
    assert replayed(turn)[0]["content"][0]["input"] == {}


def test_p13_usage_at_the_end_counts_and_comments_break_nothing() -> None:
    turn = turn_of("p13_usage_and_comments")
    assert turn.usage == Usage(input_tokens=35, output_tokens=89, cache_read_tokens=5, requests=1)
    assert turn.stop_reason == "end_turn"


def test_an_error_inside_a_stream_is_typed() -> None:
    with pytest.raises(ProviderError) as error:
        turn_of("overloaded")
    assert (error.value.kind, error.value.permanent) == ("overloaded", False)


@pytest.mark.parametrize("name", ["max_tokens_in_call", "max_tokens_before_arguments"])
def test_a_call_that_was_cut_off_by_the_limit_never_runs(name: str) -> None:
    turn = turn_of(name)
    assert (turn.stop_reason, arguments(turn)) == ("max_tokens", [None])
    assert "cut off" in str(turn.calls[0].problem)
    assert replayed(turn)


def test_thinking_that_was_cut_off_is_not_sent_back() -> None:
    turn = turn_of("max_tokens_in_thinking")
    assert (turn.reasoning, turn.stop_reason, len(wire(turn))) == ("Hmm", "max_tokens", 1)
    assert replayed(turn) == []


def test_a_call_within_a_refusal_is_no_call() -> None:
    turn = turn_of("refusal_in_call")
    assert (turn.text, turn.calls, turn.stop_reason) == ("No.", (), "refusal")
    assert [b["type"] for b in replayed(turn)[0]["content"]] == ["text"]


def test_unknown_blocks_are_kept_and_sent_back() -> None:
    turn = turn_of("unknown_block")
    searched, unknown, cited = replayed(turn)[0]["content"]
    assert (turn.calls, searched["input"]) == ((), {"query": "x"})
    assert unknown == {"type": "holo_block", "state": "done", "blob": {"a": [1]}, "more": 2}
    assert cited["citations"] == [{"type": "char_location", "cited_text": "c"}]


def test_blank_text_is_not_sent_back_and_thinking_is_shown_in_paragraphs() -> None:
    turn = turn_of("blank_text")
    assert turn.reasoning == "One.\n\nTwo."
    assert [b["type"] for b in replayed(turn)[0]["content"]] == ["thinking", "thinking", "tool_use"]


def test_broken_arguments_are_accepted_and_sent_back_as_an_object() -> None:
    turn = turn_of("broken_arguments")
    assert arguments(turn) == [None, None, {"s": "\ufffd"}]
    inputs = [b["input"] for b in replayed(turn)[0]["content"]]
    assert inputs == [{"INVALID_JSON": '{"a": '}, {"INVALID_JSON": "[1]"}, {"s": "\ufffd"}]


def test_a_stream_that_ends_after_its_stop_reason_is_whole() -> None:
    assert turn_of("no_message_stop").text == "Done."


def test_a_whole_message_that_was_not_streamed_is_a_turn() -> None:
    message = {"type": "message", "model": "m", "content": wire(turn_of("full")), "stop_reason": "tool_use"}
    turn = assemble([message])
    assert arguments(turn) == [{"file_path": "a.txt"}, {"pattern": "x", "n": 1.0}]
    assert wire(turn) == wire(turn_of("full"))


# ---- requests ---------------------------------------------------------------------------------------------


def test_marks_are_on_system_last_tool_and_last_message_and_never_in_the_memo() -> None:
    memo = EncodedHistory()
    history = History([prompt("go"), accepted(turn_of("full"), ORIGIN, 2)])
    before = [bytes(m) for m in memo.messages(history, lambda item: [])]
    memo = EncodedHistory()
    body = plain(request(history, [READ, READ], MODEL, system="s", memo=memo, origin=ORIGIN))
    mark = {"type": "ephemeral"}
    assert before == []
    assert body["system"][0]["cache_control"] == mark
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert ["cache_control" in block for block in body["messages"][-1]["content"]] == [False, True]
    kept = memo.messages(history, lambda item: [])
    assert not any(b"cache_control" in bytes(raw) for raw in kept)
    again = request(history, [READ], MODEL, memo=memo, origin=ORIGIN)
    assert all(a is b for a, b in zip(again["messages"][:-1], kept[:-1], strict=True))


def test_a_turn_of_another_origin_is_rebuilt_from_what_is_public() -> None:
    item = accepted(turn_of("full"), "anthropic@https://other.example", 2)
    _, assistant, results = body_of(prompt("go"), item)["messages"]
    assert [b["type"] for b in assistant["content"]] == ["text", "tool_use", "tool_use"]
    ids = [call.tool_call_id for call in item.calls]
    assert [b["id"] for b in assistant["content"][1:]] == ids
    assert [b["tool_use_id"] for b in results["content"]] == ids


def test_results_carry_errors_and_images_as_the_api_takes_them() -> None:
    item = accepted(turn_of("full"), ORIGIN, 2, [(TextPart(text="a"), IMAGE), (IMAGE,)])
    failed = msgspec.structs.replace(item.results[1], status="error")
    item = msgspec.structs.replace(item, results=(item.results[0], failed))
    good, bad = body_of(prompt("go"), item)["messages"][2]["content"]
    assert [b["type"] for b in good["content"]] == ["text", "image"]
    assert "is_error" not in good
    assert (bad["is_error"], bad["content"]) == (True, [{"type": "text", "text": "[image image/png]"}])


def test_effort_is_adaptive_or_a_budget_as_the_model_takes_it() -> None:
    new = ModelSettings(model="claude-opus-4-6", effort="high", temperature=0.5)
    body = body_of(prompt("go"), model=new)
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "high"})
    assert "temperature" not in body
    old = ModelSettings(model="claude-sonnet-4-5", effort="high")
    assert body_of(prompt("go"), model=old)["thinking"] == {"type": "enabled", "budget_tokens": 16_384}
    small = ModelSettings(model="claude-sonnet-4-5", effort="high", max_tokens=1_500, temperature=0.5)
    body = body_of(prompt("go"), model=small)
    assert "thinking" not in body
    assert body["temperature"] == 0.5


def test_a_budget_is_not_asked_for_in_the_middle_of_a_turn_without_thinking() -> None:
    old = ModelSettings(model="claude-sonnet-4-5", effort="low")
    assert "thinking" in body_of(prompt("go"), accepted(turn_of("full"), ORIGIN, 2), model=old)
    foreign = accepted(turn_of("full"), "elsewhere", 2)
    assert "thinking" not in body_of(prompt("go"), foreign, model=old)
    assert "thinking" not in body_of(prompt("go"), foreign, prompt("on", 3), model=old)
    spoken = TurnItem(offset=Offset(4), text="Done.")
    assert "thinking" in body_of(prompt("go"), foreign, spoken, prompt("on", 5), model=old)


@pytest.mark.parametrize(("model", "most"), [("claude-sonnet-4-5", 32_000), ("claude-3-5-haiku-latest", 8_192)])
def test_the_most_tokens_fit_the_model(model: str, most: int) -> None:
    assert body_of(prompt("go"), model=ModelSettings(model=model))["max_tokens"] == most


# ---- over HTTP --------------------------------------------------------------------------------------------

SCRIPT = {
    "pairing_prefix": "CANARY-pairing-",
    "turns": [
        {
            "text": "One.",
            "reasoning": "Hmm.",
            "chunks": 2,
            "keep_alive": True,
            "calls": [{"tool": "Read", "arguments": {"n": n}} for n in range(2)],
            "usage": {"input_tokens": 100, "cache_read_tokens": 60, "cache_write_tokens": 10, "output_tokens": 7},
        },
        {"reasoning": "Again.", "calls": [{"tool": "Read", "arguments": "", "id": "CANARY-pairing-0-0"}]},
        {"text": "Done."},
    ],
}


async def ask(provider: Anthropic, ask_for: ModelRequest) -> ModelTurn:
    """The turn that a request yields."""
    items = [item async for item in provider.stream(ask_for)]
    assert isinstance(items[-1], ModelTurn)
    return items[-1]


async def test_a_session_over_http_sends_everything_back_as_it_came() -> None:
    history = History([prompt("go")])
    async with ModelServer(SCRIPT, require_key="secret-key") as server:
        provider = Anthropic(base_url=server.base_url, api_key="secret-key")
        asking = msgspec.structs.replace(
            asked(history), settings=ModelSettings(model="claude-sonnet-4-5", effort="low")
        )
        first = await ask(provider, asking)
        history.append(accepted(first, provider.origin, 2))
        second = await ask(provider, asking)
        history.append(accepted(second, provider.origin, 3))
        third = await ask(provider, asking)
        await provider.close()
    assert server.refusals == []
    assert (first.text, first.reasoning, [c.arguments for c in first.calls]) == ("One.", "Hmm.", [{"n": 0}, {"n": 1}])
    assert first.usage == Usage(
        input_tokens=100, output_tokens=7, cache_read_tokens=60, cache_write_tokens=10, requests=1
    )
    assert (second.calls[0].arguments, third.text) == ({}, "Done.")
    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"
    assert len(server.bodies) == 3


FAULTS: list[tuple[dict[str, Any], str, bool]] = [
    ({"error": {"kind": "overloaded"}}, "overloaded", False),
    ({"error": {"kind": "overloaded", "status": 200}}, "overloaded", False),
    ({"error": {"kind": "rate_limited", "retry_after": 0.5}}, "rate_limited", False),
    ({"error": {"kind": "context_length"}}, "context_length", True),
    ({"error": {"kind": "auth"}}, "auth", True),
    ({"error": {"kind": "bad_request"}}, "bad_request", True),
    ({"error": {"kind": "other", "status": 503, "body": "<html>busy"}}, "overloaded", False),
    ({"text": "Hello.", "cut": True}, "stream_cut", False),
    ({"calls": [{"tool": "Read", "arguments": {"n": 1}}], "cut": True}, "stream_cut", False),
]


@pytest.mark.parametrize(("turn", "kind", "permanent"), FAULTS)
async def test_failures_over_http_are_typed(turn: dict[str, Any], kind: str, permanent: bool) -> None:
    async with ModelServer({"turns": [turn]}) as server:
        provider = Anthropic(base_url=server.root_url, api_key="k")
        with pytest.raises(ProviderError) as failed:
            await ask(provider, asked())
        await provider.close()
    assert (failed.value.kind, failed.value.permanent) == (kind, permanent)
    assert failed.value.retry_after == turn.get("error", {}).get("retry_after")


async def test_a_wire_that_lost_an_id_falls_back_to_what_is_public() -> None:
    item = accepted(turn_of("p08_end_turn_with_calls"), ORIGIN, 2)
    call = msgspec.structs.replace(item.calls[0], replay=CallReplay(origin=ORIGIN, pairing_id="else"))
    replay = AssistantReplay(origin=ORIGIN, wire=item.replay.wire if item.replay else msgspec.Raw(b"[]"))
    changed = msgspec.structs.replace(item, calls=(call,), replay=replay)
    assert body_of(prompt("go"), changed)["messages"][1]["content"][0]["id"] == item.calls[0].tool_call_id
