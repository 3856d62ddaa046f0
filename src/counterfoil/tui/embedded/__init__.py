"""The server inside the terminal client's own process: the one module that composes the service."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from counterfoil.client.local import LocalClient
from counterfoil.config import NO_FLAGS, Flags, Settings, api_key, find_provider, load, model_name, user_folder
from counterfoil.config import with_choice as with_provider
from counterfoil.errors import CounterfoilError, UsageError
from counterfoil.events import Principal
from counterfoil.service.access import Caller
from counterfoil.service.application import Application
from counterfoil.service.grants import Grants
from counterfoil.service.local import LocalService
from counterfoil.tui.connected import Connected
from counterfoil.tui.embedded import facts
from counterfoil.tui.kept import notices_of, read_kept
from counterfoil.tui.link import Defaults, Fact


def settings_for(workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> Settings:
    """The settings, with provider and model chosen, and a provider that can be asked. Raises `CounterfoilError`."""
    settings = with_provider(load(workspace, env, flags), env)
    api_key(find_provider(settings, settings.model.provider), env)
    model = msgspec.structs.replace(settings.model, name=model_name(settings))
    return msgspec.structs.replace(settings, model=model)


class Embedded(Connected):
    """The link to a service in this process. At its end what asks is parked, and what runs is interrupted."""

    def __init__(self, service: LocalService, workspace: Path) -> None:
        self._app = Application(service, workspace)
        client = LocalClient(self._app, Caller(principal=me()), owns=True, grace=0.0)
        defaults = _defaults(service.settings, workspace)
        super().__init__(client, defaults, place="embedded", state_dir=service.settings.state_dir)
        self._settings = service.settings
        self._workspace = workspace

    @classmethod
    def start(cls, workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> Embedded:
        """Compose the service for a folder. Raises `CounterfoilError`."""
        settings = settings_for(workspace, env, flags)
        provider = find_provider(settings, settings.model.provider)
        script = Path(provider.base_url) if provider.wire == "scripted" else None
        return cls(LocalService(settings, env, script=script, personal_folder=user_folder(env)), workspace)

    async def ended(self) -> None:
        """Wait for the end of the run. Raises what it couldn't record."""
        if self._session is not None:
            await self._app.drivers.ended(self._session)

    async def set_model(self, provider: str, model: str) -> None:
        """See `Link`. Raises `ConfigError` also for a provider whose key isn't there."""
        name = provider or (await self._client.get(self._opened)).provider
        api_key(find_provider(self._settings, name), os.environ)
        await self._client.set_model(self._opened, name, model)

    async def hooks(self) -> list[Fact]:
        """See `Link`."""
        return facts.hooks(self._settings)

    async def rules(self) -> list[Fact]:
        """See `Link`."""
        grants = await self._client.list_grants(self._session) if self._session is not None else ()
        return facts.rules(self._settings, self._workspace, [(g.rule, g.scope) for g in grants])

    async def revoke(self, rule: str) -> None:
        """See `Link`."""
        grants = await self._client.list_grants(self._session) if self._session is not None else ()
        if any(g.rule == rule for g in grants):
            await self._client.revoke_grant(self._opened, rule)
        elif not Grants(self._settings.state_dir).revoke(str(self._workspace), rule):
            raise UsageError(f"rule {rule!r} was not learned here", hint="rules of files are changed in their files")

    async def checkers(self) -> list[Fact]:
        """See `Link`."""
        return facts.checkers(self._settings)

    async def diagnostics(self) -> list[tuple[str, str]]:
        """See `Link`."""
        return facts.diagnostics(self._settings, self._workspace)


def _defaults(settings: Settings, workspace: Path) -> Defaults:
    kept = read_kept(settings.state_dir)
    return Defaults(
        workspace=str(workspace),
        provider=settings.model.provider,
        model=settings.model.name,
        mode=settings.permissions.mode,
        notices=notices_of(kept),
        configured=settings.ui.notices,
        theme="light" if kept.get("theme") == "light" else "dark",
        warnings=tuple(str(problem) for problem in settings.problems),
    )


def me() -> Principal:
    """The person at this terminal: the process's user."""
    try:
        return Principal(kind="local", name=getpass.getuser())
    except (KeyError, OSError):
        return Principal(kind="local", name=str(os.getuid()))


__all__ = ["CounterfoilError", "Embedded", "me", "settings_for"]
