"""The model server of the tests: what it answers, what it refuses, what it plays."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from counterfoil.ports import ModelTurn
from counterfoil.providers import make_provider
from counterfoil.state.history import History
from tests.providers.wirekit import accepted, asked, prompt
from tests.support.model_server import ModelServer

SCRIPT = {
    "turns": [{"text": "hello", "chunks": 2, "reasoning": "why", "calls": [{"tool": "Read", "arguments": {"a": 1}}]}],
    "end": "over",
    "pairing_prefix": "CANARY-pairing-",
}
VERSION = {"anthropic-version": "2023-06-01"}
USER = {"role": "user", "content": "go"}


async def post(server: ModelServer, path: str, **body: Any) -> httpx.Response:
    """One request with the least that each API demands."""
    async with httpx.AsyncClient(headers=VERSION) as client:
        response = await client.post(server.base_url + path, json={"model": "m", "max_tokens": 9, **body})
        return response


def data(response: httpx.Response) -> list[Any]:
    """The decoded events of a stream."""
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def test_it_streams_and_answers_whole_in_three_formats() -> None:
    async with ModelServer(SCRIPT) as server:
        chat = data(await post(server, "/chat/completions", messages=[USER], stream=True))
        assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chat if c["choices"]) == "hello"
        whole = (await post(server, "/chat/completions", messages=[USER])).json()
        assert whole["choices"][0]["message"]["tool_calls"][0]["id"] == "CANARY-pairing-0-0"
        messages = data(await post(server, "/messages", messages=[USER], stream=True))
        assert (messages[0]["type"], messages[-1]["type"]) == ("message_start", "message_stop")
        kinds = [block["type"] for block in (await post(server, "/messages", messages=[USER])).json()["content"]]
        assert kinds == ["thinking", "redacted_thinking", "text", "tool_use"]
        responses = data(await post(server, "/responses", input="go", stream=True))
        assert responses[-1]["type"] == "response.completed"
        assert [i["type"] for i in responses[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]
        assert server.refusals == []


async def test_it_refuses_open_calls_and_changed_private_strings() -> None:
    async with ModelServer(SCRIPT) as server:
        content = (await post(server, "/messages", messages=[USER])).json()["content"]
        turn = {"role": "assistant", "content": content}
        result = {"type": "tool_result", "tool_use_id": "CANARY-pairing-0-0", "content": "x"}
        answer = {"role": "user", "content": [result]}
        assert (await post(server, "/messages", messages=[USER, turn, answer])).json()["content"][0]["text"] == "over"
        assert (await post(server, "/messages", messages=[USER, turn, USER])).status_code == 400
        without = {"role": "assistant", "content": content[2:]}
        assert (await post(server, "/messages", messages=[USER, without, answer])).status_code == 400
        content[0]["signature"] += "x"
        assert (await post(server, "/messages", messages=[USER, turn, answer])).status_code == 400
        assert len(server.refusals) == 3


async def test_it_refuses_bad_chat_and_responses_requests() -> None:
    async with ModelServer(SCRIPT) as server:
        message = (await post(server, "/chat/completions", messages=[USER])).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": "CANARY-pairing-0-0", "content": "x"}
        good = await post(server, "/chat/completions", messages=[USER, message, result])
        assert good.json()["choices"][0]["message"]["content"] == "over"
        assert (await post(server, "/chat/completions", messages=[USER, message, USER, result])).status_code == 400
        items = (await post(server, "/responses", input="go")).json()["output"]
        output = {"type": "function_call_output", "call_id": "CANARY-pairing-0-0", "output": "x"}
        assert (await post(server, "/responses", input=[USER, *items, output])).status_code == 200
        assert (await post(server, "/responses", input=[USER, *items])).status_code == 400
        assert (await post(server, "/responses", input=[USER, *items[1:], output])).status_code == 400
        assert (await post(server, "/responses", input=[USER, output])).status_code == 400


@pytest.mark.parametrize("wire", ["openai_chat", "openai", "anthropic"])
async def test_each_adapter_sends_private_strings_back_as_they_came(wire: str) -> None:
    history = History([prompt("go")])
    async with ModelServer(SCRIPT, require_key="k") as server:
        provider = make_provider(wire, base_url=server.base_url, api_key="k")
        texts = []
        for offset in (2, 3):
            items = [item async for item in provider.stream(asked(history))]
            turn = items[-1]
            assert isinstance(turn, ModelTurn)
            texts.append(turn.text)
            history.append(accepted(turn, provider.origin, offset))
        await provider.close()
    assert (server.refusals, texts) == ([], ["hello", "over"])
    assert b"CANARY-pairing-0-0" in server.requests[-1].raw


async def test_it_plays_errors_cuts_keys_and_recorded_bytes(tmp_path: Path) -> None:
    raw = tmp_path / "stream.txt"
    raw.write_bytes(b": only a comment\n\n")
    attempts = [
        {"error": {"kind": "rate_limited", "retry_after": 1.5, "headers": {"x-more": "1"}}},
        {"text": "half", "cut": True},
        {"raw": str(raw)},
        {"text": "good", "keep_alive": True, "slow": 0.0001},
    ]
    async with ModelServer({"turns": [{"attempts": attempts}]}, require_key="k") as server:
        assert (await post(server, "/messages", messages=[USER])).status_code == 401
        server.require_key = None
        limited = await post(server, "/messages", messages=[USER], stream=True)
        assert (limited.status_code, limited.headers["retry-after"], limited.headers["x-more"]) == (429, "1.5", "1")
        with pytest.raises(httpx.RemoteProtocolError):
            await post(server, "/messages", messages=[USER], stream=True)
        assert (await post(server, "/messages", messages=[USER], stream=True)).content == raw.read_bytes()
        last = await post(server, "/messages", messages=[USER], stream=True)
        assert ": keep-alive" in last.text
        assert data(last)[-1] == {"type": "message_stop"}


async def test_it_runs_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("turns: [{text: hi}]")
    arguments = ("-m", "tests.support.model_server", "--script", str(script))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    async with httpx.AsyncClient() as client:
        assert (await client.get(url + "/models")).json()["data"][0]["id"] == "scripted"
    process.terminate()
    await process.wait()
