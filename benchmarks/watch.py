"""How fast a server tells what happens to many watchers, beside a bare ASGI application that sends the same bytes.

    python benchmarks/watch.py [WATCHERS [EVENTS]]

Both are served by uvicorn in a process of their own and read by the same raw socket reader over loopback: 100 watchers
of one stream of server-sent events. `counterfoil`: the watchers are live on one session, which a run fills with events.
`bare`: an application that sends the very frames that the first one sent. Rounds alternate; medians are compared. Then
the same with one watcher more that never reads: it may slow nobody, and its memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counterfoil.client.connect import connect
from counterfoil.events import AskOpened, Envelope, Limits, RunFinished
from tests.support.server import ROOT, Server

ROUNDS = 3
END = b"event: event\ndata: "


def script(events: int) -> dict[str, Any]:
    """A call that asks, so that all may come; then calls that make events."""
    turns: list[dict[str, Any]] = [
        {"calls": [{"tool": "Bash", "arguments": {"command": "true", "description": "begin"}}]}
    ]
    glob = {"tool": "Glob", "arguments": {"pattern": "*.none"}}
    turns += [{"text": "word " * 20, "calls": [glob] * 8} for _ in range(events // 30)]
    return {"turns": [*turns, {"text": "over"}]}


async def read(host: str, port: int, path: str, ready: asyncio.Event | None, stop: bytes) -> int:
    """Read a stream of server-sent events to the frame that has `stop`. The bytes of its body."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 22)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    size, tail = 0, b""
    try:
        while data := await reader.read(1 << 16):
            size += len(data)
            tail = (tail + data)[-4096 - len(data) :]
            if ready is not None and b"caught" in tail.lower():
                ready.set()
            if stop in tail:
                return size
    finally:
        writer.close()
    raise RuntimeError("the stream broke off")


async def product(folder: Path, watchers: int, events: int, *, stuck: bool) -> tuple[float, int, list[bytes], float]:
    """Seconds from the answer until every watcher has the end, bytes for each, the frames, memory in MB."""
    server = Server(folder, script(events))
    host, port = server.url.removeprefix("http://").split(":")
    try:
        async with connect(server.url, {}) as client:
            session = (await client.create(limits=Limits(max_turns=0))).session_id
            await client.prompt(session, "go")
            ask = None
            async with contextlib.aclosing(client.watch(session)) as frames:
                async for frame in frames:
                    if isinstance(frame, Envelope) and isinstance(frame.event, AskOpened):
                        ask = frame.event.ask.ask_id
                        break
            assert ask is not None
            path = f"/v1/sessions/{session}/events"
            sleeper = socket.socket()
            if stuck:
                sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sleeper.connect((host, int(port)))
                sleeper.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            ready = [asyncio.Event() for _ in range(watchers)]
            reading = [asyncio.ensure_future(read(host, int(port), path, r, b'"runFinished"')) for r in ready]
            await asyncio.gather(*(r.wait() for r in ready))
            began = time.perf_counter()
            await client.answer(ask, "allow")
            sizes = await asyncio.gather(*reading)
            took = time.perf_counter() - began
            memory = _resident(server.process.pid)
            sleeper.close()
            frames_sent = await _frames(client, session)
            return took, int(statistics.median(sizes)), frames_sent, memory
    finally:
        server.end(9)


async def _frames(client: Any, session: Any) -> list[bytes]:
    """The frames of the session as the server sends them, from the answer on."""
    from google.protobuf import json_format

    from counterfoil.api import mapping

    sent: list[bytes] = []
    page = await client.get_transcript(session)
    envelopes = list(page.events)
    while page.next_offset is not None:
        page = await client.get_transcript(session, page.next_offset)
        envelopes += page.events
    for envelope in envelopes:
        data = json.dumps(json_format.MessageToDict(mapping.to_event(envelope)), separators=(",", ":"))
        sent.append(f"id: {envelope.offset}\nevent: event\ndata: {data}\n\n".encode())
        if isinstance(envelope.event, RunFinished):
            break
    return sent


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


BARE = """
import asyncio, pickle, sys
import uvicorn
frames = pickle.load(open(sys.argv[1], "rb"))
go = asyncio.Event()
async def app(scope, receive, send):
    if scope["path"] == "/go":
        go.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b"event: caught\\n\\n", "more_body": True})
    await go.wait()
    for frame in frames:
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False, lifespan="off")
"""


async def bare(folder: Path, watchers: int, frames: list[bytes]) -> float:
    """Seconds in which a bare application sends the same to as many."""
    import pickle

    (folder / "frames").write_bytes(pickle.dumps(frames))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else goes on yet
        [sys.executable, "-c", BARE, str(folder / "frames"), str(port)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        ready = [asyncio.Event() for _ in range(watchers)]
        reading = [asyncio.ensure_future(read("127.0.0.1", port, "/", r, b'"runFinished"')) for r in ready]
        await asyncio.gather(*(r.wait() for r in ready))
        began = time.perf_counter()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /go HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.gather(*reading)
        took = time.perf_counter() - began
        writer.close()
        return took
    finally:
        process.kill()
        process.wait()


async def compare(watchers: int, events: int) -> None:
    times: dict[str, list[float]] = {"counterfoil": [], "with one that never reads": [], "bare": []}
    memory: list[float] = []
    count = size = 0
    for _ in range(ROUNDS):
        for name in ("counterfoil", "with one that never reads"):
            with tempfile.TemporaryDirectory() as folder:
                stuck = name != "counterfoil"
                took, size, frames, used = await product(Path(folder), watchers, events, stuck=stuck)
                times[name].append(took)
                count = len(frames)
                memory += [used] if stuck else []
        with tempfile.TemporaryDirectory() as folder:
            times["bare"].append(await bare(Path(folder), watchers, frames))
    medians = {name: statistics.median(found) for name, found in times.items()}
    print(f"{watchers} watchers, {count} durable events, {size / 1000:.0f} KB each")
    print(f"{'':28} seconds  events/s to all  × bare")
    for name, seconds in medians.items():
        print(f"{name:28} {seconds:7.2f} {count * watchers / seconds:16.0f}  {medians['bare'] / seconds:6.2f}")
    print(f"server's memory with the one that never reads: {statistics.median(memory):.0f} MB")


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]]
    asyncio.run(compare(*(arguments + [100, 600][len(arguments) :])))
