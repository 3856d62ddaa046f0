"""What a new session begins with: what was asked for, the defaults for the rest, never looser than the operator's."""

from __future__ import annotations

from pathlib import Path

import msgspec

from counterfoil.config import Settings, bounds_of, model_name
from counterfoil.engine import NewSession
from counterfoil.errors import UsageError
from counterfoil.events import Limits, Mode, Principal


def new_session(
    settings: Settings,
    owner: Principal,
    *,
    workspace: str,
    provider: str = "",
    model: str = "",
    mode: Mode | None = None,
    title: str = "",
    limits: Limits | None = None,
) -> NewSession:
    """A session as these settings have it, but for what is given."""
    chosen = provider or settings.model.provider
    return NewSession(
        owner=owner,
        workspace=workspace,
        provider=chosen,
        model=model or model_name(settings),
        base_url=settings.model.base_url if chosen == settings.model.provider else "",
        mode=mode or settings.permissions.mode,
        limits=limits or settings.limits,
        title=title,
    )


MAX_TITLE = 500
MAX_NAME = 500
MAX_NOTE = 20_000
MAX_STEER = 400_000


def short(field: str, text: str, most: int) -> str:
    """`text`, which has `most` characters at most. Raises `UsageError` that names the field."""
    if len(text) > most:
        raise UsageError(f"{field}: has {len(text)} characters", hint=f"{most} at most")
    return text


def bounded(settings: Settings, new: NewSession) -> NewSession:
    """`new` within the operator's bounds.

    Raises `UsageError` for a workspace that isn't a folder here, and for names that are too long.
    """
    short("title", new.title, MAX_TITLE)
    short("provider", new.provider, MAX_NAME)
    short("model", new.model, MAX_NAME)
    place = Path(new.workspace)
    try:
        there = place.is_absolute() and place.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise UsageError(
            f"workspace: {new.workspace!r} is not a folder", hint="name an absolute path of a folder that exists"
        )
    bounds = bounds_of(settings)
    return msgspec.structs.replace(new, mode=bounds.within(new.mode), limits=bounds.bounded(new.limits))
