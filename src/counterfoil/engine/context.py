"""What every step of a run works on: the adapters, the published state and the waiters of one driven session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from counterfoil.engine.details import Details
from counterfoil.engine.publish import Publisher
from counterfoil.engine.settings import EngineSettings, Parts
from counterfoil.events import CallProgress, ErrorInfo, Event, Mode, Receipt, StopReason, Usage
from counterfoil.events.codec import clean_text
from counterfoil.identity import AskID, RunID, ToolCallID
from counterfoil.policy.paths import Place
from counterfoil.ports import HookAnswer, HookCall, HookPhase, HookRunner, Provider, Reviewer, ToolContext, Toolset
from counterfoil.state import EncodedHistory, OpenCall, SessionState


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Why the loop ended."""

    reason: StopReason
    error: ErrorInfo | None = None


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a drive ended. Parked: the run isn't over, it waits for an answer, and `stop_reason` is None."""

    run_id: RunID
    stop_reason: StopReason | None
    text: str = ""
    error: ErrorInfo | None = None
    parked: bool = False
    usage: Usage = Usage()


class Parked(Exception):
    """The drive is left with its ask open; nothing is finished or withdrawn. `deferred`: a hook put it off."""

    def __init__(self, *, deferred: bool = False) -> None:
        super().__init__()
        self.deferred = deferred


class NoHooks:
    """Nothing is configured."""

    def wants(self, phase: HookPhase) -> bool:
        """Never."""
        return False

    async def fire(self, call: HookCall) -> list[HookAnswer]:
        """Nobody answers."""
        return []

    async def close(self) -> None:
        """Nothing runs."""


NO_HOOKS = NoHooks()


class Context:
    """One driven session. `state` is folded from what was published, and changes with each publication."""

    def __init__(
        self,
        parts: Parts,
        publisher: Publisher,
        toolset: Toolset,
        hooks: HookRunner | None = None,
        reviewer: Reviewer | None = None,
    ) -> None:
        self.hooks: HookRunner = NO_HOOKS if hooks is None else hooks
        self.reviewer = reviewer
        self.details = Details()
        self.parts = parts
        self.publisher = publisher
        self.toolset = toolset
        self.waiters: dict[AskID, asyncio.Future[Receipt | None]] = {}
        self.compact_wanted = False
        self._provider: Provider | None = None
        self._memos: dict[str, EncodedHistory] = {}
        self._system: tuple[Mode, str] | None = None
        self._place: Place | None = None

    @property
    def state(self) -> SessionState:
        """The folded state."""
        return self.publisher.state

    @property
    def transcript_path(self) -> str:
        """The file that hooks may read; empty where there is none."""
        transcript = self.publisher.transcript
        return "" if transcript is None else str(transcript.path)

    @property
    def settings(self) -> EngineSettings:
        """The engine's settings."""
        return self.parts.settings

    @property
    def provider(self) -> Provider:
        """The provider that the session's metadata names, made when first needed."""
        if self._provider is None:
            self._provider = self.parts.provider_for(self.state.meta)
        return self._provider

    @property
    def place(self) -> Place:
        """Where calls are judged: workspace and home, symlinks resolved."""
        if self._place is None:
            workspace, home = self.state.meta.workspace, Path.home()
            self._place = Place(workspace=os.path.realpath(workspace), home=os.path.realpath(home))
        return self._place

    def grants(self) -> tuple[str, ...]:
        """What people let be learned: for this session, and for its workspace for good."""
        standing = self.settings.standing_grants
        if standing is None:
            return tuple(grant.rule for grant in self.state.grants)
        learned = tuple(grant.rule for grant in self.state.grants if grant.scope != "always")
        return (*learned, *standing(self.state.meta))

    def memo(self) -> EncodedHistory:
        """The wire bytes of this session's history for the present provider."""
        return self._memos.setdefault(self.provider.origin, EncodedHistory())

    def system_prompt(self) -> str:
        """The system prompt: assembled once for each mode, so that it is the same for each turn and caches hit."""
        mode = self.state.meta.mode
        if self._system is None or self._system[0] != mode:
            self._system = (mode, self.settings.system_prompt(self.state.meta))
        return self._system[1]

    async def forget_provider(self) -> None:
        """After a change of model or mode: the next turn asks the new one."""
        provider, self._provider, self._system = self._provider, None, None
        if provider is not None:
            await provider.close()

    async def publish(self, *events: Event) -> None:
        """Publish durable events as one batch."""
        await self.publisher.publish(*events)

    def tool_context(self, call: OpenCall) -> ToolContext:
        """What the tool of `call` gets to know."""
        call_id = call.tool_call_id
        return ToolContext(
            session_id=self.state.meta.session_id,
            tool_call_id=call_id,
            workspace=Path(self.state.meta.workspace),
            output_dir=Path(self.parts.output_dir) / self.state.meta.session_id,
            environment=self.parts.environment,
            progress=lambda text: self._progress(call_id, text),
        )

    def _progress(self, call_id: ToolCallID, text: str) -> None:
        self.publisher.transient(CallProgress(tool_call_id=call_id, text=clean_text(text)[:2000]))
