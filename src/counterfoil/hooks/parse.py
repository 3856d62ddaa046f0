"""Hook settings, as TOML tables or the ecosystem's JSON block, as definitions. Pure. Nothing is skipped in silence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, get_args

import msgspec

from counterfoil.errors import ConfigError
from counterfoil.hooks.definition import (
    ABOUT_A_CALL,
    WITHOUT_MATCHER,
    HookDefinition,
    HookTier,
    compile_condition,
    compile_matcher,
)
from counterfoil.policy.hook_merge import BLOCKING
from counterfoil.policy.paths import Place
from counterfoil.ports import HookPhase

PHASES: tuple[str, ...] = get_args(HookPhase)
_KINDS = {"command": "command", "http": "url", "python": "python", "prompt": "prompt"}
_ONLY_FOR = {"headers": "http", "model": "prompt"}
_KNOWN = frozenset(
    {"type", "command", "url", "headers", "python", "prompt", "timeout", "if", "once", "async", "on_failure", "name"}
    | {"statusMessage", "status_message", "matcher", "model"}
)


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What a block of settings comes to. A problem names where it is; a fatal one is a configuration error."""

    definitions: tuple[HookDefinition, ...] = ()
    problems: tuple[tuple[bool, str], ...] = ()


def parse_json(block: Any, *, tier: HookTier, place: str) -> Read:
    """The `hooks` object of a settings file: phase → groups of a matcher and its handlers."""
    read = _Reader(tier)
    for phase, groups in _mapping(read, block, f"{place}: hooks").items():
        where = f"{place}: hooks.{phase}"
        if phase not in PHASES:
            read.warn(f"{where}: no such event here; its hooks never run")
            continue
        for n, group in enumerate(_list(read, groups, where)):
            here = f"{where}[{n}]"
            read.group(phase, group, here)
    return read.done()


def parse_table(phase: str, table: Any, *, tier: HookTier, place: str) -> Read:
    """One `[[hooks.PHASE]]` table; `place` is its file and line."""
    read = _Reader(tier)
    if phase not in PHASES:
        read.fail(f"{place}: hooks.{phase}: no such event; the events are {', '.join(PHASES)}")
    else:
        fields = _mapping(read, table, place)
        read.handler(phase, fields, place, fields.get("matcher"))
    return read.done()


class _Reader:
    def __init__(self, tier: HookTier) -> None:
        self._tier = tier
        self._definitions: list[HookDefinition] = []
        self._problems: list[tuple[bool, str]] = []

    def warn(self, text: str) -> None:
        self._problems.append((False, text))

    def fail(self, text: str) -> None:
        self._problems.append((True, text))

    def done(self) -> Read:
        return Read(definitions=tuple(self._definitions), problems=tuple(self._problems))

    def group(self, phase: str, value: Any, place: str) -> None:
        """A matcher and its handlers, as the JSON form has them."""
        if not isinstance(value, Mapping):
            self.fail(f"{place}: must be an object")
            return
        self._unused(place, set(value) - {"matcher", "hooks"})
        if "hooks" not in value:
            self.fail(f"{place}: has no `hooks`: the list of handlers that its matcher is for")
            return
        for k, handler in enumerate(_list(self, value["hooks"], f"{place}.hooks")):
            here = f"{place}.hooks[{k}]"
            if isinstance(handler, Mapping) and "matcher" in handler:
                self.warn(f"{here}: field `matcher` isn't used here; it stands beside `hooks`")
            self.handler(phase, handler, here, value.get("matcher"))

    def handler(self, phase: str, value: Any, place: str, matcher: Any) -> None:
        """One handler; a fault in it makes it a problem and no hook."""
        if not isinstance(value, Mapping):
            self.fail(f"{place}: must be an object")
            return
        kind = value.get("type")
        if kind is None:
            kind = next((k for k, field in _KINDS.items() if field in value), None)
        if not isinstance(kind, str) or kind not in _KINDS:
            self.fail(f"{place}: a hook of type {kind!r:.80} can't run here; the types are {', '.join(_KINDS)}")
            return
        others = {field for k, field in _KINDS.items() if k != kind}
        others |= {field for field, k in _ONLY_FOR.items() if k != kind}
        self._unused(place, {name for name in value if name not in _KNOWN or name in others})
        self._never_looked_at(phase, value, place, matcher)
        fields = value
        given = {"matcher": "" if matcher is None else matcher}
        given |= {
            "kind": kind,
            "entry" if kind == "python" else _KINDS[kind]: fields.get(_KINDS[kind]),
            "timeout": fields.get("timeout", 60),
            "condition": fields.get("if"),
            "once": fields.get("once", False),
            "background": fields.get("async", False),
            "on_failure": fields.get("on_failure", self._default_failure(phase)),
            "status_message": fields.get("status_message", fields.get("statusMessage", "")),
            "headers": fields.get("headers", {}),
            "model": fields.get("model", "") if kind == "prompt" else "",
            "name": fields.get("name") or _name(phase, str(fields.get(_KINDS[kind]))),
        }
        try:
            found = msgspec.convert(given | {"tier": self._tier, "phase": phase, "place": place}, HookDefinition)
        except msgspec.ValidationError as fault:
            self.fail(f"{place}: {fault}")
            return
        if not found.handler[2].strip() or not 0 < found.timeout < math.inf:
            self.fail(f"{place}: a hook needs its `{_KINDS[kind]}`, and a timeout over 0")
            return
        try:
            compile_matcher(found)
            compile_condition(found, Place())
        except ConfigError as fault:
            self.fail(f"{place}: {str(fault).removeprefix(f'{place}: ')}")
            return
        self._definitions.append(found)

    def _unused(self, place: str, names: Collection[str]) -> None:
        for name in sorted(map(str, names)):
            self.warn(f"{place}: field `{name[:80]}` isn't used here")

    def _never_looked_at(self, phase: str, fields: Mapping[str, Any], place: str, matcher: Any) -> None:
        if matcher not in (None, "", "*") and phase in WITHOUT_MATCHER:
            self.warn(f"{place}: field `matcher` isn't used here: {phase} has nothing to match, the hook always fires")
        if fields.get("if") is not None and phase not in ABOUT_A_CALL:
            self.warn(f"{place}: field `if` looks at a call and {phase} is about none: this hook never runs")
        if fields.get("async") is True and fields.get("on_failure") == "block":
            self.warn(f"{place}: field `on_failure` isn't used here: with `async` a hook can't decide anything")

    def _default_failure(self, phase: str) -> str:
        return "block" if self._tier == "operator" and phase in BLOCKING else "allow"


def _name(phase: str, handler: str) -> str:
    first = " ".join(handler.split())
    return f"{phase}: {first if len(first) <= 80 else first[:79] + '…'}"


def _mapping(read: _Reader, value: Any, place: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    read.fail(f"{place}: must be an object")
    return {}


def _list(read: _Reader, value: Any, place: str) -> list[Any]:
    if isinstance(value, list):
        return value
    read.fail(f"{place}: must be a list")
    return []
