"""The engine over real HTTP, through all three wire formats: on our own strict server, and on an independent mock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from counterfoil.events import AssistantMessage, CallAccepted, CallFinished, Notice, TurnRejected, text_of
from counterfoil.providers import make_provider
from tests.support.aimock import MISSING, aimock, journal
from tests.support.harness import CountingTool, Rig, call, turn
from tests.support.model_server import ModelServer

WIRES = ("openai_chat", "openai", "anthropic")
ADDED = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

SCRIPTS: dict[str, dict[str, Any]] = {
    "text": {"turns": [{"text": "Hello there.", "chunks": 3}]},
    "one": {"turns": [turn(call("add", a=1), text="I will add."), {"text": "Added."}]},
    "two": {"turns": [turn(call("add", a=1), call("add", a=2)), {"text": "Both added."}]},
    "retry": {
        "turns": [
            {"attempts": [{"error": {"kind": "rate_limited", "retry_after": 1}}, turn(call("add", a=1))]},
            {"text": "Added."},
        ]
    },
    "cut": {
        "turns": [
            {"attempts": [turn(call("add", a=1), text="I will") | {"cut": True}, turn(call("add", a=1))]},
            {"text": "Added."},
        ]
    },
    "again": {"turns": [turn(call("add", id="call_0", a=n)) for n in (1, 2)] + [{"text": "Done."}]},
    "think": {"turns": [turn(call("add", a=1), text="So.") | {"reasoning": "Let me think."}, {"text": "Added."}]},
    "refuse": {"turns": [{"error": {"kind": "bad_request", "message": "no such thing", "permanent": True}}]},
}


def _calls(*amounts: int) -> list[dict[str, Any]]:
    return [{"id": f"call_{a}", "name": "add", "arguments": {"a": a}} for a in amounts]


def _called(word: str, content: str, calls: list[dict[str, Any]], end: str) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"toolCalls": calls} | ({"content": content} if content else {})
    return [
        {"match": {"userMessage": word, "hasToolResult": False}, "response": said, "chunkSize": 6},
        {"match": {"userMessage": word, "hasToolResult": True}, "response": {"content": end}},
    ]


def _call_0(turn: int) -> dict[str, Any]:
    said = {"toolCalls": [{"id": "call_0", "name": "add", "arguments": {"a": turn + 1}}]}
    return {
        "match": {"userMessage": "again", "turnIndex": turn},
        "response": said if turn < 2 else {"content": "Done."},
    }


LIMITED = {
    "match": {"userMessage": "retry", "sequenceIndex": 0},
    "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1},
}
CUT = {
    "match": {"userMessage": "cut", "hasToolResult": False, "sequenceIndex": 0},
    "response": {"toolCalls": _calls(1)},
    "truncateAfterChunks": 2,
    "chunkSize": 4,
}
REFUSED = {
    "match": {"userMessage": "refuse"},
    "response": {"error": {"message": "no such thing", "type": "invalid_request_error"}, "status": 400},
}
FIXTURES: dict[str, list[dict[str, Any]]] = {
    "text": [{"match": {"userMessage": "text"}, "response": {"content": "Hello there."}, "chunkSize": 4}],
    "one": _called("one", "I will add.", _calls(1), "Added."),
    "two": _called("two", "", _calls(1, 2), "Both added."),
    "retry": [LIMITED, *_called("retry", "", _calls(1), "Added.")],
    "cut": [CUT, *_called("cut", "", _calls(1), "Added.")],
    "again": [_call_0(turn) for turn in range(3)],
    "think": _called("think", "So.", _calls(1), "Added."),
    "refuse": [REFUSED],
}
FIXTURES["think"][0]["response"]["reasoning"] = "Let me think."

Serve = Callable[..., AbstractAsyncContextManager[str]]


def check_journal(requests: list[dict[str, Any]]) -> None:
    """As the mock server read our requests: the calls of each turn are answered right after it, by their own ids."""
    assert requests
    for request in requests:
        owed: list[str] = []
        for message in request["body"]["messages"]:
            if message["role"] == "tool":
                owed.remove(message["tool_call_id"])
                continue
            assert owed == [] or message["role"] == "assistant"
            owed += [c["id"] for c in message.get("tool_calls") or []]
        assert owed == []


@pytest.fixture(
    params=[
        "own",
        pytest.param("mock", marks=[pytest.mark.peers, pytest.mark.skipif(bool(MISSING), reason=MISSING or "-")]),
    ]
)
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    """Starts the server that plays one of the conversations; gives its base URL."""

    @asynccontextmanager
    async def own(name: str, key: str | None = None) -> AsyncIterator[str]:
        async with ModelServer(SCRIPTS[name], require_key=key) as server:
            yield server.base_url
            assert server.refusals == []

    @asynccontextmanager
    async def mock(name: str, key: str | None = None) -> AsyncIterator[str]:
        async with aimock(FIXTURES[name], tmp_path, key=key or "") as url:
            yield f"{url}/v1"
            if key is None:
                check_journal(await journal(url))

    return own if request.param == "own" else mock


def rig_at(url: str, wire: str, *tools: Any) -> Rig:
    return Rig({}, *tools, provider=lambda meta: make_provider(wire, base_url=url, api_key="k"))


@pytest.mark.parametrize("wire", WIRES)
class TestConversation:
    """One conversation of each kind."""

    async def test_text(self, serve: Serve, wire: str) -> None:
        async with serve("text") as url:
            rig = rig_at(url, wire)
            async with await rig.session() as session:
                outcome = await session.prompt("text")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Hello there."), outcome.error

    async def test_one_call(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("one") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("one")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Added."), outcome.error
        assert [arguments for _, arguments in tool.runs] == [{"a": 1}]

    async def test_parallel_calls(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED, read_only=True)
        async with serve("two") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("two")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Both added."), outcome.error
        log = await rig.log(session.id)
        accepted = [e for e in log if isinstance(e, CallAccepted)]
        assert [e.arguments for e in accepted] == [{"a": 1}, {"a": 2}]
        assert [e.tool_call_id for e in log if isinstance(e, CallFinished)] == [e.tool_call_id for e in accepted]

    async def test_an_error_and_a_retry(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("retry") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("retry")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Added."), outcome.error
        assert rig.clock.slept == [1.0] and len(tool.runs) == 1
        assert [e.code for e in await rig.log(session.id) if isinstance(e, Notice)] == ["provider_retry"]

    async def test_p10_a_stream_that_is_cut_is_asked_again_and_nothing_of_it_is_recorded(
        self, serve: Serve, wire: str
    ) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("cut") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("cut")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Added."), outcome.error
        log = await rig.log(session.id)
        assert len(tool.runs) == len([e for e in log if isinstance(e, CallAccepted)]) == len(rig.clock.slept) == 1
        assert [e.code for e in log if isinstance(e, Notice)] == ["provider_retry"]

    async def test_p5_an_id_that_comes_again_in_a_later_turn_is_another_call(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("again") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("again")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Done."), outcome.error
        assert [arguments for _, arguments in tool.runs] == [{"a": 1}, {"a": 2}]
        assert len({call_id for call_id, _ in tool.runs}) == 2

    async def test_reasoning_is_shown_and_goes_back(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("think") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                outcome = await session.prompt("think")
        assert (outcome.stop_reason, outcome.text) == ("end_turn", "Added."), outcome.error
        first, last = (e for e in await rig.log(session.id) if isinstance(e, AssistantMessage))
        assert (first.text, first.reasoning, last.reasoning) == ("So.", "Let me think.", "")

    async def test_a_request_that_is_refused_ends_the_run_at_once(self, serve: Serve, wire: str) -> None:
        async with serve("refuse") as url:
            rig = rig_at(url, wire)
            async with await rig.session() as session:
                outcome = await session.prompt("refuse")
        assert outcome.stop_reason == "provider_error" and outcome.error is not None
        assert (outcome.error.code, outcome.error.permanent) == ("bad_request", True)
        assert "no such thing" in outcome.error.message and rig.clock.slept == []

    async def test_a_wrong_key_ends_the_run_at_once_and_says_which_variable(self, serve: Serve, wire: str) -> None:
        async with serve("text", key="right") as url:
            rig = rig_at(url, wire)
            async with await rig.session() as session:
                outcome = await session.prompt("text")
        assert outcome.stop_reason == "provider_error" and outcome.error is not None
        assert outcome.error.code == "auth" and outcome.error.permanent and "API_KEY" in outcome.error.hint
        assert rig.clock.slept == []

    async def test_two_prompts_and_a_restart_between_them_are_one_conversation(self, serve: Serve, wire: str) -> None:
        tool = CountingTool("add", parameters=ADDED)
        async with serve("one") as url:
            rig = rig_at(url, wire, tool)
            async with await rig.session() as session:
                await session.prompt("one")
            async with await rig.engine.open(session.id) as session:
                assert (await session.prompt("one more")).stop_reason == "end_turn"
        kinds = await rig.kinds(session.id)
        assert kinds.count("run.finished") == 2 and "turn.rejected" not in kinds


@pytest.mark.parametrize("wire", WIRES)
async def test_a_server_that_is_not_there_is_tried_again_and_then_named(wire: str) -> None:
    rig = rig_at("http://127.0.0.1:9/v1", wire)
    async with await rig.session() as session:
        outcome = await session.prompt("text")
    assert outcome.error is not None and outcome.error.code == "unreachable"
    assert "127.0.0.1:9" in outcome.error.message and len(rig.clock.slept) == 5


@pytest.mark.parametrize("wire", WIRES)
async def test_p6_a_turn_that_repeats_an_id_is_rejected_over_the_wire_too(wire: str) -> None:
    tool = CountingTool("add", parameters=ADDED)
    bad = turn(call("add", id="x", a=1), call("add", id="x", a=2))
    good = turn(call("add", id="x", a=1), call("add", id="y", a=2))
    async with ModelServer({"turns": [{"attempts": [bad, good]}, {"text": "Done."}]}) as server:
        rig = rig_at(server.base_url, wire, tool)
        async with await rig.session() as session:
            assert (await session.prompt("go")).text == "Done."
    assert len(tool.runs) == 2 and server.refusals == []
    assert len([e for e in await rig.log(session.id) if isinstance(e, TurnRejected)]) == 1


async def test_another_provider_gets_the_conversation_and_none_of_the_first_ones_ids() -> None:
    tool = CountingTool("add", parameters=ADDED)
    script = {
        "pairing_prefix": "CANARY-pairing-",
        "turns": [turn(call("add", a=1)) | {"reasoning": "I think."}, {"text": "One."}],
    }
    second = {"turns": [{"text": "never"}, {"text": "never"}, {"text": "Two."}]}
    async with ModelServer(script) as one, ModelServer(second) as two:
        urls = {"anthropic": one.root_url, "openai_chat": two.base_url}
        rig = Rig({}, tool, provider=lambda m: make_provider(m.provider, base_url=urls[m.provider], api_key="k"))
        async with await rig.session(provider="anthropic") as session:
            assert (await session.prompt("go")).text == "One."
            await session.set_model("openai_chat", "other")
            assert (await session.prompt("again")).text == "Two."
    assert two.refusals == [] and one.refusals == []
    assert b"CANARY" in one.requests[-1].raw and b"CANARY" not in two.requests[-1].raw
    (finished,) = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert finished.tool_call_id.encode() in two.requests[-1].raw and text_of(finished.parts) == "add run 1"
