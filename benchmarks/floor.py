"""The floor: a loop written by hand, httpx streaming, one durable SQLite transaction an event. Args: PORT PATH."""

import asyncio
import json
import sqlite3
import sys
import time

began = time.perf_counter()
import httpx  # noqa: E402

imported = time.perf_counter() - began
from report import report  # noqa: E402

port, path = int(sys.argv[1]), sys.argv[2]
stamps: list[float] = []
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma journal_mode=wal")
db.execute("pragma synchronous=full")
db.execute("create table e(i integer primary key, b blob)")


def log(event: dict) -> None:
    db.execute("begin immediate")
    db.execute("insert into e(b) values(?)", (json.dumps(event),))
    db.execute("commit")


async def turn(client: httpx.AsyncClient, messages: list[dict]) -> dict:
    text, calls = "", {}
    body = {"model": "fake", "stream": True, "messages": messages}
    async with client.stream("POST", "/v1/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            delta = json.loads(line[6:])["choices"][0]["delta"]
            text += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(part["index"], empty)
                call["id"] = part.get("id") or call["id"]
                call["function"]["name"] += part["function"].get("name") or ""
                call["function"]["arguments"] += part["function"].get("arguments") or ""
    message = {"role": "assistant", "content": text}
    return message | ({"tool_calls": list(calls.values())} if calls else {})


async def main() -> None:
    messages: list[dict] = [{"role": "user", "content": "go"}]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        while True:
            message = await turn(client, messages)
            messages.append(message)
            log(message)
            if "tool_calls" not in message:
                return
            for call in message["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                log({"start": call["id"]})
                stamps.append(time.perf_counter())
                result = {"role": "tool", "tool_call_id": call["id"], "content": str(arguments["a"] + arguments["b"])}
                messages.append(result)
                log(result)


asyncio.run(main())
report("floor: httpx + SQLite FULL", stamps, imported, path)
