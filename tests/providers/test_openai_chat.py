"""Chat Completions: what servers send, and what they get back. Case numbers are those of the field cases."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import ProviderError
from counterfoil.events import ImagePart, Part, TextPart, Usage
from counterfoil.identity import Offset, ToolCallID
from counterfoil.ports import CallChunk, ModelSettings, ModelTurn, ReasoningChunk, TextChunk
from counterfoil.providers import openai_chat
from counterfoil.providers.openai_chat import Assembler, assemble, encode_item, request
from counterfoil.state.history import (
    EncodedHistory,
    History,
    HistoryCall,
    HistoryItem,
    HistoryResult,
    SummaryItem,
    TurnItem,
)
from tests.providers.wirekit import READ, STREAMS, accepted, events, plain, prompt
from tests.support.strategies import examples, json_values

ORIGIN = "openai_chat@http://127.0.0.1"
OTHER = "openai_chat@https://other.example"


def turn(name: str) -> ModelTurn:
    """The turn of a recorded stream."""
    return assemble(events(f"chat_{name}"))


def arguments(made: ModelTurn) -> list[dict[str, Any] | None]:
    return [call.arguments for call in made.calls]


def replayed(*items: HistoryItem, origin: str = ORIGIN) -> Any:
    return plain(request(History(list(items)), (), ModelSettings(model="m"), origin=origin)["messages"])


def once_replayed(made: ModelTurn) -> Any:
    """The assistant's message and what follows it, as they go back to their own server."""
    return replayed(accepted(made, ORIGIN, 2))


# ---- field cases --------------------------------------------------------------------------------------------


def test_p1_two_calls_that_share_index_zero_are_two_calls() -> None:
    made = turn("p1_shared_index")
    assert [c.pairing_id for c in made.calls] == ["a1", "a2"]
    assert arguments(made) == [{"file_path": "a.txt"}, {"file_path": "b.txt"}]


def test_p2_an_id_repeated_in_each_chunk_is_one_call() -> None:
    made = turn("p2_repeated_id")
    assert [(c.pairing_id, c.tool, c.arguments) for c in made.calls] == [("call_r", "Read", {"file_path": "a.txt"})]


def test_p3_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    made = turn("p3_no_index")
    assert [(c.pairing_id, c.tool) for c in made.calls] == [("c1", "Read"), ("c2", "Glob")]
    assert arguments(made) == [{"file_path": "a.txt"}, {"pattern": "*.py"}]


def test_p4_an_empty_id_is_made_once_and_goes_back_in_both_places() -> None:
    made = turn("p4_empty_id")
    (call,) = made.calls
    assert call.made and call.pairing_id.startswith("cf_") and call.arguments == {"file_path": "a.txt"}
    assistant, result = once_replayed(made)
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == call.pairing_id
    assert turn("p4_empty_id").calls[0].pairing_id != call.pairing_id


