"""Which provider is meant: a configured name, or one of the wire formats at its own vendor."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import msgspec

from counterfoil.config.merge import WIRES
from counterfoil.config.values import ProviderSettings, Settings
from counterfoil.errors import ConfigError
from counterfoil.providers import KEY_VARIABLES


def find_provider(settings: Settings, name: str, recorded: str = "") -> ProviderSettings:
    """The provider of this name: configured, or a wire format. Raises `ConfigError` for any other.

    `recorded`: the base URL that a session had with it, used where the settings name none for it now. A session that
    began at a local server doesn't go on at the vendor's.
    """
    found = settings.providers.get(name)
    if found is None:
        wire = next((w for w in WIRES if w == name), None)
        if wire is None:
            known = [*settings.providers, *(w for w in WIRES if w not in settings.providers)]
            close = difflib.get_close_matches(name, known, 1, 0.6)
            hint = f"did you mean `{close[0]}`? " if close else ""
            raise ConfigError(f"no provider is called {name!r}", hint=f"{hint}known: {', '.join(known)}")
        found = ProviderSettings(name=name, wire=wire)
    if found.wire == "scripted":
        return _with_script(found, settings.model.script)
    stated = settings.model.base_url if name == settings.model.provider else ""
    return msgspec.structs.replace(found, base_url=stated or recorded or found.base_url)


def _with_script(provider: ProviderSettings, script: str) -> ProviderSettings:
    found = msgspec.structs.replace(provider, base_url=script) if script else provider
    if not found.base_url:
        raise ConfigError("provider 'scripted' needs a script", hint="use --script FILE")
    return found


def chosen_provider(settings: Settings, env: Mapping[str, str]) -> str:
    """The name of the provider to ask: as set, or the one that the environment makes plain.

    A script means `scripted`; a base URL alone means a Chat Completions server; else the one vendor whose key is set.
    Raises `ConfigError` where nothing says.
    """
    if settings.model.provider:
        return settings.model.provider
    if settings.model.script:
        return "scripted"
    if settings.model.base_url:
        return "openai_chat"
    keys = [wire for wire in ("anthropic", "openai") if env.get(KEY_VARIABLES[wire])]
    if len(keys) == 1:
        return keys[0]
    if len(settings.providers) == 1 and not keys:
        return next(iter(settings.providers))
    why = "two keys are set, so which one is meant isn't plain" if keys else "no provider is chosen"
    raise ConfigError(why, hint="use --provider, $COUNTERFOIL_PROVIDER or `provider` in `[model]`")


def with_choice(settings: Settings, env: Mapping[str, str]) -> Settings:
    """`settings` with the provider named. Raises `ConfigError` as `chosen_provider` does."""
    name = chosen_provider(settings, env)
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, provider=name))


def api_key(provider: ProviderSettings, env: Mapping[str, str]) -> str | None:
    """The key from the environment, or None where the server needs none.

    Raises `ConfigError` where a key is needed, that is at the vendor's own address or where the
    configuration names a variable, and isn't there.
    """
    if provider.wire == "scripted":
        return None
    variable = provider.api_key_env or KEY_VARIABLES[provider.wire]
    key = env.get(variable, "").strip()
    if key:
        return key
    if provider.api_key_env or not provider.base_url:
        raise ConfigError(f"provider {provider.name!r} needs a key", hint=f"set ${variable}")
    return None


def model_name(settings: Settings) -> str:
    """The model to ask. Raises `ConfigError` where none is chosen."""
    if settings.model.name:
        return settings.model.name
    if settings.model.provider and find_provider(settings, settings.model.provider).wire == "scripted":
        return "scripted"
    raise ConfigError(
        "no model is chosen",
        hint="use --model, $COUNTERFOIL_MODEL or `name` in `[model]`; `counterfoil models` lists some",
    )
