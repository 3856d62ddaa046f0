"""Stopping one call while its run goes on: tools run in a task of their own, which whoever may can stop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from counterfoil.errors import ToolFailure
from counterfoil.events import Ask, Verdict, text_of
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.ports import Targets, Tool, ToolContext, ToolOutput, Toolset, ToolSpec
from counterfoil.state import SessionState

PREVIEW = 4_000
"""Characters of a held result that are shown to whoever decides on it."""
REMEMBERED = 1_000
"""So many calls that aren't to begin are remembered."""


class _Running:
    """One call that runs, and who stopped it."""

    def __init__(self, task: asyncio.Future[ToolOutput]) -> None:
        self.task = task
        self.stopped_by = ""


class RunningCalls:
    """The calls that run in this process."""

    def __init__(self) -> None:
        self._running: dict[tuple[SessionID, ToolCallID], _Running] = {}
        self._unwanted: dict[tuple[SessionID, ToolCallID], str] = {}

    def over(self, tools: Toolset) -> Toolset:
        """The same tools, whose calls can be stopped one by one."""
        return _Stoppable(tools, self)

    def stop(self, session: SessionID, call: ToolCallID, by: str) -> bool:
        """Stop a call that runs; the model is told who did. False where it doesn't run here."""
        found = self._running.get((session, call))
        if found is None or found.task.done():
            return False
        found.stopped_by = found.stopped_by or by
        found.task.cancel()
        return True

    def refuse(self, session: SessionID, call: ToolCallID, by: str) -> None:
        """Stop an open call before it begins to run. One that has ended already is past that, and nothing happens."""
        self._unwanted[session, call] = by
        while len(self._unwanted) > REMEMBERED:
            del self._unwanted[next(iter(self._unwanted))]

    async def run(self, tool: Tool, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run the call. Raises `ToolFailure` where it is stopped by itself; a cancel of the whole run goes on."""
        if by := self._unwanted.pop((ctx.session_id, ctx.tool_call_id), ""):
            raise ToolFailure(f"stopped by {by} before it began", executed="no")
        own = asyncio.current_task()
        before = own.cancelling() if own is not None else 0
        key = ctx.session_id, ctx.tool_call_id
        running = self._running[key] = _Running(asyncio.ensure_future(tool.run(ctx, arguments)))
        try:
            return await running.task
        except asyncio.CancelledError:
            if not running.stopped_by or (own is not None and own.cancelling() > before):
                raise
            raise ToolFailure(f"stopped by {running.stopped_by} before it ended", executed="unknown") from None
        finally:
            del self._running[key]


class _Stoppable:
    """A toolset over another one."""

    def __init__(self, inner: Toolset, calls: RunningCalls) -> None:
        self._inner = inner
        self._tools = {spec.name: _StoppableTool(tool, calls) for spec in inner.specs if (tool := inner.get(spec.name))}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def close(self) -> None:
        await self._inner.close()


class _StoppableTool:
    """A tool over another one."""

    def __init__(self, inner: Tool, calls: RunningCalls) -> None:
        self._inner = inner
        self._calls = calls

    @property
    def spec(self) -> ToolSpec:
        return self._inner.spec

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        return self._inner.targets(ctx, arguments)

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        return await self._calls.run(self._inner, ctx, arguments)


def open_question(state: SessionState, call: ToolCallID) -> tuple[Ask, Verdict] | None:
    """The ask that the call waits at, and the answer by which nothing happens."""
    ask = next((ask for ask in state.asks.values() if ask.tool_call_id == call), None)
    if ask is None:
        return None
    return ask, "withhold" if "withhold" in ask.choices else "deny"


def held_text(state: SessionState, ask: Ask) -> str:
    """The beginning of the result that `ask` is about, which comes from outside. Empty where it isn't held any more."""
    call = state.call(ask.tool_call_id)
    return text_of(call.held.parts)[:PREVIEW] if call is not None and call.held is not None else ""
