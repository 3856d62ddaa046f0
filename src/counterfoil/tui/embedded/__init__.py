"""The server inside the terminal client's own process: the one module that composes the service."""

from __future__ import annotations

import asyncio
import getpass
import os
import platform
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.config import NO_FLAGS, Flags, Settings, api_key, find_provider, load, model_name, user_folder
from counterfoil.config import with_choice as with_provider
from counterfoil.engine import NewSession, Session, Watch, WatchGap
from counterfoil.errors import CounterfoilError, UsageError
from counterfoil.events import Ask, Envelope, Mode, Principal, Scope, Usage, Verdict
from counterfoil.events.codec import encode_envelope, envelope_of
from counterfoil.identity import START, AskID, Offset, SessionID
from counterfoil.ports import Holder
from counterfoil.service.local import LocalService
from counterfoil.service.models import context_window
from counterfoil.service.stopping import held_text
from counterfoil.tui.kept import keep, notices_of, read_kept
from counterfoil.tui.link import Defaults, SessionLine
from counterfoil.tui.words import title_of

if TYPE_CHECKING:
    from counterfoil.tui.link import Fact

PAGE = 1_000


def settings_for(workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> Settings:
    """The settings, with provider and model chosen, and a provider that can be asked. Raises `CounterfoilError`."""
    settings = with_provider(load(workspace, env, flags), env)
    api_key(find_provider(settings, settings.model.provider), env)
    model = msgspec.structs.replace(settings.model, name=model_name(settings))
    return msgspec.structs.replace(settings, model=model)


class Embedded:
    """The link to a service in this process."""

    def __init__(self, service: LocalService, workspace: Path) -> None:
        self.service = service
        self._workspace = workspace
        self._session: Session | None = None
        self._watch: Watch | None = None
        self._drive: asyncio.Task[Any] | None = None
        self.defaults = self._defaults()
        self.connection = "embedded"
        self.told: Callable[[], None] = lambda: None

    @classmethod
    def start(cls, workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> Embedded:
        """Compose the service for a folder. Raises `CounterfoilError`."""
        settings = settings_for(workspace, env, flags)
        provider = find_provider(settings, settings.model.provider)
        script = Path(provider.base_url) if provider.wire == "scripted" else None
        return cls(LocalService(settings, env, script=script, personal_folder=user_folder(env)), workspace)

    def _defaults(self) -> Defaults:
        settings = self.service.settings
        kept = read_kept(settings.state_dir)
        return Defaults(
            workspace=str(self._workspace),
            provider=settings.model.provider,
            model=settings.model.name,
            mode=settings.permissions.mode,
            notices=notices_of(kept),
            configured=settings.ui.notices,
            theme="light" if kept.get("theme") == "light" else "dark",
            warnings=tuple(str(problem) for problem in settings.problems),
        )

    # ---- sessions -----------------------------------------------------------------------------------------------

    async def sessions(self) -> list[SessionLine]:
        found = await self.service.store.sessions(limit=PAGE)
        lines = [
            SessionLine(
                session_id=s.session_id,
                title=s.title,
                workspace=s.workspace,
                model=s.model,
                status=s.status,
                open_asks=s.open_asks,
                updated_at=s.updated_at,
            )
            for s in found
        ]
        return sorted(lines, key=lambda line: line.updated_at, reverse=True)

    async def open(self, session: SessionID | None) -> SessionID:
        opened = await self._create() if session is None else await self.service.engine.open(session)
        await self._leave()
        self._session = opened
        self._watch = opened.watch()
        return opened.id

    async def _create(self) -> Session:
        settings = self.service.settings
        new = NewSession(
            owner=me(),
            workspace=str(self._workspace),
            provider=settings.model.provider,
            model=settings.model.name,
            base_url=settings.model.base_url,
            mode=settings.permissions.mode,
            limits=settings.limits,
        )
        return await self.service.engine.create(new)

    async def watch(self) -> AsyncIterator[Envelope]:
        session, watch = self._opened, self._watch
        assert watch is not None
        after = START
        while True:
            async for envelope in self._recorded(session.id, after):
                yield envelope
            try:
                async for envelope in watch:
                    yield envelope
                return
            except WatchGap as gap:
                await watch.__aexit__(None, None, None)
                watch = self._watch = session.watch()
                after = gap.last_offset

    async def _recorded(self, session: SessionID, after: Offset) -> AsyncIterator[Envelope]:
        while page := await self.service.store.read(session, after, PAGE):
            for row in page:
                yield envelope_of(row)
            after = page[-1].offset

    @property
    def _opened(self) -> Session:
        if self._session is None:
            raise UsageError("no session is open", hint="give a prompt, or open one with /sessions")
        return self._session

    # ---- runs ---------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._drive is not None and not self._drive.done()

    async def prompt(self, text: str) -> None:
        session = self._opened
        if self.running:
            await session.steer(text)
            return
        if not session.state.meta.title:
            await session.rename(title_of(text))
        self._begin(session.prompt(text))

    async def resume(self) -> bool:
        session = self._opened
        if self.running or session.state.run is None:
            return False
        self._begin(session.resume())
        return True

    def _begin(self, drive: Any) -> None:
        """Drive a run. Its end is in the log, and a fault that isn't is raised by `ended`."""
        self._drive = asyncio.ensure_future(drive)

    async def ended(self) -> None:
        """Wait for the end of the run. Raises what it couldn't record."""
        if self._drive is not None:
            await asyncio.shield(self._drive)

    async def cancel(self) -> None:
        self._opened.cancel()

    async def answer(
        self, ask: AskID, verdict: Verdict, *, scope: Scope = "once", note: str = "", rule: str = ""
    ) -> None:
        await self._opened.answer(ask, verdict, principal=me(), scope=scope, note=note, rule=rule)
        if not self.running and self._opened.state.run is not None and not self._opened.state.asks:
            await self.resume()

    async def preview(self, ask: Ask) -> str:
        return held_text(self._opened.state, ask)

    # ---- the open session ---------------------------------------------------------------------------------------

    async def set_mode(self, mode: Mode) -> None:
        await self._opened.set_mode(mode)

    async def set_model(self, provider: str, model: str) -> None:
        meta = self._opened.state.meta
        name = provider or meta.provider
        recorded = meta.base_url if name == meta.provider else ""
        found = find_provider(self.service.settings, name, recorded)
        api_key(found, os.environ)
        await self._opened.set_model(name, model, base_url=recorded)

    async def compact(self) -> bool:
        return await self._opened.compact()

    async def export(self, path: str) -> None:
        target = Path(path).expanduser()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        session = self._opened.id
        try:
            with part.open("wb") as file:
                after = START
                while page := await self.service.store.read(session, after, PAGE):
                    file.writelines(encode_envelope(envelope_of(row), row.public) + b"\n" for row in page)
                    after = page[-1].offset
            part.replace(target)
        except OSError as fault:
            raise UsageError(f"{target} can't be written: {fault.strerror}", hint="name another file") from fault
        finally:
            part.unlink(missing_ok=True)

    async def rename(self, session: SessionID, title: str) -> None:
        if self._session is not None and self._session.id == session:
            await self._session.rename(title)
            return
        async with await self.service.engine.open(session) as opened:
            await opened.rename(title)

    async def fork(self, session: SessionID) -> SessionID:
        return await self.service.engine.fork(session)

    async def delete(self, session: SessionID) -> None:
        if self._session is not None and self._session.id == session:
            raise UsageError("the session that is open can't be deleted", hint="open another one first")
        store = self.service.store
        await store.delete(await store.acquire(session, Holder(pid=os.getpid(), host=platform.node())))
        shutil.rmtree(self.service.settings.state_dir / "outputs" / session, ignore_errors=True)

    # ---- what only tells ----------------------------------------------------------------------------------------

    async def hooks(self) -> list[Fact]:
        from counterfoil.tui.embedded.facts import hooks

        return hooks(self.service.settings)

    async def rules(self) -> list[Fact]:
        from counterfoil.tui.embedded.facts import rules

        grants = self._session.state.grants if self._session is not None else []
        return rules(self.service.settings, self._workspace, [(g.rule, g.scope) for g in grants])

    async def revoke(self, rule: str) -> None:
        from counterfoil.service.grants import Grants

        if self._session is not None and any(g.rule == rule for g in self._session.state.grants):
            await self._session.revoke_grant(rule, me())
        elif not Grants(self.service.settings.state_dir).revoke(str(self._workspace), rule):
            raise UsageError(f"rule {rule!r} was not learned here", hint="rules of files are changed in their files")

    async def checkers(self) -> list[Fact]:
        from counterfoil.tui.embedded.facts import checkers

        return checkers(self.service.settings)

    async def diagnostics(self) -> list[tuple[str, str]]:
        from counterfoil.tui.embedded.facts import diagnostics

        return diagnostics(self.service.settings, self._workspace)

    def window(self, model: str) -> int:
        return context_window(model)

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        from counterfoil.tui.prices import cost

        return cost(model, usage)

    async def keep(self, name: str, value: str) -> None:
        keep(self.service.settings.state_dir, name, value)

    # ---- the end ------------------------------------------------------------------------------------------------

    async def _leave(self) -> None:
        """Close the open session. A run that waits for an answer is parked and waits on; any other is interrupted."""
        session, self._session = self._session, None
        if session is None:
            return
        if self.running and session.state.asks:
            session.park()
            assert self._drive is not None
            await asyncio.wait([self._drive], timeout=5)
        await session.close()
        if self._drive is not None:
            await asyncio.wait([self._drive])
            self._drive = None

    async def close(self) -> None:
        await self._leave()
        await self.service.close()


def me() -> Principal:
    """The person at this terminal: the process's user."""
    try:
        return Principal(kind="local", name=getpass.getuser())
    except (KeyError, OSError):
        return Principal(kind="local", name=str(os.getuid()))


__all__ = ["CounterfoilError", "Embedded", "me", "settings_for"]