def test_p5_an_id_that_comes_again_in_a_later_turn_goes_back_with_its_own_turn() -> None:
    first, second = accepted(turn("p5_turn1"), ORIGIN, 2), accepted(turn("p5_turn2"), ORIGIN, 9)
    assert first.calls[0].tool_call_id != second.calls[0].tool_call_id
    a1, r1, a2, r2 = replayed(first, second)
    assert [m["role"] for m in (a1, r1, a2, r2)] == ["assistant", "tool", "assistant", "tool"]
    assert r1["tool_call_id"] == r2["tool_call_id"] == "call_0"
    assert "a.txt" in a1["tool_calls"][0]["function"]["arguments"]
    assert "b.txt" in a2["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize("name", ["p6_same_id_twice", "p6_same_id_same_index"])
def test_p6_a_duplicate_id_is_left_for_the_engine_to_reject(name: str) -> None:
    assert [(c.pairing_id, c.made) for c in turn(name).calls] == [("call_0", False), ("call_0", False)]


def test_p7_very_long_and_odd_ids_go_back_exactly() -> None:
    made = turn("p7_odd_ids")
    ids = ["x" * 200, 'id "two" with\tspaces \\ and é']
    assert [c.pairing_id for c in made.calls] == ids
    assistant, *results = once_replayed(made)
    assert [c["id"] for c in assistant["tool_calls"]] == ids == [r["tool_call_id"] for r in results]


def test_p8_calls_run_though_the_finish_reason_says_stop() -> None:
    made = turn("p8_stop_with_calls")
    assert made.stop_reason == "tool_use" and len(made.calls) == 1


def test_p9_arguments_that_came_as_an_object_go_back_as_a_string() -> None:
    made = turn("p9_object_arguments")
    assert arguments(made) == [{"file_path": "a.txt", "limit": 3}]
    sent = once_replayed(made)[0]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(sent, str) and json.loads(sent) == {"file_path": "a.txt", "limit": 3}


def test_p10_a_stream_cut_within_a_call_gives_no_turn() -> None:
    with pytest.raises(ProviderError) as caught:
        turn("p10_cut")
    assert caught.value.kind == "stream_cut" and not caught.value.permanent


def test_p11_the_same_tool_twice_is_two_calls_with_results_in_order() -> None:
    made = turn("p11_same_tool_twice")
    assert arguments(made) == [{"file_path": "a.txt"}, {"file_path": "b.txt"}]
    _assistant, *results = once_replayed(made)
    assert [(r["tool_call_id"], r["content"]) for r in results] == [("call_1", "result 0"), ("call_2", "result 1")]


def test_p13_usage_comes_in_a_chunk_without_choices() -> None:
    made = turn("p13_usage_and_comments")
    assert made.text == "Hi" and made.stop_reason == "end_turn"
    assert made.usage == Usage(
        input_tokens=120, output_tokens=30, cache_read_tokens=64, reasoning_tokens=12, requests=1
    )


# ---- other quirks -------------------------------------------------------------------------------------------


def test_text_arrives_in_chunks_and_whole() -> None:
    assembler = Assembler()
    chunks = [chunk for event in events("chat_text") for chunk in assembler.feed(event)]
    assert chunks == [TextChunk(text="Hel"), TextChunk(text="lo")]
    made = assembler.finish()
    assert (made.text, made.model, made.usage.output_tokens) == ("Hello", "m-1", 30)
    assert plain(made.wire) == {"role": "assistant", "content": "Hello"}


def test_usage_may_be_missing() -> None:
    assert turn("p1_shared_index").usage == Usage(requests=1)


def test_interleaved_fragments_go_to_their_own_calls() -> None:
    made = turn("interleaved")
    assert [(c.tool, c.arguments) for c in made.calls] == [("Read", {"file_path": "a"}), ("Glob", {"pattern": "*"})]


def test_chunks_name_the_position_of_their_call() -> None:
    assembler = Assembler()
    chunks = [chunk for event in events("chat_interleaved") for chunk in assembler.feed(event)]
    assert chunks[:3] == [
        CallChunk(position=0, tool="Read"),
        CallChunk(position=1, tool="Glob"),
        CallChunk(position=1, arguments_text='{"pattern":'),
    ]


@pytest.mark.parametrize("name", ["arguments_before_name", "name_in_each_chunk"])
def test_odd_places_of_names_and_arguments_are_one_call(name: str) -> None:
    (call,) = turn(name).calls
    assert (call.pairing_id, call.tool, call.arguments) == ("c0", "Read", {"file_path": "a.txt"})


def test_a_name_in_pieces_is_joined() -> None:
    assert turn("name_split").calls[0].tool == "mcp__files__read"


def test_empty_arguments_are_an_empty_object_and_go_back_as_one() -> None:
    made = turn("empty_arguments")
    assert arguments(made) == [{}] and made.calls[0].problem is None
    assert once_replayed(made)[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_calls_with_neither_id_nor_index_are_told_apart_by_whole_arguments() -> None:
    made = turn("no_ids_no_index")
    assert arguments(made) == [{"file_path": "a.txt"}, {"file_path": "b.txt"}]
    assert len({c.pairing_id for c in made.calls}) == 2


def test_a_finish_reason_of_tool_calls_without_calls_is_the_end() -> None:
    assert turn("tool_calls_without_calls").stop_reason == "end_turn"


@pytest.mark.parametrize("name", ["no_done_marker", "done_without_finish"])
def test_one_of_two_end_marks_is_enough(name: str) -> None:
    assert turn(name).text == "Done."


def test_a_refusal_is_text_and_a_stop_reason_and_goes_back_as_a_refusal() -> None:
    made = turn("refusal")
    assert (made.stop_reason, made.text) == ("refusal", "I can't help with that.")
    assert once_replayed(made) == [{"role": "assistant", "content": None, "refusal": "I can't help with that."}]


def test_a_content_filter_is_a_stop_reason() -> None:
    assert turn("content_filter").stop_reason == "content_filter"


def test_a_call_cut_by_length_has_a_problem_and_goes_back_as_json_that_servers_can_read() -> None:
    made = turn("length_in_call")
    (call,) = made.calls
    assert made.stop_reason == "max_tokens" and call.arguments is None
    assert call.problem and "not valid JSON" in call.problem
    sent = once_replayed(made)[0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_arguments": '{"file_path":"a.txt","content":"abc'}


@pytest.mark.parametrize(("name", "word"), [("array_arguments", "an array"), ("broken_arguments", "not valid JSON")])
def test_arguments_that_are_no_object_are_a_problem_that_says_why(name: str, word: str) -> None:
    (call,) = turn(name).calls
    assert call.arguments is None and call.problem and word in call.problem


def test_reasoning_content_is_shown_and_goes_back_and_think_tags_are_text() -> None:
    made = turn("reasoning_content")
    assert (made.reasoning, made.text) == ("Let me look.", "<think>x</think>Yes")
    assert once_replayed(made)[0]["reasoning_content"] == "Let me look."


def test_reasoning_details_are_put_together_and_go_back_with_their_signature() -> None:
    assembler = Assembler()
    chunks = [chunk for event in events("chat_reasoning_details") for chunk in assembler.feed(event)]
    assert [c.text for c in chunks if isinstance(c, ReasoningChunk)] == ["Look", "ing"]
    made = assembler.finish()
    assert made.reasoning == "Looking"
    (message, _) = once_replayed(made)
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Looking", "format": "v1", "index": 0, "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "AAAA", "index": 1},
    ]


def test_a_thought_signature_on_a_call_goes_back() -> None:
    call = once_replayed(turn("thought_signature"))[0]["tool_calls"][0]
    assert call["extra_content"] == {"google": {"thought_signature": "c2lnbmF0dXJl"}}


def test_lone_surrogates_become_replacement_characters() -> None:
    made = turn("lone_surrogates")
    assert made.text.startswith("a\ufffd") and made.text.endswith("b")
    made.text.encode()
    json.dumps(once_replayed(made), ensure_ascii=False).encode()


def test_unicode_line_separators_are_text() -> None:
    assert turn("unicode_line_separators").text == "a\u2028b\u2029c\u0085d"


def test_an_error_inside_the_stream_is_an_error() -> None:
    with pytest.raises(ProviderError) as caught:
        turn("error_inside")
    assert (caught.value.kind, caught.value.permanent) == ("overloaded", False)
    assert "Provider returned error" in caught.value.message


def test_an_entry_that_says_nothing_is_no_call() -> None:
    assert turn("phantom_call").calls == ()


def test_a_whole_answer_that_was_not_streamed_is_taken() -> None:
    made = assemble([json.loads((STREAMS / "chat_whole_answer.json").read_bytes())])
    assert [c.pairing_id for c in made.calls] == ["c0", "c1"]
    assert (made.text, made.usage.input_tokens) == ("Looking.", 120)


@given(st.lists(st.recursive(json_values(), lambda v: st.fixed_dictionaries({"choices": st.lists(v)}))))
@examples(100)
def test_nothing_that_a_server_sends_can_crash_the_assembler(values: list[Any]) -> None:
    with contextlib.suppress(ProviderError):
        assemble(
            [v if isinstance(v, dict) else {"choices": [{"delta": {"tool_calls": [v], "content": v}}]} for v in values]
        )


@given(st.data())
@examples(100)
def test_any_split_of_the_arguments_gives_the_same_turn(data: st.DataObject) -> None:
    text = json.dumps(data.draw(st.dictionaries(st.text(max_size=5), json_values(), max_size=3)))
    repeat_id, repeat_name = data.draw(st.booleans()), data.draw(st.booleans())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    streams = []
    for parts in ([text], pieces):
        stream: list[dict[str, Any]] = []
        for at, part in enumerate(parts):
            function = {"arguments": part} | ({"name": "Read"} if repeat_name or not at else {})
            entry = {"index": 0, "function": function} | ({"id": "c0"} if repeat_id or not at else {})
            stream.append({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]})
        streams.append([*stream, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}])
    assert assemble(streams[0]) == assemble(streams[1])


