"""A server under load for a long time: flat memory, no event lost or told twice, every log intact.

    python benchmarks/soak.py [MINUTES [SESSIONS]]

One `counterfoil serve` process, 50 sessions, half of their clients over HTTP and half over gRPC. Each session gets a
prompt every few seconds; its run calls tools, asks, and is answered yes or no; after 20 runs a new session takes its
place. Its watcher breaks off at random and comes back from its last offset. Printed each minute: runs, asks, breaks,
resident memory. Every offset is told once and in order, and `verify` recomputes every log at the end. The exit code is
1 where one of these doesn't hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from counterfoil.client.connect import connect
from counterfoil.client.interface import Client
from counterfoil.errors import CounterfoilError, SessionBusy
from counterfoil.events import AskOpened, Envelope, RunFinished
from counterfoil.identity import START, Offset, SessionID
from tests.support.server import Server

PAUSE = (4.0, 10.0)
"""Seconds between the end of a run and the next prompt of its session."""
RUNS = 20
"""Runs of a session until a new one takes its place."""
BREAK = 0.02
"""How likely a watcher breaks off after an event."""


def script(prompts: int) -> dict[str, Any]:
    """For each prompt: calls that read, one that asks, and an answer."""
    turns: list[dict[str, Any]] = []
    for number in range(prompts):
        turns.append({"text": "I look. " * 20, "calls": [{"tool": "Glob", "arguments": {"pattern": "*"}}] * 3})
        turns.append({"calls": [{"tool": "Bash", "arguments": {"command": f"echo {number}", "description": "x"}}]})
        turns.append({"text": "Done. " * 40})
    return {"turns": turns}


class Counts:
    """What happened so far, everywhere."""

    def __init__(self) -> None:
        self.runs = self.asks = self.breaks = self.events = 0
        self.faults: list[str] = []


class One:
    """One session: who prompts it, and who watches and answers."""

    def __init__(self, client: Client, counts: Counts, seed: int) -> None:
        self.client, self.counts = client, counts
        self.random = random.Random(seed)
        self.session = SessionID("")
        self.last = START
        self.ended = asyncio.Event()
        self.told: dict[SessionID, Offset] = {}

    async def live(self, until: float) -> None:
        """One session after the other."""
        while time.monotonic() < until:
            self.session, self.last = (await self.client.create(title="soak")).session_id, START
            watching = asyncio.ensure_future(self.watch())
            prompting = asyncio.ensure_future(self.prompt(until))
            try:
                await asyncio.wait([watching, prompting], return_when=asyncio.FIRST_COMPLETED)
                await (watching if watching.done() else prompting)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            self.told[self.session] = self.last

    async def prompt(self, until: float) -> None:
        for _ in range(RUNS):
            if time.monotonic() >= until:
                return
            self.ended.clear()
            try:
                await self.client.prompt(self.session, "go on")
            except SessionBusy:
                self.counts.faults.append(f"{self.session}: busy after its run ended")
            async with asyncio.timeout(120):
                await self.ended.wait()
            self.counts.runs += 1
            await asyncio.sleep(self.random.uniform(*PAUSE))

    async def watch(self) -> None:
        while True:
            async with contextlib.aclosing(self.client.watch(self.session, self.last)) as frames:
                async for frame in frames:
                    if isinstance(frame, Envelope) and frame.offset is not None:
                        await self._take(frame, frame.offset)
                        if self.random.random() < BREAK:
                            self.counts.breaks += 1
                            break

    async def _take(self, frame: Envelope, offset: Offset) -> None:
        if offset != self.last + 1:
            self.counts.faults.append(f"{self.session}: offset {offset} after {self.last}")
        self.last = offset
        self.counts.events += 1
        if isinstance(frame.event, AskOpened):
            self.counts.asks += 1
            await self.client.answer(frame.event.ask.ask_id, self.random.choice(("allow", "deny")))
        elif isinstance(frame.event, RunFinished):
            self.ended.set()


def resident(pid: int) -> float:
    """Megabytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def soak(server: Server, minutes: float, sessions: int) -> int:
    counts, until = Counts(), time.monotonic() + 60 * minutes
    clients = [connect(server.url if n % 2 else f"grpc://{server.grpc}", {}) for n in range(4)]
    ones = [One(clients[number % len(clients)], counts, number) for number in range(sessions)]
    living = [asyncio.ensure_future(one.live(until)) for one in ones]
    print("minute    runs    asks  breaks   events  RSS, MB", flush=True)
    memory: list[float] = []
    while time.monotonic() < until and not any(t.done() and t.exception() for t in living):
        await asyncio.sleep(min(60.0, max(0.1, until - time.monotonic())))
        memory.append(resident(server.process.pid))
        done = (minutes * 60 - (until - time.monotonic())) / 60
        print(
            f"{done:6.1f} {counts.runs:7} {counts.asks:7} {counts.breaks:7} {counts.events:8} {memory[-1]:8.1f}",
            flush=True,
        )
    for failed in await asyncio.gather(*living, return_exceptions=True):
        if isinstance(failed, BaseException):
            counts.faults.append(f"a session failed: {failed!r}")
    intact, told = 0, {session: last for one in ones for session, last in one.told.items()}
    for session, last in told.items():
        try:
            check = await clients[0].verify_log(session)
            intact += check.intact
            if check.events != last:
                counts.faults.append(f"{session}: {check.events} events, {last} were told")
        except CounterfoilError as fault:
            counts.faults.append(f"{session}: {fault}")
    for client in clients:
        await client.close()
    third = max(1, len(memory) // 3)
    first, last = statistics.median(memory[:third]), statistics.median(memory[-third:])
    print(f"memory: the last third takes {last / first:.2f} × the first ({first:.0f} → {last:.0f} MB)")
    print(f"logs intact: {intact} of {len(told)}; events lost or told twice: {len(counts.faults)}")
    for fault in counts.faults[:20]:
        print(f"  {fault}")
    return 0 if told and intact == len(told) and not counts.faults else 1


def main() -> int:
    """Run it."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    sessions = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), script(RUNS))
        try:
            return asyncio.run(soak(server, minutes, sessions))
        finally:
            server.end(15)


if __name__ == "__main__":
    sys.exit(main())
