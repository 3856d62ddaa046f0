"""A process that drives a session and kills itself at one durable step. Run by test_crash.py.

Arguments: STATE_DIR COMMAND STEP WHEN [ANSWERS]. COMMAND is `prompt` or `resume`. The process dies by SIGKILL at
append number STEP of its life, `before` it (nothing written) or `after` it (written, the caller never told); STEP 0:
never. ANSWERS `no`: nobody answers in this life, and the run is parked at its first ask.
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
from counterfoil.events import Ask, AskOpened, Limits, Principal, StoredEvent, Verdict
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.identity import Offset
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.ports import Checked, Evidence, Lease, ReviewRule, ReviewSubject, SessionSummary, Stamped, ToolContext
from counterfoil.providers.script import load_script
from counterfoil.providers.scripted import ScriptedProvider
from counterfoil.stores.sqlite import SqliteStore
from tests.support.harness import CountingTool, Tools
from tests.support.reviewer import FakeReviewer, result_of
from tests.support.reviewer import rule as policy


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
        CountingTool("risky", behaviour=effect("risky")),
        CountingTool("fetch", behaviour=effect("fetch")),
        CountingTool("peek", read_only=True, behaviour=effect("peek")),
    )


class Guard(FakeReviewer):
    """Objects to starts of `risky`, and to every result of `fetch` and `peek`."""

    async def check(self, subject: ReviewSubject, rule: ReviewRule, evidence: Evidence) -> Checked:
        objects = subject.tool == "risky" if subject.job == "action" else subject.tool in ("fetch", "peek")
        return result_of("concern" if objects else "clear")


GUARD = Guard(
    policy("action", tools=("risky", "fetch")), policy("inbound", tools=("fetch", "peek", "risky")), files={"f": "x"}
)


def note(event: dict[str, Any]) -> dict[str, Any]:
    """A hook that publishes a record for each call."""
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "noted"}}


NOTES = HookDefinition(name="note", tier="user", phase="PostToolUse", kind="python", entry=f"{__name__}:note")


async def answering(session: Session, answers: bool) -> None:
    """Say yes to every ask, also one that was open before; or leave the run at it."""
    me = Principal(kind="local", name="tester")
    async with session.watch() as stream:
        if answers:
            for ask in list(session.state.asks.values()):
                await session.answer(ask.ask_id, yes(ask), principal=me)
        async for envelope in stream:
            if isinstance(envelope.event, AskOpened):
                if answers:
                    await session.answer(envelope.event.ask.ask_id, yes(envelope.event.ask), principal=me)
                else:
                    session.park()


def yes(ask: Ask) -> Verdict:
    """The verdict that lets it happen."""
    return "release" if "release" in ask.choices else "allow"


async def main() -> None:
    folder, command, step, when = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    store = DyingStore(folder / "state")
    store.step, store.when = step, when
    script = load_script(folder / "script.yaml")
    engine = Engine(
        store=store,
        provider_for=lambda meta: ScriptedProvider(script),
        toolset_for=lambda meta: tools(folder),
        settings=EngineSettings(rules=Rules(allow=("append", "put", "risky", "fetch"))),
        reviewer_for=lambda meta: GUARD,
        hooks_for=lambda meta: Hooks([NOTES], cwd=str(folder), environment={}, place=Place()),
    )
    if command == "prompt":
        owner = Principal(kind="local", name="tester")
        new = NewSession(owner=owner, workspace=str(folder), provider="scripted", model="m", limits=Limits())
        session = await engine.create(new)
    else:
        (found,) = await store.sessions()
        session = await engine.open(found.session_id)
    answers = asyncio.ensure_future(answering(session, len(sys.argv) < 6 or sys.argv[5] != "no"))
    if command == "prompt":
        stop: object = (await session.prompt("go")).stop_reason
    elif session.state.run is not None and session.state.asks and len(sys.argv) > 5 and sys.argv[5] == "no":
        stop = None
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