# ---- requests -----------------------------------------------------------------------------------------------


def test_a_request_holds_what_was_asked_for() -> None:
    settings = ModelSettings(model="m", max_tokens=9, temperature=0.5, effort="low")
    body = plain(request(History([prompt("hi")]), (READ,), settings, system="Be brief.", origin=ORIGIN))
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "Read", "description": "Read a file.", "parameters": READ.parameters},
            }
        ],
        "max_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "low",
    }


def test_openai_itself_gets_the_newer_name_of_the_token_limit() -> None:
    body = request(History(), (), ModelSettings(model="m", max_tokens=9), origin="openai_chat@https://api.openai.com")
    assert body["max_completion_tokens"] == 9 and "max_tokens" not in body


def test_another_servers_private_data_never_goes_out() -> None:
    item = accepted(turn("p7_odd_ids"), OTHER, 2)
    messages = replayed(item)
    ids = [c.tool_call_id for c in item.calls]
    assert [c["id"] for c in messages[0]["tool_calls"]] == ids == [m["tool_call_id"] for m in messages[1:]]
    assert "xxxx" not in json.dumps(messages)
    assert "reasoning_content" not in replayed(accepted(turn("reasoning_content"), OTHER, 2))[0]


def test_an_image_in_a_result_follows_all_results_of_the_turn() -> None:
    image = ImagePart(media_type="image/png", data="AAAA", name="a.png")
    outputs: list[tuple[Part, ...]] = [(image,), (TextPart(text="b"),)]
    _, first, second, images = replayed(accepted(turn("p11_same_tool_twice"), ORIGIN, 2, outputs))
    assert (first["role"], first["content"]) == ("tool", "[image a.png]")
    assert (second["role"], second["content"]) == ("tool", "b")
    assert images["role"] == "user" and images["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


def test_a_prompt_with_an_image_has_typed_content() -> None:
    item = prompt("look")
    item = msgspec.structs.replace(item, parts=(*item.parts, ImagePart(media_type="image/png", data="AAAA")))
    (message,) = replayed(item)
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]


