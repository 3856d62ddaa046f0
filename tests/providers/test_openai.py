"""The Responses API: what streams make, and what goes back."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import ProviderError
from counterfoil.events import ImagePart, Part, TextPart, Usage
from counterfoil.ports import CallChunk, ModelSettings, ModelTurn, ReasoningChunk, TextChunk
from counterfoil.providers.openai import Assembler, assemble, request
from counterfoil.state.history import History, HistoryItem
from tests.providers.wirekit import READ, accepted, events, plain, prompt
from tests.support.strategies import examples, json_values

ORIGIN = "openai@https://api.openai.com"
OTHER = "openai@https://other.example"


def turn(name: str) -> ModelTurn:
    """The turn of a recorded stream."""
    return assemble(events(f"responses_{name}"))


def listed(name: str) -> list[dict[str, Any]]:
    """The output items of a recorded stream, as it named them one by one."""
    return [e["item"] for e in events(f"responses_{name}") if e["type"] == "response.output_item.done"]


def replayed(*items: HistoryItem, origin: str = ORIGIN) -> Any:
    return plain(request(History(list(items)), (), ModelSettings(model="gpt-x"), origin=origin)["input"])


def test_a_turn_has_text_summaries_calls_and_usage() -> None:
    made = turn("full")
    assert (made.text, made.reasoning) == ("I'll look.", "Look first.\n\nThen read.")
    assert [(c.pairing_id, c.tool, c.arguments) for c in made.calls] == [
        ("call_Zx1", "Read", {"file_path": "a.txt"}),
        ("call_Zx2", "Read", {"file_path": "b.txt"}),
    ]
    assert (made.stop_reason, made.model) == ("tool_use", "gpt-x")
    assert made.usage == Usage(
        input_tokens=200, output_tokens=40, cache_read_tokens=128, reasoning_tokens=24, requests=1
    )


def test_chunks_come_as_the_model_writes() -> None:
    assembler = Assembler()
    chunks = [chunk for event in events("responses_full") for chunk in assembler.feed(event)]
    assert chunks == [
        ReasoningChunk(text="Look first."),
        ReasoningChunk(text="\n\nThen read."),
        TextChunk(text="I'll "),
        TextChunk(text="look."),
        CallChunk(position=0, tool="Read"),
        CallChunk(position=0, arguments_text='{"file_path"'),
        CallChunk(position=0, arguments_text=': "a.txt"}'),
        CallChunk(position=1, tool="Read"),
        CallChunk(position=1, arguments_text='{"file_path":"b.txt"}'),
    ]


@pytest.mark.parametrize("name", ["full", "empty_output_at_the_end"])
def test_every_output_item_goes_back_as_it_came_and_results_follow(name: str) -> None:
    sent = replayed(accepted(turn(name), ORIGIN, 2))
    assert sent[:4] == listed("full")
    assert sent[4:] == [
        {"type": "function_call_output", "call_id": "call_Zx1", "output": "result 0"},
        {"type": "function_call_output", "call_id": "call_Zx2", "output": "result 1"},
    ]


def test_another_servers_private_data_never_goes_out() -> None:
    item = accepted(turn("full"), OTHER, 2)
    message, *rest = replayed(item)
    ids = [c.tool_call_id for c in item.calls]
    assert message == {"type": "message", "role": "assistant", "content": "I'll look."}
    assert [r["type"] for r in rest] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert [r["call_id"] for r in rest] == ids * 2


def test_a_stream_without_its_closing_event_gives_no_turn() -> None:
    with pytest.raises(ProviderError) as caught:
        turn("cut")
    assert caught.value.kind == "stream_cut" and not caught.value.permanent


def test_a_call_cut_by_length_has_a_problem() -> None:
    made = turn("incomplete")
    (call,) = made.calls
    assert made.stop_reason == "max_tokens" and call.arguments is None and call.problem
    assert plain(made.wire)[1]["arguments"] == '{"file_path"'


def test_reasoning_alone_does_not_go_back() -> None:
    made = turn("only_reasoning")
    assert made.wire is None and made.reasoning
    assert replayed(accepted(made, ORIGIN, 2)) == []


def test_a_failed_response_is_an_error() -> None:
    with pytest.raises(ProviderError) as caught:
        turn("failed")
    assert (caught.value.kind, caught.value.permanent) == ("overloaded", False)


def test_a_context_length_error_in_the_stream_is_recognised() -> None:
    with pytest.raises(ProviderError) as caught:
        turn("error_event")
    assert caught.value.kind == "context_length"


def test_a_refusal_is_text_and_a_stop_reason() -> None:
    made = turn("refusal")
    assert (made.stop_reason, made.text) == ("refusal", "I can't do that.")


def test_p4_a_missing_call_id_is_made_once_and_goes_back_in_both_places() -> None:
    made = turn("p4_no_call_id")
    (call,) = made.calls
    assert call.made and call.arguments == {}
    sent = replayed(accepted(made, ORIGIN, 2))
    assert sent[0]["call_id"] == sent[1]["call_id"] == call.pairing_id
    assert sent[0]["arguments"] == "{}"


def test_a_whole_response_that_was_not_streamed_is_taken() -> None:
    whole = events("responses_full")[-1]["response"]
    assert assemble([whole]) == turn("full")


def test_a_request_keeps_nothing_at_the_server() -> None:
    settings = ModelSettings(model="gpt-x", max_tokens=9, effort="low")
    body = plain(request(History([prompt("hi")]), (READ,), settings, system="Be brief.", origin=ORIGIN))
    assert body == {
        "model": "gpt-x",
        "input": [{"type": "message", "role": "user", "content": "hi"}],
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "Read",
                "description": "Read a file.",
                "parameters": READ.parameters,
                "strict": False,
            }
        ],
        "max_output_tokens": 9,
        "reasoning": {"effort": "low", "summary": "auto"},
    }


def test_models_without_reasoning_are_not_asked_for_it() -> None:
    assert "include" not in request(History(), (), ModelSettings(model="gpt-4.1-mini"))


def test_an_image_stands_in_the_result_itself() -> None:
    parts: tuple[Part, ...] = (TextPart(text="see"), ImagePart(media_type="image/png", data="AAAA"))
    output = replayed(accepted(turn("p4_no_call_id"), ORIGIN, 2, [parts]))[1]["output"]
    assert output == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]


@given(st.lists(st.dictionaries(st.sampled_from(["item", "response", "delta", "output_index"]), json_values())))
@examples(100)
def test_nothing_that_a_server_sends_can_crash_the_assembler(bodies: list[dict[str, Any]]) -> None:
    kinds = sorted({e["type"] for e in events("responses_full")})
    with contextlib.suppress(ProviderError):
        assemble([{"type": kinds[at % len(kinds)], **body} for at, body in enumerate(bodies)])


@given(st.data())
@examples(50)
def test_any_split_of_the_arguments_gives_the_same_turn(data: st.DataObject) -> None:
    stream: list[dict[str, Any]] = []
    for event in events("responses_empty_output_at_the_end"):
        if event["type"] != "response.function_call_arguments.delta":
            stream.append(event)
            continue
        text = event["delta"]
        cut = data.draw(st.integers(0, len(text)))
        stream += [{**event, "delta": text[:cut]}, {**event, "delta": text[cut:]}]
    assert assemble(stream) == turn("full")
