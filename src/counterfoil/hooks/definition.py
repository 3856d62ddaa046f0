"""A configured hook, and what its matcher and its `if` say about a firing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from counterfoil.errors import ConfigError
from counterfoil.events import Definition
from counterfoil.events.base import Value
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import EDIT_TOOLS, CallFacts, decide
from counterfoil.policy.rules import Rules, parse_rule
from counterfoil.ports import HookCall, HookPhase, PathUse, Targets

HookTier = Literal["operator", "user", "project", "builtin"]
_NAMES = re.compile(r"[A-Za-z0-9_|-]+")


class HookDefinition(Value, frozen=True, kw_only=True):
    """One handler. `kind` says which of `command`, `url`, `entry`, `prompt` is used. `timeout` is in seconds.

    `model` answers a prompt: `provider/model`, or a model of the session's provider; empty: the session's own.
    `condition` is the permission-style rule of `if`. `background` (`async`): it can't decide anything.
    `place` is the file and line that configured it.
    """

    name: str
    tier: HookTier
    phase: HookPhase
    matcher: str = ""
    kind: Literal["command", "http", "python", "prompt"] = "command"
    command: str = ""
    url: str = ""
    headers: dict[str, str] = {}  # noqa: RUF012 - a struct copies its defaults
    entry: str = ""
    prompt: str = ""
    model: str = ""
    timeout: float = 60.0
    condition: str | None = None
    once: bool = False
    background: bool = False
    on_failure: Literal["block", "allow"] = "allow"
    status_message: str = ""
    place: str = ""

    @property
    def record(self) -> Definition:
        """How records name it."""
        return Definition(name=self.name, tier=self.tier)

    @property
    def handler(self) -> tuple[str, str, str, str]:
        """What makes two definitions of one phase the same handler."""
        return self.phase, self.kind, self.command or self.url or self.entry or self.prompt, self.model


WITHOUT_MATCHER: frozenset[str] = frozenset(
    {"UserPromptSubmit", "PostToolBatch", "Stop", "TeammateIdle", "TaskCreated", "TaskCompleted"}
)
"""Phases that have nothing for a matcher to look at: their hooks always fire."""
ABOUT_A_CALL: frozenset[str] = frozenset(
    {"PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure"}
)
"""Phases that `if` can look at."""

Matcher = Callable[[str | None], bool]


def compile_matcher(definition: HookDefinition) -> Matcher:
    """Whether a firing's name matches: all, a list of exact names, or a regular expression over the whole name.

    Raises `ConfigError` where the expression can't be compiled: a hook that silently never runs would be worse.
    """
    matcher = definition.matcher
    if matcher in ("", "*") or definition.phase in WITHOUT_MATCHER:
        return lambda name: True
    if _NAMES.fullmatch(matcher):
        names = frozenset(matcher.split("|"))
        return lambda name: name in names
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(matcher, options)
    except re2.error as fault:
        why = fault.args[0].decode() if fault.args and isinstance(fault.args[0], bytes) else str(fault)
        raise ConfigError(
            f"{definition.place or definition.name}: matcher {matcher!r} is not a regular expression: {why}",
            hint="use exact names joined by `|`, or a regular expression without look-around",
        ) from fault
    return lambda name: name is not None and pattern.fullmatch(name) is not None


def compile_condition(definition: HookDefinition, place: Place) -> Callable[[HookCall], bool]:
    """Whether the `if` rule speaks about the call of a firing. Raises `ConfigError` for a rule that isn't one."""
    if definition.condition is None:
        return lambda call: True
    rules = Rules(deny=(parse_rule(definition.condition),))

    def holds(call: HookCall) -> bool:
        tool = call.payload.get("tool_name")
        if not isinstance(tool, str):
            return False
        facts = CallFacts(tool=tool, read_only=False, targets=call.targets or _targets_in(call.payload))
        return decide(facts, rules, "bypass", place=place).verdict == "deny"

    return holds


def _targets_in(payload: Mapping[str, Any]) -> Targets:
    """What the event itself says that its call touches, where the firing names no targets: by the contract's names."""
    given = payload.get("tool_input")
    if not isinstance(given, Mapping):
        return Targets()
    command, path, url = (given.get(name) for name in ("command", "file_path", "url"))
    if path is None:
        path = given.get("path")
    paths: tuple[PathUse, ...] = ()
    if isinstance(path, str) and "\0" not in path:
        absolute = os.path.normpath(os.path.join(str(payload.get("cwd", "")), path))  # noqa: PTH118
        writes = payload.get("tool_name") in EDIT_TOOLS
        paths = (PathUse(given=absolute, resolved=os.path.realpath(absolute), write=writes),)
    return Targets(
        paths=paths,
        command=command if isinstance(command, str) and payload.get("tool_name") == "Bash" else None,
        domain=_host(url) if isinstance(url, str) else None,
    )


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
