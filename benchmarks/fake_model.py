"""A Chat Completions server that costs little: N turns of one `add` call, then a text. Args: PORT TURNS."""

import asyncio
import json
import sys

PORT, TURNS = int(sys.argv[1]), int(sys.argv[2])
DELTAS = 5
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(delta: dict, finish: str | None = None, usage: dict | None = None) -> bytes:
    body: dict = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
    body["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    if usage:
        body["usage"] = usage
    data = b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def answer(turn: int) -> list[bytes]:
    out = [event({"role": "assistant", "content": ""})]
    out += [event({"content": f"word{i} "}) for i in range(DELTAS)]
    if turn < TURNS:
        head = {"index": 0, "id": f"call_{turn}", "type": "function", "function": {"name": "add", "arguments": ""}}
        out.append(event({"tool_calls": [head]}))
        out.append(event({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1,'}}]}))
        out.append(event({"tool_calls": [{"index": 0, "function": {"arguments": '"b":2}'}}]}))
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    out.append(event({}, "tool_calls" if turn < TURNS else "stop", usage))
    done = b"data: [DONE]\n\n"
    out.append(f"{len(done):x}\r\n".encode() + done + b"\r\n0\r\n\r\n")
    return out


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            messages = json.loads(await reader.readexactly(length))["messages"]
            turn = sum(1 for m in messages if m["role"] == "assistant" and m.get("tool_calls"))
            writer.write(HEAD)
            for part in answer(turn):
                writer.write(part)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    async with await asyncio.start_server(handle, "127.0.0.1", PORT, limit=2**26) as server:
        print("ready", flush=True)
        await server.serve_forever()


asyncio.run(main())
