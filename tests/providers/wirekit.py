"""What the tests of the HTTP adapters share: recorded streams, a raw loopback server, a history as engines keep it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.events import AssistantReplay, CallReplay, Part, TextPart
from counterfoil.identity import Offset, ToolCallID
from counterfoil.ports import ModelRequest, ModelSettings, ModelTurn, ToolSpec
from counterfoil.providers.http import decode_data
from counterfoil.state.history import EncodedHistory, History, HistoryCall, HistoryResult, PromptItem, TurnItem

STREAMS = Path(__file__).parent / "streams"
READ = ToolSpec(name="Read", description="Read a file.", parameters={"type": "object", "properties": {}})


def recorded(name: str) -> bytes:
    """The bytes of a recorded stream."""
    return (STREAMS / f"{name}.sse").read_bytes()


def events(name: str) -> list[dict[str, Any]]:
    """The decoded events of a recorded stream, read in the plainest way."""
    data = [line[6:] for line in recorded(name).decode().split("\n") if line.startswith("data: ")]
    return [event for event in map(decode_data, data) if event is not None]


def prompt(text: str, offset: int = 1) -> PromptItem:
    """A prompt by a person."""
    return PromptItem(offset=Offset(offset), parts=(TextPart(text=text),))


def accepted(turn: ModelTurn, origin: str, offset: int, outputs: Sequence[tuple[Part, ...]] | None = None) -> TurnItem:
    """The turn as an engine keeps it, with a result for each call."""
    calls = tuple(
        HistoryCall(
            tool_call_id=ToolCallID(f"call_{offset:013d}{at:013d}"),
            tool=call.tool,
            arguments=call.arguments or {},
            replay=CallReplay(origin=origin, pairing_id=call.pairing_id, made=call.made),
        )
        for at, call in enumerate(turn.calls)
    )
    parts = outputs or [(TextPart(text=f"result {at}"),) for at in range(len(calls))]
    results = tuple(
        HistoryResult(tool_call_id=c.tool_call_id, status="ok", parts=p) for c, p in zip(calls, parts, strict=True)
    )
    replay = None if turn.wire is None else AssistantReplay(origin=origin, wire=turn.wire)
    return TurnItem(offset=Offset(offset), text=turn.text, calls=calls, results=results, replay=replay)


def asked(history: History | None = None, *, tools: tuple[ToolSpec, ...] = (READ,)) -> ModelRequest:
    """A request for the next turn."""
    return ModelRequest(
        history=history or History([prompt("go")]),
        system="Be brief.",
        tools=tools,
        settings=ModelSettings(model="m-1"),
        memo=EncodedHistory(),
    )


def plain(value: Any) -> Any:
    """What the standard library reads out of the bytes that would be sent."""
    return json.loads(msgspec.json.encode(value))


def http_reply(
    body: bytes, *, status: str = "200 OK", headers: str = "", kind: str = "text/event-stream", whole: bool = True
) -> list[bytes]:
    """One HTTP response. Not `whole`: the connection closes before the promised end of the body."""
    length = len(body) + (0 if whole else 1000)
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n"
    return [head.encode(), body]


class RawServer:
    """Answers each request with the next reply: pieces of bytes, written one by one. Keeps what it was sent."""

    def __init__(self, replies: Sequence[Sequence[bytes]], *, hang: bool = False) -> None:
        self.replies = list(replies)
        self.hang = hang
        self.requests: list[tuple[str, bytes]] = []
        self.connections = 0
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while self.replies:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                size = next(int(h.split(":")[1]) for h in head.lower().split("\r\n") if h.startswith("content-length"))
                self.requests.append((head, await reader.readexactly(size)))
                for piece in self.replies.pop(0):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            if self.hang:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*replies: Sequence[bytes], hang: bool = False) -> AsyncIterator[RawServer]:
    """A raw server on a loopback port."""
    raw = RawServer(replies, hang=hang)
    server = await asyncio.start_server(raw.handle, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        server.close()
