"""An engine on real in-memory adapters, for tests: a scripted model, tools that keep count, a clock that is set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from counterfoil.engine import Engine, EngineSettings, NewSession, Session
from counterfoil.events import AskOpened, Envelope, Limits, Mode, Principal, TextPart, Verdict
from counterfoil.events.codec import event_of, kind_of
from counterfoil.identity import START, SessionID
from counterfoil.policy.permissions import Rules
from counterfoil.ports import (
    EventStore,
    HookRunner,
    Provider,
    Reviewer,
    Targets,
    ToolContext,
    ToolOutput,
    Toolset,
    ToolSpec,
)
from counterfoil.providers.script import Script, script_from
from counterfoil.providers.scripted import ScriptedProvider
from counterfoil.state import Meta
from counterfoil.stores.memory import MemoryStore

ME = Principal(kind="local", name="tester")
ANY_OBJECT: dict[str, Any] = {"type": "object"}


class CountingTool:
    """A tool that notes each run. `behaviour` makes its output; by default it says how often it ran."""

    def __init__(
        self,
        name: str,
        *,
        read_only: bool = False,
        idempotent: bool = False,
        timeout: float = 0,
        parameters: dict[str, Any] | None = None,
        behaviour: Callable[[ToolContext, Mapping[str, Any]], Any] | None = None,
    ) -> None:
        self.spec = ToolSpec(
            name=name,
            description=f"The tool {name}.",
            parameters=parameters or ANY_OBJECT,
            read_only=read_only,
            idempotent=idempotent,
            timeout=timeout,
        )
        self.runs: list[tuple[str, dict[str, Any]]] = []
        self._behaviour = behaviour
        self.started = asyncio.Event()

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        return Targets()

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        self.runs.append((ctx.tool_call_id, dict(arguments)))
        self.started.set()
        result = self._behaviour(ctx, arguments) if self._behaviour else f"{self.spec.name} run {len(self.runs)}"
        if asyncio.iscoroutine(result):
            result = await result
        return result if isinstance(result, ToolOutput) else ToolOutput(parts=(TextPart(text=str(result)),))


async def hang(ctx: ToolContext, arguments: Mapping[str, Any]) -> None:
    """A behaviour that never ends by itself."""
    await asyncio.Event().wait()


class Tools:
    """A toolset over given tools."""

    def __init__(self, *tools: Any) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self.closed = 0

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def get(self, name: str) -> Any:
        return self._tools.get(name)

    async def close(self) -> None:
        self.closed += 1


class SetClock:
    """A clock that moves by a microsecond each time it is read and never waits."""

    def __init__(self) -> None:
        self.micros = 1_700_000_000_000_000
        self.slept: list[float] = []

    def now(self) -> int:
        self.micros += 1
        return self.micros

    def monotonic(self) -> float:
        return self.now() / 1e6

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Rig:
    """An engine with everything in reach."""

    def __init__(
        self,
        script: Mapping[str, Any] | Script,
        *tools: Any,
        store: EventStore | None = None,
        settings: EngineSettings | None = None,
        rules: Rules | None = None,
        toolset: Toolset | None = None,
        provider: Callable[[Meta], Provider] | None = None,
        hooks: Callable[[Meta], HookRunner] | None = None,
        transcripts: str | None = None,
        reviewer: Reviewer | None = None,
        workspace: str = "/nowhere",
    ) -> None:
        self.workspace = workspace
        self.store = store or MemoryStore()
        self.script = script if isinstance(script, Script) else script_from(dict(script))
        self.clock = SetClock()
        self.tools = tools
        self.toolset = toolset
        self.engine = Engine(
            store=self.store,
            provider_for=provider or self._provider,
            toolset_for=self._toolset,
            settings=settings or EngineSettings(rules=rules or Rules()),
            clock=self.clock,
            hooks_for=hooks,
            reviewer_for=lambda meta: reviewer,
            transcript_dir=transcripts,
            environment={},
        )

    def _provider(self, meta: Meta) -> ScriptedProvider:
        return ScriptedProvider(self.script)

    def _toolset(self, meta: Meta) -> Toolset:
        return self.toolset or Tools(*self.tools)

    async def session(
        self, mode: Mode = "bypass", limits: Limits | None = None, *, provider: str = "scripted"
    ) -> Session:
        """A new session."""
        return await self.engine.create(
            NewSession(
                owner=ME,
                workspace=self.workspace,
                provider=provider,
                model="m",
                mode=mode,
                limits=limits or Limits(max_repeated_turns=0),
            )
        )

    async def log(self, session_id: SessionID) -> list[Any]:
        """All events of the log."""
        return [event_of(row) for row in await self.store.read(session_id, START, 1_000_000)]

    async def kinds(self, session_id: SessionID) -> list[str]:
        """The kinds of all events of the log."""
        return [kind_of(event) for event in await self.log(session_id)]


async def first(session: Session, kind: type[Any]) -> Any:
    """The next published event of this kind."""
    async with session.watch() as stream:
        async for envelope in stream:
            if isinstance(envelope.event, kind):
                return envelope.event
    raise AssertionError(f"the session closed without {kind.__name__}")


class Answerer:
    """Answers every ask of a session with one verdict, and keeps what it saw."""

    def __init__(self, session: Session, verdict: Verdict = "allow", note: str = "") -> None:
        self.session = session
        self.verdict: Verdict = verdict
        self.note = note
        self.seen: list[Envelope] = []
        self._watch = session.watch()
        self._task = asyncio.ensure_future(self._go())

    async def _go(self) -> None:
        async for envelope in self._watch:
            self.seen.append(envelope)
            if isinstance(envelope.event, AskOpened):
                await self.session.answer(envelope.event.ask.ask_id, self.verdict, principal=ME, note=self.note)

    async def stop(self) -> list[Envelope]:
        """End it; everything that it saw."""
        await self.session.close()
        await self._task
        return self.seen


def call(tool: str, id: str | None = None, **arguments: Any) -> dict[str, Any]:
    """One call of a script."""
    return {"tool": tool, "arguments": arguments} | ({} if id is None else {"id": id})


def turn(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    """One turn of a script."""
    return {"text": text, "calls": list(calls)}
