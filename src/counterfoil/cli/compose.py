"""From the command line to settings, a store and a service: composed here, decided elsewhere."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from counterfoil.cli import faults

if TYPE_CHECKING:
    from counterfoil.config import Flags, Settings
    from counterfoil.events import Principal
    from counterfoil.hooks import HookDefinition
    from counterfoil.identity import SessionID
    from counterfoil.ports import EventStore
    from counterfoil.service.local import LocalService

T = TypeVar("T")
_state_dir: Path | None = None


def last_state_dir() -> Path | None:
    """The state directory of the settings that were loaded last: crash files go there."""
    return _state_dir


def folder(workspace: Path | None) -> Path:
    """The workspace as an absolute folder that is there. Raises `UsageError`."""
    from counterfoil.errors import UsageError

    try:
        found = (workspace or Path.cwd()).expanduser().absolute()
    except (OSError, RuntimeError) as fault:
        raise UsageError(f"the workspace can't be found: {fault}", hint="use --workspace DIR") from fault
    try:
        str(found).encode()
    except UnicodeEncodeError as fault:
        raise UsageError("the workspace's path is not UTF-8", hint="rename the folder") from fault
    if not found.is_dir():
        raise UsageError(f"{found} is not a folder", hint="--workspace names an existing folder")
    return found


def load_settings(workspace: Path | None = None, flags: Flags | None = None, *, warn: bool = True) -> Settings:
    """The settings for this folder and these flags; warnings go to stderr. Raises `ConfigError`, `UsageError`."""
    global _state_dir
    from counterfoil.cli import logs
    from counterfoil.config import NO_FLAGS, load

    settings = load(folder(workspace), os.environ, flags or NO_FLAGS)
    _state_dir = settings.state_dir
    logs.set_up()
    for problem in settings.problems if warn else ():
        faults.say(f"warning: {problem}" + (f" ({problem.hint})" if problem.hint else ""))
    return settings


def state_settings(state_dir: str | None, *, warn: bool = True) -> Settings:
    """The settings for a command that only looks at stored sessions."""
    from counterfoil.config import Flags

    return load_settings(None, Flags(state_dir=state_dir), warn=warn)


def with_store(state_dir: str | None, work: Callable[[EventStore], Awaitable[T]]) -> T:
    """Do `work` with the store of the state directory."""
    import asyncio

    settings = state_settings(state_dir)

    async def session() -> T:
        from counterfoil.stores import open_store

        store = open_store(settings.state_dir)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(session())


def service(
    settings: Settings, store: EventStore | None = None, *, hooks: Sequence[HookDefinition] = ()
) -> LocalService:
    """The application on these settings, and on this store where one is open already; with more `hooks` than theirs."""
    from counterfoil.service.local import LocalService

    script = Path(settings.model.script) if settings.model.script else None
    personal = personal_folder()
    return LocalService(settings, os.environ, store=store, script=script, personal_folder=personal, hooks=hooks)


def with_service(settings: Settings, work: Callable[[LocalService], Awaitable[T]]) -> T:
    """Do `work` with the application on these settings."""
    import asyncio

    async def session() -> T:
        async with service(settings) as local:
            return await work(local)

    return asyncio.run(session())


@contextlib.asynccontextmanager
async def service_for(
    settings: Settings, flags: Flags, find: Callable[[EventStore], Awaitable[SessionID]]
) -> AsyncIterator[tuple[LocalService, SessionID]]:
    """The application for one stored session: with the rules of its own folder and the provider that it has."""
    from counterfoil.stores import open_store

    store = open_store(settings.state_dir)
    try:
        session_id = await find(store)
        summary = await store.summary(session_id)
        own = for_session(load_settings(Path(summary.workspace), flags), flags, summary.provider)
        local = service(own, store)
    except BaseException:
        await store.close()
        raise
    async with local:
        yield local, session_id


def for_session(settings: Settings, flags: Flags, provider: str) -> Settings:
    """`settings` with the session's own provider, where no flag names another.

    A base URL that isn't given by flag is kept only where it was meant for that provider.
    """
    import msgspec

    meant = settings.model.provider or "openai_chat"
    chosen = flags.provider or provider
    base_url = settings.model.base_url if flags.base_url is not None or chosen == meant else ""
    return msgspec.structs.replace(
        settings, model=msgspec.structs.replace(settings.model, provider=chosen, base_url=base_url)
    )


def personal_folder() -> Path:
    """Where the person's own configuration and instructions are."""
    from counterfoil.config import user_folder

    return user_folder(os.environ)


def principal() -> Principal:
    """The person at this terminal: the process's user."""
    from counterfoil.events import Principal

    return Principal(kind="local", name=user_name())


def user_name() -> str:
    """The name of the process's user, or its number where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
