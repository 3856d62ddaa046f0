"""The scripted provider: script files, turn counting, strictness."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from counterfoil.errors import ConfigError, ProviderError
from counterfoil.events import AssistantReplay, CallReplay, TextPart, Usage
from counterfoil.identity import Offset, ToolCallID
from counterfoil.ports import CallChunk, ModelRequest, ModelSettings, ModelTurn, StreamItem, TextChunk, ToolSpec
from counterfoil.providers.script import load_script, parse_script, pieces, script_from
from counterfoil.providers.scripted import ORIGIN, ScriptedProvider
from counterfoil.state.history import EncodedHistory, History, HistoryCall, HistoryResult, PromptItem, TurnItem

TOOL = ToolSpec(name="Read", description="Read a file.", parameters={"type": "object"})


class Talk:
    """One session with a scripted provider, as an engine would hold it."""

    def __init__(self, script: dict[str, Any], prompt: str = "go") -> None:
        self.provider = ScriptedProvider(script_from(script), placeholders={"WORKSPACE": "/w"})
        self.memo = EncodedHistory()
        self.history = History([PromptItem(offset=Offset(1), parts=(TextPart(text=prompt),))])
        self.offset = 1

    async def items(self, *, tools: bool = True) -> list[StreamItem]:
        """What one request yields."""
        request = ModelRequest(
            history=self.history,
            system="",
            tools=(TOOL,) if tools else (),
            settings=ModelSettings(model="demo"),
            memo=self.memo,
        )
        return [item async for item in self.provider.stream(request)]

    async def ask(self, *, tools: bool = True) -> ModelTurn:
        """The whole turn that one request yields."""
        last = (await self.items(tools=tools))[-1]
        assert isinstance(last, ModelTurn)
        return last

    def accept(self, turn: ModelTurn) -> TurnItem:
        """Put `turn` into the history with a result for each call."""
        self.offset += 1
        calls = tuple(
            HistoryCall(
                tool_call_id=ToolCallID(f"call_{self.offset}_{n}"),
                tool=c.tool,
                arguments=c.arguments or {},
                replay=CallReplay(origin=ORIGIN, pairing_id=c.pairing_id),
            )
            for n, c in enumerate(turn.calls)
        )
        results = tuple(HistoryResult(tool_call_id=c.tool_call_id, status="ok", parts=()) for c in calls)
        assert turn.wire is not None
        replay = AssistantReplay(origin=ORIGIN, wire=turn.wire)
        item = TurnItem(offset=Offset(self.offset), text=turn.text, calls=calls, results=results, replay=replay)
        self.history.append(item)
        return item


READ = {"tool": "Read", "arguments": {"file_path": "${WORKSPACE}/a"}}


async def test_turns_follow_the_script_and_then_the_end() -> None:
    talk = Talk({"turns": [{"text": "one", "calls": [READ]}, {"text": "two"}], "end": "over"})
    first = await talk.ask()
    assert (first.text, first.stop_reason) == ("one", "tool_use")
    assert first.calls[0].arguments == {"file_path": "/w/a"}
    talk.accept(first)
    talk.accept(second := await talk.ask())
    assert (second.text, second.stop_reason) == ("two", "end_turn")
    assert (await talk.ask()).text == "over"


async def test_attempts_are_used_in_order_and_the_last_repeats() -> None:
    bad = {"error": {"kind": "rate_limited", "retry_after": 0.01}}
    talk = Talk({"turns": [{"attempts": [bad, {"text": "half", "cut": True}, {"text": "good"}]}]})
    with pytest.raises(ProviderError) as first:
        await talk.ask()
    assert (first.value.kind, first.value.permanent, first.value.retry_after) == ("rate_limited", False, 0.01)
    with pytest.raises(ProviderError) as second:
        await talk.ask()
    assert second.value.kind == "stream_cut"
    assert [(await talk.ask()).text for _ in range(2)] == ["good", "good"]


async def test_a_compaction_does_not_turn_the_script_back() -> None:
    talk = Talk({"turns": [{"text": str(n), "calls": [READ]} for n in range(6)], "aside": "the summary"})
    for _ in range(3):
        talk.accept(await talk.ask())
    assert (await talk.ask(tools=False)).text == "the summary"
    talk.history.compact(Offset(talk.offset), "the summary")
    talk.offset += 1
    talk.accept(turn := await talk.ask())
    assert turn.text == "3"
    talk.history.compact(Offset(talk.offset), "again, unseen")
    talk.offset += 1
    assert (await talk.ask()).text == "4"
    assert (await talk.ask()).text == "4"


async def test_two_sessions_of_one_provider_are_counted_apart() -> None:
    talk = Talk({"turns": [{"text": "root"}], "branches": [{"when": "child", "turns": [{"text": "branch"}]}]})
    other = Talk({}, prompt="you are a child")
    other.provider = talk.provider
    assert ((await talk.ask()).text, (await other.ask()).text) == ("root", "branch")


async def test_text_comes_in_the_asked_number_of_chunks() -> None:
    talk = Talk({"turns": [{"text": "abcdefg", "chunks": 3, "calls": [READ]}]})
    items = await talk.items()
    assert [i.text for i in items if isinstance(i, TextChunk)] == ["abc", "def", "g"]
    assert [i.tool for i in items if isinstance(i, CallChunk)] == ["Read", ""]
    assert list(pieces("", 3)) == []


async def test_argument_text_is_sent_as_it_stands_and_ids_may_repeat() -> None:
    calls = [{"tool": "Read", "arguments": text, "id": "same"} for text in ("", '{"a": 1}', "[1]", "{")]
    turn = await Talk({"turns": [{"calls": calls}]}).ask()
    assert [c.arguments for c in turn.calls] == [{}, {"a": 1}, None, None]
    assert [bool(c.problem) for c in turn.calls] == [False, False, True, True]
    assert {c.pairing_id for c in turn.calls} == {"same"}


async def test_p04_an_empty_id_is_made_by_the_adapter() -> None:
    turn = await Talk({"turns": [{"calls": [{"tool": "Read", "id": ""}, {"tool": "Read", "id": ""}]}]}).ask()
    assert all(c.made and c.pairing_id for c in turn.calls)
    assert turn.calls[0].pairing_id != turn.calls[1].pairing_id


async def test_changed_replay_data_is_refused() -> None:
    talk = Talk({"turns": [{"calls": [READ]}]})
    item = talk.accept(await talk.ask())
    call = msgspec.structs.replace(item.calls[0], replay=CallReplay(origin=ORIGIN, pairing_id="other"))
    wire = AssistantReplay(origin=ORIGIN, wire=msgspec.Raw(b'{"ids":["pair-0-0"],"seal":"x"}'))
    for changed in (
        msgspec.structs.replace(item, calls=(call,)),
        msgspec.structs.replace(item, results=()),
        msgspec.structs.replace(item, replay=wire),
    ):
        talk.history.items[-1] = changed
        with pytest.raises(ProviderError) as refused:
            await talk.ask()
        assert (refused.value.kind, refused.value.permanent) == ("bad_request", True)
    foreign = AssistantReplay(origin="elsewhere@host", wire=msgspec.Raw(b"1"))
    talk.history.items[-1] = msgspec.structs.replace(item, replay=foreign)
    assert await talk.ask()


async def test_a_hanging_turn_can_be_cancelled() -> None:
    task = asyncio.create_task(Talk({"turns": [{"hang": True}]}).ask())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("turns: [{chunks: many}]", "turns[0].chunks"),
        ("turns: [{chunks: 0}]", "turns[0]"),
        ("turns: [{txt: hi}]", "txt"),
        ("turns: [{text: a, attempts: [{text: b}]}]", "attempts"),
        ("turns: [", "YAML"),
        ("turns: [{calls: [{arguments: {}}]}]", "calls[0]"),
    ],
)
def test_a_faulty_script_names_file_and_field(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as fault:
        load_script(path)
    assert "demo.yaml" in str(fault.value)
    assert named in str(fault.value)


def test_json_and_yaml_scripts_are_one_format(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_bytes(b'{"turns":[{"text":"hi","usage":{"input_tokens":3}}]}')
    script = load_script(path)
    assert script == parse_script("turns: [{text: hi, usage: {input_tokens: 3}}]")
    assert script.turns[0].usage == Usage(input_tokens=3)
    with pytest.raises(ConfigError):
        load_script(tmp_path / "absent.yaml")
