"""A process that drives a session and kills itself at one durable step. Run by test_crash.py.

Arguments: STATE_DIR COMMAND STEP WHEN. COMMAND is `prompt` or `resume`. The process dies by SIGKILL at append
number STEP of its life, `before` it (nothing written) or `after` it (written, the caller never told); STEP 0: never.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counterfoil.engine import Engine, EngineSettings, NewSession, Session
from counterfoil.events import AskOpened, Limits, Principal, StoredEvent
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.identity import Offset
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.ports import Lease, SessionSummary, Stamped, ToolContext
from counterfoil.providers.script import load_script
from counterfoil.providers.scripted import ScriptedProvider
from counterfoil.stores.sqlite import SqliteStore
from tests.support.harness import CountingTool, Tools


class DyingStore(SqliteStore):
    """A store whose process dies at its n-th append."""

    step = 0
    when = "before"
    count = 0

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        self.count += 1
        if self.count == self.step and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        stored = await super().append(lease, expected, batch, summary)
        if self.count == self.step:
            os.kill(os.getpid(), signal.SIGKILL)
        return stored


def tools(folder: Path) -> Tools:
    """Three tools with side effects that can be counted from outside: each run is a line in a file."""

    def effect(name: str) -> Any:
        def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
            with (folder / f"{name}.txt").open("a") as file:
                file.write(f"{ctx.tool_call_id}\n")
            return f"{name} done"

        return run

    return Tools(
        CountingTool("append", behaviour=effect("append")),
        CountingTool("asked", behaviour=effect("asked")),
        CountingTool("look", read_only=True, behaviour=effect("look")),
        CountingTool("put", idempotent=True, behaviour=effect("put")),
    )


def note(event: dict[str, Any]) -> dict[str, Any]:
    """A hook that publishes a record for each call."""
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "noted"}}


NOTES = HookDefinition(name="note", tier="user", phase="PostToolUse", kind="python", entry=f"{__name__}:note")


async def answering(session: Session) -> None:
    """Allow every ask, also one that was open before."""
    me = Principal(kind="local", name="tester")
    async with session.watch() as stream:
        for ask_id in list(session.state.asks):
            await session.answer(ask_id, "allow", principal=me)
        async for envelope in stream:
            if isinstance(envelope.event, AskOpened):
                await session.answer(envelope.event.ask.ask_id, "allow", principal=me)


async def main() -> None:
    folder, command, step, when = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    store = DyingStore(folder / "state")
    store.step, store.when = step, when
    script = load_script(folder / "script.yaml")
    engine = Engine(
        store=store,
        provider_for=lambda meta: ScriptedProvider(script),
        toolset_for=lambda meta: tools(folder),
        settings=EngineSettings(rules=Rules(allow=("append", "put"))),
        hooks_for=lambda meta: Hooks([NOTES], cwd=str(folder), environment={}, place=Place()),
    )
    if command == "prompt":
        owner = Principal(kind="local", name="tester")
        new = NewSession(owner=owner, workspace=str(folder), provider="scripted", model="m", limits=Limits())
        session = await engine.create(new)
    else:
        (found,) = await store.sessions()
        session = await engine.open(found.session_id)
    answers = asyncio.ensure_future(answering(session))
    if command == "prompt":
        stop: object = (await session.prompt("go")).stop_reason
    elif session.state.run is not None:
        stop = (await session.resume()).stop_reason
    elif session.state.status == "idle":
        stop = (await session.prompt("go on")).stop_reason
    else:
        stop = session.state.status
    await session.close()
    await answers
    await store.close()
    print("appends", store.count, "stop", stop)


asyncio.run(main())
