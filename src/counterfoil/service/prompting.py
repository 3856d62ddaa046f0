"""Which model a prompt hook asks: the one that it names, else the session's."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from counterfoil.config import WIRES, Settings
from counterfoil.hooks.model import ProviderOf
from counterfoil.ports import ModelSettings, Provider
from counterfoil.state import Meta


def provider_of(settings: Settings, meta: Meta, make: Callable[[Meta], Provider]) -> ProviderOf:
    """What `provider/model` names, where the first part is a provider that is known here; any other name is a model of
    the session's provider. `meta` is looked at when a hook asks: a session may change its model.
    """

    def chosen(named: str) -> tuple[Provider, ModelSettings]:
        provider, slash, model = named.partition("/")
        wanted = meta
        if slash and model and (provider in settings.providers or provider in WIRES):
            wanted = (
                meta if provider == meta.provider else msgspec.structs.replace(meta, provider=provider, base_url="")
            )
        else:
            model = named or meta.model
        return make(wanted), ModelSettings(model=model, max_tokens=settings.model.max_tokens)

    return chosen


__all__ = ["provider_of"]
