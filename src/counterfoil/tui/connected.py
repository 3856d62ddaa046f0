"""The link of the terminal client, over the one interface of clients. It comes back by itself when the server does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from counterfoil.client.interface import CaughtUp, Client
from counterfoil.errors import (
    AskIsSettled,
    AskNotFound,
    AskWithdrawn,
    NotResumable,
    ShuttingDown,
    Unreachable,
    UsageError,
)
from counterfoil.events import (
    Ask,
    Envelope,
    Mode,
    RunFinished,
    RunStarted,
    Scope,
    SessionCreated,
    SessionUpdated,
    Usage,
    Verdict,
)
from counterfoil.identity import START, AskID, SessionID
from counterfoil.service.models import context_window
from counterfoil.tui.kept import keep
from counterfoil.tui.link import Defaults, SessionLine
from counterfoil.tui.words import title_of

T = TypeVar("T")
PAGE = 500
FIRST_PAUSE, LAST_PAUSE = 0.2, 5.0
"""Seconds between two tries to reach a server that is gone."""
PATIENCE = 300.0
"""Seconds for which an answer is tried again while the server is gone."""


class Connected:
    """The link to a service, through a client that speaks for this person. What only tells is for others to add."""

    def __init__(self, client: Client, defaults: Defaults, *, place: str, state_dir: Path) -> None:
        """`place`: how the connection is called. `state_dir`: where the person's settings of the client are kept."""
        self._client = client
        self._place = place
        self._state_dir = state_dir
        self._session: SessionID | None = None
        self._open_run = False
        self._titled = False
        self.defaults = defaults
        self.connection = place
        self.told: Callable[[], None] = lambda: None

    # ---- sessions -----------------------------------------------------------------------------------------------

    async def sessions(self) -> list[SessionLine]:
        lines: list[SessionLine] = []
        token = ""
        while True:
            page = await self._client.list_sessions(page_size=PAGE, page_token=token)
            lines += [
                SessionLine(
                    session_id=s.session_id,
                    title=s.title,
                    workspace=s.workspace,
                    model=s.model,
                    status=s.status,
                    open_asks=s.open_asks,
                    updated_at=s.updated_at,
                )
                for s in page.sessions
            ]
            token = page.next_token
            if not token:
                return sorted(lines, key=lambda line: line.updated_at, reverse=True)

    async def open(self, session: SessionID | None) -> SessionID:
        found = await self._client.create() if session is None else await self._client.get(session)
        self._session = found.session_id
        self._open_run, self._titled = False, bool(found.title)
        return found.session_id

    @property
    def _opened(self) -> SessionID:
        if self._session is None:
            raise UsageError("no session is open", hint="give a prompt, or open one with /sessions")
        return self._session

    async def watch(self) -> AsyncIterator[Envelope]:
        session, after, pause = self._opened, START, FIRST_PAUSE
        while True:
            try:
                async with contextlib.aclosing(self._client.watch(session, after)) as frames:
                    async for frame in frames:
                        if isinstance(frame, CaughtUp):
                            pause = FIRST_PAUSE
                            self._is_connected()
                        if isinstance(frame, Envelope):
                            after = after if frame.offset is None else frame.offset
                            self._follow(frame)
                            yield frame
                return
            except (Unreachable, ShuttingDown):
                pause = await self._wait_a_little(pause)

    def _follow(self, envelope: Envelope) -> None:
        event = envelope.event
        if envelope.session_id != self._session:
            return
        if isinstance(event, RunStarted):
            self._open_run = True
        elif isinstance(event, RunFinished):
            self._open_run = False
        elif isinstance(event, (SessionCreated, SessionUpdated)) and event.title:
            self._titled = True

    def _is_connected(self) -> None:
        if self.connection != self._place:
            self.connection = self._place
            self.told()

    async def _wait_a_little(self, pause: float) -> float:
        """Say that the server is gone, and wait before the next try. Returns how long to wait after that."""
        self.connection = "lost: reconnecting"
        self.told()
        await asyncio.sleep(pause)
        return min(2 * pause, LAST_PAUSE)

    # ---- runs ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._open_run

    async def prompt(self, text: str) -> None:
        session = self._opened
        if self._open_run:
            await self._client.steer(session, text)
            return
        if not self._titled:
            await self._client.rename(session, title_of(text))
            self._titled = True
        await self._client.prompt(session, text)

    async def resume(self) -> bool:
        try:
            await self._client.resume(self._opened)
        except NotResumable:
            return False
        return True

    async def ended(self) -> None:
        """Nothing: the run is the server's, and its events say how it goes."""

    async def cancel(self) -> None:
        await self._client.cancel(self._opened)

    async def answer(
        self, ask: AskID, verdict: Verdict, *, scope: Scope = "once", note: str = "", rule: str = ""
    ) -> None:
        key = secrets.token_hex(16)  # the same answer again, where the first one's reply was lost, is one answer
        await self._patiently(
            lambda: self._client.answer(ask, verdict, scope=scope, note=note, rule=rule, idempotency_key=key)
        )

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`, again and again while the server is gone. Raises `Unreachable` after `PATIENCE` seconds."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + PATIENCE, FIRST_PAUSE
        while True:
            try:
                return await work()
            except (Unreachable, ShuttingDown):
                if loop.time() > until:
                    raise
                pause = await self._wait_a_little(pause)

    async def preview(self, ask: Ask) -> str:
        try:
            return (await self._client.get_ask(ask.ask_id)).untrusted_preview
        except (AskNotFound, AskIsSettled, AskWithdrawn):
            return ""

    # ---- the open session ---------------------------------------------------------------------------------------

    async def set_mode(self, mode: Mode) -> None:
        await self._client.set_mode(self._opened, mode)

    async def set_model(self, provider: str, model: str) -> None:
        name = provider or (await self._client.get(self._opened)).provider
        await self._client.set_model(self._opened, name, model)

    async def compact(self) -> bool:
        return await self._client.compact(self._opened)

    async def export(self, path: str) -> None:
        target = Path(path).expanduser()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                async with contextlib.aclosing(self._client.export(self._opened)) as chunks:
                    async for chunk in chunks:
                        file.write(chunk)
            part.replace(target)
        except OSError as fault:
            raise UsageError(f"{target} can't be written: {fault.strerror}", hint="name another file") from fault
        finally:
            part.unlink(missing_ok=True)

    async def rename(self, session: SessionID, title: str) -> None:
        await self._client.rename(session, title)

    async def fork(self, session: SessionID) -> SessionID:
        return await self._client.fork(session)

    async def delete(self, session: SessionID) -> None:
        if session == self._session:
            raise UsageError("the session that is open can't be deleted", hint="open another one first")
        await self._client.delete(session)

    # ---- what only tells ----------------------------------------------------------------------------------------

    def window(self, model: str) -> int:
        return context_window(model)

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        from counterfoil.tui.prices import cost

        return cost(model, usage)

    async def keep(self, name: str, value: str) -> None:
        keep(self._state_dir, name, value)

    async def close(self) -> None:
        """Leave. The run goes on at the server, and what is asked stays open there."""
        await self._client.close()
