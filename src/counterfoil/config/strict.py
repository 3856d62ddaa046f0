"""What a later tier may not make less strict than an earlier one: the mode, the limits, whose files are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from counterfoil.config.values import Assignment, Problem, Settings, TierName
from counterfoil.events import Limits, Mode

_WITHIN: dict[Mode, frozenset[Mode]] = {
    "bypass": frozenset({"bypass", "accept_edits", "default", "plan", "dont_ask"}),
    "accept_edits": frozenset({"accept_edits", "default", "plan", "dont_ask"}),
    "default": frozenset({"default", "plan", "dont_ask"}),
    "plan": frozenset({"plan"}),
    "dont_ask": frozenset({"dont_ask"}),
}
"""No less strict than each: `plan` may ask and `dont_ask` may change, so neither is within the other."""

_BINDS: dict[TierName, tuple[TierName, ...]] = {
    "user": ("operator",),
    "project": ("operator", "user"),
    "environment": ("operator",),
    "flag": ("operator",),
}
"""By tier, whose values it can't loosen. The environment and the flags are the person's own word, as the file is."""

Values = Mapping[tuple[str, ...], Mapping[TierName, Assignment]]
"""For each setting, what each tier says of it."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator has set: no session of this machine is driven with anything less strict."""

    mode: Mode | None = None
    limits: dict[str, int] = {}

    def within(self, mode: Mode) -> Mode:
        """`mode`, or the operator's where that is stricter."""
        return mode if self.mode is None or mode in _WITHIN[self.mode] else self.mode

    def bounded(self, limits: Limits) -> Limits:
        """`limits`, none of them weaker than the operator's."""
        found = {n: v for n, v in self.limits.items() if _looser_limit(getattr(limits, n), v)}
        return msgspec.structs.replace(limits, **found)


def bounds_of(settings: Settings) -> Bounds:
    """The operator's bounds in these settings."""
    return Bounds(
        mode=next((cast(Mode, a.value) for a in settings.binding if a.path == ("permissions", "mode")), None),
        limits={a.path[1]: cast(int, a.value) for a in settings.binding if a.path[0] == "limits"},
    )


def is_bound(path: tuple[str, ...]) -> bool:
    """Is this a setting of which one value is stricter than another?"""
    return path in (("permissions", "mode"), ("compat", "claude"), ("asks", "timeout")) or path[0] == "limits"


def loosening(assignment: Assignment, said: Mapping[TierName, Assignment]) -> Problem | None:
    """What is wrong where `assignment` would be less strict than what an earlier tier says of the same setting."""
    for tier in _BINDS.get(assignment.source.tier, ()):
        bound = said.get(tier)
        if bound is not None and _looser(assignment.path, assignment.value, bound.value):
            return _problem(assignment, bound)
    return None


def _looser(path: tuple[str, ...], value: object, bound: object) -> bool:
    if path == ("permissions", "mode"):
        return value not in _WITHIN[cast(Mode, bound)]
    if path == ("compat", "claude"):
        return bound is True and value is False
    return _looser_limit(cast(float, value), cast(float, bound))


def _looser_limit(value: float, bound: float) -> bool:
    """Zero is no limit at all."""
    return bound > 0 and (value == 0 or value > bound)


def _problem(assignment: Assignment, bound: Assignment) -> Problem:
    by_flag = assignment.source.tier == "flag"
    shown = _shown(bound.value)
    ignored = "" if by_flag else "; it is ignored"
    return Problem(
        source=assignment.source,
        field=assignment.field,
        text=f"{_shown(assignment.value)} is less strict than {shown}, set in {bound.source}{ignored}",
        hint=f"whoever keeps that file can change it; {shown} holds until then",
        fatal=by_flag,
    )


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def binding(values: Values) -> tuple[Assignment, ...]:
    """What the operator says of settings that have a stricter and a looser."""
    return tuple(said["operator"] for said in values.values() if "operator" in said)
