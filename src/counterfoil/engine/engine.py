"""The engine: makes, opens, reads and forks sessions on its adapters."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from counterfoil.engine.clock import SystemClock
from counterfoil.engine.context import NO_HOOKS, Context
from counterfoil.engine.fork import append_first, fork_session
from counterfoil.engine.publish import Publisher
from counterfoil.engine.session import Session
from counterfoil.engine.settings import EngineSettings, NewSession, Parts
from counterfoil.engine.transcript import Transcript
from counterfoil.engine.watch import Hub
from counterfoil.errors import CodecError, FoldError, NotResumable, SessionNotFound, UsageError
from counterfoil.events import SessionCreated, SessionKind
from counterfoil.identity import START, IdSource, Offset, RandomIds, SessionID
from counterfoil.ports import Clock, EventStore, Holder, HookPhase, HookRunner, Lease, Provider, Reviewer, Toolset
from counterfoil.state import Meta, Row, SessionState, apply, decode_snapshot

PAGE = 2_000


class Engine:
    """Drives sessions. The embedder gives the adapters and closes them.

    `provider_for(meta)` makes the provider that a session's metadata names, `toolset_for(meta)` its tools.
    `hooks_for(meta)` makes the hooks of a session; while there are any, `transcript_dir` gets its transcript file.
    `reviewer_for(meta)` makes what reviews its calls, or None.
    `output_dir` takes outputs that are too long to record. `environment` is what tools start from.
    """

    def __init__(
        self,
        *,
        store: EventStore,
        provider_for: Callable[[Meta], Provider],
        toolset_for: Callable[[Meta], Toolset],
        settings: EngineSettings | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        hooks_for: Callable[[Meta], HookRunner] | None = None,
        reviewer_for: Callable[[Meta], Reviewer | None] | None = None,
        transcript_dir: str | Path | None = None,
        output_dir: str | Path = ".",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.parts = Parts(
            store=store,
            provider_for=provider_for,
            toolset_for=toolset_for,
            clock=clock or SystemClock(),
            ids=ids or RandomIds(),
            holder=Holder(pid=os.getpid(), host=platform.node()),
            settings=settings or EngineSettings(),
            hooks_for=hooks_for or (lambda meta: NO_HOOKS),
            reviewer_for=reviewer_for or (lambda meta: None),
            transcript_dir=None if transcript_dir is None else str(transcript_dir),
            output_dir=str(output_dir),
            environment=dict(os.environ) if environment is None else environment,
        )

    async def create(self, new: NewSession) -> Session:
        """Make a session and take its lease."""
        created = SessionCreated(
            session_id=self.parts.ids.session(),
            session_kind=new.kind,
            relationship=new.relationship,
            owner=new.owner,
            title=new.title,
            workspace=new.workspace,
            provider=new.provider,
            model=new.model,
            base_url=new.base_url,
            mode=new.mode,
            limits=new.limits,
        )
        lease = await self.parts.store.acquire(created.session_id, self.parts.holder)
        try:
            return await self._session(lease, await append_first(self.parts, lease, created), START)
        except BaseException:
            await self.parts.store.release(lease)
            raise

    async def open(self, session_id: SessionID) -> Session:
        """Take the lease of a session and load it. Nothing is written.

        Raises `SessionNotFound`, `SessionHeld` while another process drives it, and `NotResumable` where its log
        can be read but not gone on with.
        """
        await self.parts.store.summary(session_id)
        lease = await self.parts.store.acquire(session_id, self.parts.holder)
        try:
            state, snapshot = await self._load(session_id)
            if state.meta.kind is SessionKind.UNKNOWN:
                raise NotResumable(f"session {session_id} is of a kind that this version doesn't know")
            return await self._session(lease, state, snapshot)
        except BaseException:
            await self.parts.store.release(lease)
            raise

    async def _session(self, lease: Lease, state: SessionState, snapshot: Offset) -> Session:
        hub = Hub()
        hooks = self.parts.hooks_for(state.meta)
        folder = self.parts.transcript_dir
        transcript = None
        if folder is not None and any(hooks.wants(phase) for phase in get_args(HookPhase)):
            transcript = await Transcript.open(Path(folder), self.parts.store, state.meta.session_id)
        publisher = Publisher(self.parts.store, lease, state, self.parts.clock, hub, transcript, snapshot)
        reviewer = self.parts.reviewer_for(state.meta)
        ctx = Context(self.parts, publisher, self.parts.toolset_for(state.meta), hooks, reviewer)
        return Session(ctx, lease, hub)

    async def load(self, session_id: SessionID) -> SessionState:
        """The folded state: the latest snapshot and the log after it. Takes no lease and writes nothing.

        Raises `SessionNotFound`, and `NotResumable` where the log can't be folded.
        """
        return (await self._load(session_id))[0]

    async def _load(self, session_id: SessionID) -> tuple[SessionState, Offset]:
        """The folded state, and the offset of the snapshot that it began with (0: none)."""
        try:
            state = await self._from_snapshot(session_id)
            offset = snapshot = state.offset if state is not None else START
            while rows := await self.parts.store.read(session_id, offset, PAGE):
                for stored in rows:
                    state = apply(state, Row(stored))
                offset = rows[-1].offset
        except (FoldError, CodecError) as fault:
            raise NotResumable(
                f"session {session_id} can be read but not driven: {fault.message}",
                hint=f"`counterfoil verify {session_id}` says more",
            ) from fault
        if state is None:
            raise SessionNotFound(f"session {session_id} has no events", hint="delete it")
        return state, snapshot

    async def fork(self, session_id: SessionID, *, at: Offset | None = None, title: str | None = None) -> SessionID:
        """Copy a session's log up to and with offset `at` (default: all) into a new session and return its id.

        Copied calls, records and asks keep their ids; whatever was open at `at` is closed in the copy.
        Raises `SessionNotFound`, `NotResumable`, and `UsageError` for an offset that the log doesn't have.
        """
        head = await self.parts.store.head(session_id)
        at = head.offset if at is None else at
        if not 1 <= at <= head.offset:
            raise UsageError(f"offset {at} is not in the log of {session_id}", hint=f"it has 1 to {head.offset}")
        return await fork_session(self.parts, session_id, at, title)

    async def _from_snapshot(self, session_id: SessionID) -> SessionState | None:
        found = await self.parts.store.load_snapshot(session_id)
        if found is None:
            return None
        offset, data = found
        try:
            state = decode_snapshot(data)
        except CodecError:
            return None
        return state if state.offset == offset else None
