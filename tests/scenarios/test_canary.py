"""Identity contract, §2 and §7: what is private to a provider is seen nowhere but in the replay to that provider.

One rich session on each wire. Its pairing ids, item ids, signatures, encrypted reasoning and key are unmistakable
strings; every public surface is searched for them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from counterfoil.engine import Session
from counterfoil.events import AskOpened, AskSettled, CallFinished, Notice, TurnRejected
from counterfoil.events.codec import encode_envelope, event_of
from counterfoil.identity import START
from counterfoil.policy.permissions import Rules
from counterfoil.providers import make_provider
from counterfoil.stores.sqlite import SqliteStore
from tests.support.harness import ME, CountingTool, Rig, call, turn
from tests.support.model_server import ModelServer

WIRES = ("openai_chat", "openai", "anthropic")
KEY = "CANARY-key-0123456789"
ECHO = f"bad key {KEY} for call CANARY-pairing-1-0"
ROOT = Path(__file__).parents[2]
SCRIPT: dict[str, Any] = {
    "pairing_prefix": "CANARY-pairing-",
    "turns": [
        turn(call("look", n=1), call("look", n=2), text="Let me look.") | {"reasoning": "Two files."},
        turn(call("act", n=1), call("act", n=2)) | {"reasoning": "Now act."},
        turn(call("act", id="CANARY-pairing-same"), call("act", id="CANARY-pairing-same")),
        {
            "attempts": [
                {"error": {"kind": "overloaded", "message": ECHO, "retry_after": 0.01}},
                turn(call("act", n=3), call("nope"), {"tool": "act", "arguments": "{broken"}),
            ]
        },
        {"text": "First part done."},
        {"text": "A summary of the work."},
        turn(call("act", n=4)) | {"reasoning": "After the summary."},
        {"text": "All done."},
        {"error": {"kind": "auth", "status": 401, "message": ECHO.replace("1-0", "6-0"), "permanent": True}},
    ],
}


class Surfaces:
    """Everything that anybody but the provider may see, as text."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}

    def add(self, where: str, *texts: object) -> None:
        self.seen.setdefault(where, []).extend(t.decode() if isinstance(t, bytes) else str(t) for t in texts)

    def leaks(self) -> list[str]:
        return [f"{w}: {t[:300]}" for w, texts in self.seen.items() for t in texts if "CANARY" in t]


async def follow(session: Session, surfaces: Surfaces, verdicts: Iterator[str], park_first: bool = False) -> None:
    """Watch, answer each ask with the next verdict (or park once), and keep every envelope."""
    async with session.watch() as stream:
        async for envelope in stream:
            surfaces.add("live envelope", encode_envelope(envelope), repr(envelope))
            if isinstance(envelope.event, AskOpened):
                if park_first:
                    session.park()
                    park_first = False
                    continue
                verdict: Any = next(verdicts)
                await session.answer(envelope.event.ask.ask_id, verdict, principal=ME, note=f"{verdict} it")


async def rich_session(rig: Rig, wire: str, surfaces: Surfaces) -> Session:
    """Parallel reads, asks, a denial, a parked and resumed run, a rejected turn, retries, compaction, an error."""
    session = await rig.session("default", provider=wire)
    watcher = asyncio.ensure_future(follow(session, surfaces, iter(()), park_first=True))
    outcome = await session.prompt("go")
    assert outcome.parked
    surfaces.add("outcome", repr(outcome))
    await session.close()
    await watcher

    session = await rig.engine.open(session.id)
    watcher = asyncio.ensure_future(follow(session, surfaces, iter(["deny", "allow", "allow", "allow"])))
    open_ask = next(iter(session.state.asks))
    await session.answer(open_ask, "allow", principal=ME)
    for prompt in (None, "go on", "once more"):
        outcome = await (session.resume() if prompt is None else session.prompt(prompt))
        surfaces.add("outcome", repr(outcome), msgspec.json.encode(outcome))
        if prompt is None:
            assert await session.compact()
    await session.rename("rich")
    await session.close()
    await watcher
    assert outcome.stop_reason == "provider_error"
    return session


