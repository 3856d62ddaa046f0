"""A process that drives a session to its ask and waits there. Run by test_two_processes.py.

Arguments: STATE_DIR WAY. It prints the ids of session and ask, and `done TEXT` at the end. WAY: `plain`; `deaf` never
looks at letters; `mute` dies in the place of each reply.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from counterfoil.events import AskOpened, CallStarted, RunFinished
from counterfoil.identity import SessionID
from counterfoil.ports import Lease
from counterfoil.ports.store import Letter, LetterNo
from counterfoil.stores.sqlite import SqliteStore
from tests.support.harness import CountingTool, Rig, call, turn

SCRIPT = {"turns": [turn(call("act")), {"text": "all done"}]}


class Deaf(SqliteStore):
    """Never hears of a letter."""

    async def wait_letters(self, session: SessionID) -> list[Letter]:
        await asyncio.Event().wait()
        return []


class Mute(SqliteStore):
    """Dies where it would reply: what the letter wanted is in the log."""

    async def reply(self, lease: Lease, number: LetterNo, body: bytes) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


STORES = {"plain": SqliteStore, "deaf": Deaf, "mute": Mute}


def rig_on(store: SqliteStore, workspace: str) -> Rig:
    """The engine of both processes: one tool that appends a line to a file."""
    made = Path(workspace) / "made"

    def act(*_: object) -> str:
        with made.open("a") as file:
            file.write("once\n")
        return "acted"

    return Rig(SCRIPT, CountingTool("act", behaviour=act), store=store, workspace=workspace)


async def main(folder: str, way: str) -> None:
    """One session, one prompt."""
    store = STORES[way](Path(folder) / "state")
    session = await rig_on(store, folder).session("default")
    watch = session.watch()
    running = asyncio.ensure_future(session.prompt("go"))
    async for envelope in watch:
        if isinstance(envelope.event, AskOpened):
            print(session.id, envelope.event.ask.ask_id, flush=True)
        elif isinstance(envelope.event, CallStarted):
            print(f"started {time.time()}", flush=True)
        elif isinstance(envelope.event, RunFinished):
            break
    print(f"done {(await running).text}", flush=True)
    await session.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
