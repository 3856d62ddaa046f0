"""Durable appends of the SQLite store beside raw sqlite3 with the same settings and batches, in one run.

    python benchmarks/appends.py                       2 000 appends a round, 3 rounds
    python benchmarks/appends.py --appends 500 --rounds 5 --dir /some/disk

The raw side inserts bytes that are ready; the store stamps, encodes, chains digests, checks fence and end of the log,
and writes the list entry where a run begins or ends. Figures are medians of the rounds. The ratio of appends should
be 0.8 or more; that of bytes on disk, after a checkpoint and with one snapshot, 2 or less.
"""

import argparse
import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from counterfoil.events import AssistantReplay, CallAccepted, CallFinished, CallReplay, CallStarted, Entry, TextPart
from counterfoil.events import AssistantMessage
from counterfoil.events.codec import encode_event, encode_private, kind_of
from counterfoil.identity import START, Offset, RandomIds, arguments_digest
from counterfoil.ports import Holder, SessionSummary, Stamped
from counterfoil.stores import open_store

ids = RandomIds()
STRETCH = 20
"""Appends of one, then of the other."""
ORIGIN = "openai_chat@api.example.com"
WORDS = "The test fails because the fixture is made twice; I shall look at where it is built and who else uses it. "


def entries(turns: int) -> list[Entry]:
    """What turns with one tool call each record: four events a turn, of 0.1 to 1 KB."""
    made: list[Entry] = []
    for turn in range(1, turns + 1):
        call, pairing = ids.call(), f"call_{turn:024d}"
        arguments = {"file_path": f"/srv/src/module_{turn}.py", "offset": turn, "limit": 200}
        digest = arguments_digest(arguments)
        wire = {"role": "assistant", "content": WORDS, "tool_calls": [{"id": pairing, "arguments": arguments}]}
        replay = AssistantReplay(origin=ORIGIN, wire=msgspec.Raw(msgspec.json.encode(wire)))
        accepted = CallAccepted(
            tool_call_id=call, turn=turn, position=0, tool="Read", arguments=arguments, arguments_digest=digest
        )
        parts = (TextPart(text=WORDS * 6),)
        made += [
            Entry(AssistantMessage(turn=turn, text=WORDS), replay),
            Entry(accepted, CallReplay(origin=ORIGIN, pairing_id=pairing)),
            Entry(CallStarted(tool_call_id=call, arguments_digest=digest)),
            Entry(CallFinished(tool_call_id=call, status="ok", parts=parts, duration_ms=3, executed="yes")),
        ]
    return made


class Raw:
    """The plainest writer."""

    def __init__(self, folder: Path, made: list[Entry]) -> None:
        run, now = ids.run(), time.time_ns() // 1000
        self.rows = [(kind_of(e.event), run, now, encode_event(e.event), encode_private(e.private)) for e in made]
        self.db = sqlite3.connect(folder / "raw.db", isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute("pragma synchronous=full")
        self.db.execute(
            "create table events(place integer primary key, kind text, run text, at integer, public blob, private blob)"
        )

    def write(self, first: int, last: int, size: int) -> float:
        """Seconds that the appends of these rows take."""
        began = time.perf_counter()
        for start in range(first, last, size):
            self.db.execute("begin immediate")
            self.db.executemany(
                "insert into events(kind, run, at, public, private) values(?,?,?,?,?)", self.rows[start : start + size]
            )
            self.db.execute("commit")
        return time.perf_counter() - began


class Ours:
    """The store, as the engine uses it."""

    def __init__(self, folder: Path, made: list[Entry]) -> None:
        self.folder, self.made = folder, made
        self.store = open_store(folder)
        self.session, self.run, self.now = ids.session(), ids.run(), time.time_ns() // 1000

    async def begin(self) -> None:
        self.lease = await self.store.acquire(self.session, Holder(pid=os.getpid(), host="here"))
        summary = SessionSummary(session_id=self.session, owner="local:me", workspace="/work", created_at=self.now)
        await self.store.append(self.lease, START, [], summary)

    async def write(self, first: int, last: int, size: int) -> float:
        """Seconds that the appends of these entries take."""
        began = time.perf_counter()
        for start in range(first, last, size):
            batch = [
                Stamped(entry=entry, run_id=self.run, seq=start + n, recorded_at=self.now)
                for n, entry in enumerate(self.made[start : start + size])
            ]
            await self.store.append(self.lease, Offset(start), batch)
        return time.perf_counter() - began

    async def end(self) -> float:
        """Bytes on disk by bytes of events, closed, with one snapshot."""
        await self.store.save_snapshot(self.lease, Offset(len(self.made)), os.urandom(20_000))
        await self.store.release(self.lease)
        await self.store.close()
        size_of_events = sum(len(encode_event(e.event)) + len(encode_private(e.private) or b"") for e in self.made)
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()) / size_of_events


async def one_round(folder: Path, made: list[Entry], size: int) -> tuple[float, float, float]:
    """Seconds of both, written by turns so that a busy disk is busy for both; and the store's share of bytes."""
    raw, ours = Raw(folder, made), Ours(folder / "store", made)
    await ours.begin()
    plain = took = 0.0
    for first in range(0, len(made), STRETCH * size):
        last = min(first + STRETCH * size, len(made))
        plain += raw.write(first, last, size)
        took += await ours.write(first, last, size)
    raw.db.close()
    return plain, took, await ours.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--appends", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=None, help="a folder on the disk to measure")
    args = parser.parse_args()
    print(f"{args.appends} appends a round, medians of {args.rounds} rounds; SQLite {sqlite3.sqlite_version}")
    print(f"{'batch':>5}  {'raw, appends/s':>15}  {'store, appends/s':>16}  {'ratio':>5}  {'disk/events':>11}")
    for size in (1, 3):
        made = entries((args.appends * size + 3) // 4)[: args.appends * size]
        figures = []
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory(dir=args.dir) as folder:
                plain, took, disk = asyncio.run(one_round(Path(folder), made, size))
            figures.append((args.appends / plain, args.appends / took, plain / took, disk))
        one, two, ratio, disk = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"{size:>5}  {one:>15.0f}  {two:>16.0f}  {ratio:>5.2f}  {disk:>11.2f}")


if __name__ == "__main__":
    main()