def cli(state: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", *arguments, "--state-dir", str(state)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COUNTERFOIL_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("wire", WIRES)
async def test_no_public_surface_shows_what_is_private_to_a_provider(
    wire: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    surfaces = Surfaces()
    store = SqliteStore(tmp_path)
    look, act = CountingTool("look", read_only=True), CountingTool("act")
    async with ModelServer(SCRIPT, require_key=KEY, count="answers") as server:
        rig = Rig(
            {},
            look,
            act,
            store=store,
            rules=Rules(allow=("look",)),
            provider=lambda meta: make_provider(wire, base_url=server.base_url, api_key=KEY),
        )
        session = await rich_session(rig, wire, surfaces)
    log = await rig.log(session.id)
    for kind in (TurnRejected, AskSettled, CallFinished, Notice):
        assert [e for e in log if isinstance(e, kind)], f"the session has no {kind.__name__}: it isn't rich"
    assert "compaction.done" in await rig.kinds(session.id)

    fork = await rig.engine.fork(session.id)
    for each in (session.id, fork):
        rows = await store.read(each, START, 10_000)
        surfaces.add("stored event", *(row.public for row in rows), *(repr(row) for row in rows))
        surfaces.add("decoded event", *(repr(event_of(row)) for row in rows))
    surfaces.add("list", *(repr(entry) for entry in await store.sessions()))
    surfaces.add("repr of state", repr(session.state.asks), repr(session.state.meta), repr(session.state.open_turn))
    await store.close()
    for arguments in (
        ("inspect", session.id),
        ("inspect", session.id, "--json"),
        ("sessions", "export", session.id),
        ("sessions", "export", session.id, "--format", "json"),
        ("sessions", "export", session.id, "--format", "markdown"),
        ("sessions", "show", session.id),
        ("sessions", "list"),
        ("asks",),
        ("verify", session.id),
    ):
        surfaces.add(" ".join(arguments[:2]), cli(tmp_path, *arguments))
    surfaces.add("log", *(record.getMessage() for record in caplog.records), caplog.text)
    assert surfaces.leaks() == []
    assert server.refusals == [], "and yet the provider got all of it back, byte for byte"
    assert any(b"CANARY-pairing-" in r.raw for r in server.requests)
    check_database(tmp_path)


def check_database(folder: Path) -> None:
    """On disk, private data is in the private column and in the snapshot, and nowhere else."""
    db = sqlite3.connect(folder / "counterfoil.db")
    for table in ("events", "sessions", "runs"):
        columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
        for column in columns:
            hits = db.execute(f"select count(*) from {table} where instr(cast({column} as text), 'CANARY')").fetchone()
            assert bool(hits[0]) == ((table, column) == ("events", "private")), (table, column)
    db.close()


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_that_echoes_the_request_shows_none_of_its_private_strings(wire: str) -> None:
    act = CountingTool("act")
    script = {
        "pairing_prefix": "CANARY-pairing-",
        "turns": [turn(call("act", n=1)) | {"reasoning": "Hidden thoughts."}, {"text": "Done."}],
    }
    async with ModelServer(script) as server:
        rig = Rig({}, act, provider=lambda m: make_provider(wire, base_url=server.base_url, api_key=KEY))
        async with await rig.session(provider=wire) as session:
            assert (await session.prompt("go")).text == "Done."
            await session.prompt("what did I send?")
    sent = server.requests[-1].raw.decode()
    echo = {"turns": [{"error": {"kind": "bad_request", "status": 400, "message": sent, "permanent": True}}]}
    assert "CANARY-pairing-" in sent
    async with ModelServer(echo, strict=False, count="answers") as server:
        rig.engine.parts = msgspec.structs.replace(
            rig.engine.parts,
            provider_for=lambda m: make_provider(wire, base_url=server.base_url, api_key=KEY),
        )
        async with await rig.engine.open(session.id) as again:
            outcome = await again.prompt("again")
    assert outcome.stop_reason == "provider_error" and outcome.error is not None
    assert "CANARY" not in outcome.error.message and "[id]" in outcome.error.message
