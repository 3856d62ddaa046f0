"""Watching through a connection that is cut again and again, and by very many: nothing is lost, nobody is slowed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from counterfoil.client.connect import connect
from counterfoil.client.interface import Client
from counterfoil.errors import Unreachable
from counterfoil.events import Envelope, Limits, RunFinished
from counterfoil.identity import START, Offset, SessionID
from counterfoil.scrollback import Scrollback
from tests.support.server import Server

pytestmark = [pytest.mark.slow]
GLOB = {"tool": "Glob", "arguments": {"pattern": "*"}}
SCRIPT = {"turns": [*({"text": "some words " * 40, "calls": [GLOB] * 4} for _ in range(15)), {"text": "over " * 100}]}
KILLS = 100
"""For each of the two doors."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, SCRIPT)
    yield made
    made.end()


class Cut:
    """A way to the server that is cut after so many bytes, as often as one likes."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self._port = port
        self._rng = rng
        self.kills = 0
        self.sparing = False

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        serving = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield serving.sockets[0].getsockname()[1]
        finally:
            serving.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        left = float("inf") if self.sparing else self._rng.choice((0, 40, 300, 2_000, 20_000)) * self._rng.random()
        with contextlib.suppress(OSError):
            await asyncio.wait(
                [
                    asyncio.ensure_future(_copy(reader, back, float("inf"))),
                    asyncio.ensure_future(_copy(there, writer, left)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        for end in (writer, back):
            end.transport.abort()
        self.kills += not self.sparing


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, left: float) -> None:
    while left > 0 and (data := await source.read(4096)):
        sink.write(data[: int(min(left, len(data)))])
        left -= len(data)
        await sink.drain()


async def watch_until_over(port: int, scheme: str, session: SessionID, cut: Cut, rng: random.Random) -> Scrollback:
    """Watch from the last offset, or from a little before it, over and over, until the end of the run is seen."""
    seen = Scrollback(session)
    for attempt in range(10_000):
        cut.sparing = attempt >= 12
        after = Offset(max(START, seen.through - rng.choice((0, 0, 1, 7))))
        with contextlib.suppress(Unreachable):
            async with (
                connect(f"{scheme}://127.0.0.1:{port}", {}) as client,
                contextlib.aclosing(client.watch(session, after)) as frames,
            ):
                async for frame in frames:
                    if isinstance(frame, Envelope):
                        seen.apply(frame)
                        if rng.random() < 0.02:
                            await asyncio.sleep(0.02)  # a reader that is slow now and then
                        if isinstance(frame.event, RunFinished):
                            return seen
    raise AssertionError("the run never ended")


async def inspected(client: Client, session: SessionID) -> Scrollback:
    """What `inspect` shows."""
    seen, after = Scrollback(session), START
    while True:
        page = await client.get_transcript(session, after)
        seen.extend(page.events)
        if page.next_offset is None:
            return seen
        after = page.next_offset


async def begin(client: Client) -> SessionID:
    made = await client.create(limits=Limits(max_turns=0))
    await client.prompt(made.session_id, "go")
    return made.session_id


@pytest.mark.parametrize("scheme", ["http", "grpc"])
async def test_a_watch_that_is_cut_a_hundred_times_sees_what_inspect_shows(server: Server, scheme: str) -> None:
    rng = random.Random(7)
    port = int((server.grpc if scheme == "grpc" else server.url).rsplit(":", 1)[1])
    cut = Cut(port, rng)
    async with asyncio.timeout(100), connect(server.url, {}) as client, cut.open() as through:
        while cut.kills < KILLS:
            session = await begin(client)
            seen = await watch_until_over(through, scheme, session, cut, rng)
            whole = await inspected(client, session)
            assert (seen.entries, seen.calls, seen.session) == (whole.entries, whole.calls, whole.session)
            assert seen.through == whole.through and not seen.live.text


async def test_two_hundred_watchers_and_one_that_never_reads(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")

    async def followed(client: Client, session: SessionID) -> list[Envelope]:
        told: list[Envelope] = []
        async with contextlib.aclosing(client.watch(session)) as frames:
            async for frame in frames:
                if isinstance(frame, Envelope) and frame.offset is not None:
                    told.append(frame)
                    if isinstance(frame.event, RunFinished):
                        break
        return told

    async with asyncio.timeout(100), contextlib.AsyncExitStack() as stack:
        forms = (server.url, f"grpc://{server.grpc}")
        clients = [await stack.enter_async_context(connect(forms[n % 2], {})) for n in range(200)]
        session = (await clients[0].create(limits=Limits(max_turns=0))).session_id
        sleeper = stack.enter_context(socket.socket())
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sleeper.connect((host, int(port)))
        sleeper.sendall(f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        watching = [asyncio.ensure_future(followed(client, session)) for client in clients]
        before = _resident(server.process.pid)
        await clients[0].prompt(session, "go")
        first, *others = await asyncio.gather(*watching)
        assert [e.offset for e in first] == list(range(1, len(first) + 1))
        assert all(other == first for other in others)
        assert _resident(server.process.pid) - before < 150, "MB that 200 watchers and a sleeper take"


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