def test_a_summary_is_labelled() -> None:
    (message,) = replayed(SummaryItem(offset=Offset(3), text="They greeted."))
    assert (
        message["role"] == "user" and message["content"].startswith("Summary") and "They greeted." in message["content"]
    )


def test_each_item_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[HistoryItem] = []

    def counted(item: HistoryItem, origin: str) -> list[msgspec.Raw]:
        seen.append(item)
        return encode_item(item, origin)

    monkeypatch.setattr(openai_chat, "encode_item", counted)
    history, memo = History(), EncodedHistory()
    for number in range(1, 6):
        history.append(prompt("more", number))
        request(history, (), ModelSettings(model="m"), memo=memo, origin=ORIGIN)
    assert seen == history.items


def turn_items() -> st.SearchStrategy[TurnItem]:
    """Turns of this server, of another, and of none."""
    return st.builds(
        random_turn,
        st.integers(1, 10**6),
        st.lists(st.text(min_size=1, max_size=5), max_size=4, unique=True),
        st.sampled_from([ORIGIN, OTHER, ""]),
        st.lists(st.sampled_from(["t", "i", ""]), min_size=4, max_size=4),
    )


def random_turn(offset: int, ids: list[str], origin: str, outputs: list[str]) -> TurnItem:
    stream = [
        {"choices": [{"delta": {"tool_calls": [{"index": at, "id": i, "function": {"name": "Read"}}]}}]}
        for at, i in enumerate(ids)
    ]
    made = assemble([*stream, {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}])
    kinds: dict[str, tuple[Part, ...]] = {
        "t": (TextPart(text="x"),),
        "i": (ImagePart(media_type="image/png", data="AA"),),
        "": (),
    }
    item = accepted(made, origin, offset, [kinds[o] for o in outputs[: len(ids)]])
    if origin:
        return item
    calls = tuple(
        HistoryCall(tool_call_id=ToolCallID(c.tool_call_id), tool=c.tool, arguments=c.arguments) for c in item.calls
    )
    results = tuple(HistoryResult(tool_call_id=r.tool_call_id, status="error", parts=r.parts) for r in item.results)
    return TurnItem(offset=item.offset, text=item.text, calls=calls, results=results)


def check_chat(messages: list[dict[str, Any]]) -> None:
    """The API's own rule: each call is answered once, right behind the message that made it, before other text."""
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert isinstance(message["content"], str) and message["content"]
            open_ids.remove(message["tool_call_id"])
            continue
        assert not open_ids, "a call has no result"
        assert message.get("content") or message.get("tool_calls")
        open_ids = [call["id"] for call in message.get("tool_calls", [])]
        assert len(set(open_ids)) == len(open_ids)
    assert not open_ids


@given(
    st.lists(
        turn_items()
        | st.builds(prompt, st.text(min_size=1), st.just(1))
        | st.just(SummaryItem(offset=Offset(1), text="s"))
    )
)
@examples(100)
def test_every_history_is_a_valid_request(items: list[HistoryItem]) -> None:
    check_chat(replayed(*items))
