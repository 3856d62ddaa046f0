"""The application in one process: engine, store, providers and tools, composed from settings."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from counterfoil.config import Settings, api_key, find_provider
from counterfoil.engine import NO_HOOKS, Engine, EngineSettings
from counterfoil.errors import ConfigError
from counterfoil.events import GrantChanged
from counterfoil.identity import SessionID
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import read_denied
from counterfoil.ports import EventStore, HookRunner, Provider, Reviewer, Toolset
from counterfoil.service.grants import Grants, StandingGrant
from counterfoil.service.instructions import personal_instructions, system_prompt
from counterfoil.service.models import context_window
from counterfoil.service.rules import rules_of
from counterfoil.service.stopping import RunningCalls
from counterfoil.state import Meta

if TYPE_CHECKING:
    from counterfoil.hooks import HookDefinition

log = logging.getLogger("counterfoil.service")


class LocalService:
    """Sessions of one state directory. `script` is what the provider `scripted` follows. `hooks` come in addition to
    those of the settings.

    Close it at the end: the store is given up then.
    """

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        *,
        store: EventStore | None = None,
        script: Path | None = None,
        personal_folder: Path | None = None,
        hooks: Sequence[HookDefinition] = (),
    ) -> None:
        self.settings = settings
        self._env = dict(env)
        self._script = script
        self._grants = Grants(settings.state_dir)
        self.calls = RunningCalls()
        self._hooks = (*settings.hooks, *hooks)
        self._personal = personal_instructions(personal_folder) if personal_folder is not None else ""
        self.store = store if store is not None else _open_store(settings.state_dir)
        self.engine = Engine(
            store=self.store,
            provider_for=self._provider,
            toolset_for=self._toolset,
            settings=self._engine_settings(),
            hooks_for=self._hooks_for,
            reviewer_for=self._reviewer_for,
            transcript_dir=settings.state_dir / "transcripts",
            output_dir=settings.state_dir / "outputs",
            environment=self._env,
        )

    def _engine_settings(self) -> EngineSettings:
        model = self.settings.model
        return EngineSettings(
            rules=rules_of(self.settings),
            max_tokens=model.max_tokens,
            effort=model.effort,
            ask_timeout=self.settings.asks.timeout,
            keep_review_detail=self.settings.reviews.keep_detail,
            context_window=context_window,
            system_prompt=lambda meta: system_prompt(meta, personal=self._personal),
            standing_grants=self._standing_grants,
            on_grant=self._learn,
        )

    def _standing_grants(self, meta: Meta) -> tuple[str, ...]:
        """The rules that were learned for good in this workspace. Where they can't be read, none hold: it is asked."""
        try:
            return tuple(grant.rule for grant in self._grants.of(meta.workspace))
        except ConfigError as fault:
            log.warning("%s", fault)
            return ()

    def _learn(self, meta: Meta, change: GrantChanged) -> None:
        """Keep a rule for good. Where that fails it holds for its session alone, and whoever waits goes on."""
        grant = StandingGrant(
            rule=change.rule,
            ask_id=change.ask_id or "",
            session_id=meta.session_id,
            learned_at=self.engine.parts.clock.now(),
        )
        try:
            self._grants.add(meta.workspace, grant)
        except (ConfigError, OSError) as fault:
            log.warning("rule %s is not kept beyond its session: %s", grant.rule, fault)

    def _provider(self, meta: Meta) -> Provider:
        from counterfoil.providers import make_provider

        found = find_provider(self.settings, meta.provider, meta.base_url)
        if found.wire == "scripted":
            from counterfoil.providers.scripted import ScriptedProvider

            script = self._script or Path(found.base_url)
            return ScriptedProvider(script, meta.provider, placeholders={"WORKSPACE": meta.workspace})
        return make_provider(
            found.wire,
            name=meta.provider,
            base_url=found.base_url,
            api_key=api_key(found, self._env),
            headers=found.headers,
            timeout=found.timeout or 120.0,
        )

    def _toolset(self, meta: Meta) -> Toolset:
        from counterfoil.tools import BuiltinTools, ToolOptions
        from counterfoil.tools.variables import SessionVariables

        variables = SessionVariables(self._variables_file(meta), self._env)
        denied = read_denied(self.engine.parts.settings.rules, _place(meta))
        tools = BuiltinTools(
            Path(meta.workspace),
            environment=self._env,
            options=ToolOptions(hidden=lambda path: denied(str(path)), variables=variables.current),
            disabled=self.settings.tools.disabled,
        )
        return self.calls.over(tools)

    def _hooks_for(self, meta: Meta) -> HookRunner:
        """The hooks of a session. Commands start from an environment without secrets, and without our own keys."""
        if not self._hooks:
            return NO_HOOKS
        from counterfoil.hooks import Hooks
        from counterfoil.hooks.model import model_asker
        from counterfoil.service.prompting import provider_of
        from counterfoil.tools.environment import scrubbed
        from counterfoil.tools.variables import SessionVariables

        return Hooks(
            self._hooks,
            cwd=meta.workspace,
            environment=scrubbed(self._env),
            place=_place(meta),
            ask_model=model_asker(provider_of(self.settings, meta, self._provider)),
            variables=SessionVariables(self._variables_file(meta), self._env),
        )

    def _reviewer_for(self, meta: Meta) -> Reviewer | None:
        """What reviews the calls of a session: nothing, where no policy is configured."""
        rules = self.settings.reviews.rules
        if not rules:
            return None
        from counterfoil.reviews import Checker

        denied = read_denied(self.engine.parts.settings.rules, _place(meta))
        return Checker(rules, open_provider=partial(self._checker, meta), place=_place(meta), denied=denied)

    def _checker(self, meta: Meta, checker: str) -> tuple[Provider, str]:
        """The provider of `provider/model`, its own and not the session's, and the model. Raises `ConfigError`."""
        name, _, model = checker.partition("/")
        configured = self.settings.providers.get(name)
        if configured is not None and configured.wire == "scripted":
            from counterfoil.providers.scripted import ScriptedProvider

            return ScriptedProvider(Path(configured.base_url), name), model
        return self._provider(msgspec.structs.replace(meta, provider=name, base_url="")), model

    def forget_files(self, session: SessionID) -> None:
        """Remove what is kept beside the log of a session that is deleted. What can't be removed stays."""
        shutil.rmtree(self.settings.state_dir / "outputs" / session, ignore_errors=True)

    def _variables_file(self, meta: Meta) -> Path:
        """Where a session's variables are kept: with its outputs, so that they go when it is deleted."""
        return self.settings.state_dir / "outputs" / meta.session_id / "variables.json"

    async def close(self) -> None:
        """Give up the store."""
        await self.store.close()

    async def __aenter__(self) -> LocalService:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        await self.close()
        return False


def _place(meta: Meta) -> Place:
    """Where the calls of a session are judged: symlinks resolved."""
    return Place(workspace=os.path.realpath(meta.workspace), home=os.path.realpath(Path.home()))


def _open_store(state_dir: Path) -> EventStore:
    from counterfoil.stores import open_store

    return open_store(state_dir)
