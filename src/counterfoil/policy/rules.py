"""The grammar of permission rules: `Tool`, `Tool(specifier)`, `mcp__server`; parsed once, faults typed and named."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from counterfoil.errors import ConfigError
from counterfoil.events.base import Value
from counterfoil.policy.patterns import PatternFault, compile_pattern

PATH_TOOLS = frozenset({"Read", "Write", "Edit", "Glob", "Grep"})
Kind = Literal["tool", "command", "path", "domain"]

_TOOL = re.compile(r"[A-Za-z_*][A-Za-z0-9_.*-]*")
_DOMAIN = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_ADDRESS = re.compile(r"\[?[0-9a-f:.]+\]?")


class RuleError(ConfigError):
    """A permission rule can't be understood; a rule that isn't kept would be worse than none."""

    code = "rule"

    def __init__(self, rule: str, fault: str, *, hint: str = "") -> None:
        super().__init__(f"rule {rule!r}: {fault}", hint=hint)
        self.rule = rule
        self.fault = fault


class RuleSource(Value, frozen=True, kw_only=True):
    """Where a rule came from: a tier, and the file and line (or flag, or ask) in it."""

    tier: str
    place: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """As people read it: `user ~/.config/counterfoil/config.toml:12`."""
        where = self.place if self.line is None else f"{self.place}:{self.line}"
        return f"{self.tier} {where}".strip()


class Rule(Value, frozen=True, kw_only=True):
    """One parsed rule. `text` is as written; `specifier` is empty for a rule over the whole tool."""

    text: str
    tool: str
    kind: Kind = "tool"
    specifier: str = ""
    source: RuleSource | None = None

    def __str__(self) -> str:
        """The rule and where it came from, as reasons name it."""
        return self.text if self.source is None else f"{self.text} ({self.source})"

    def names(self, tool: str) -> bool:
        """Does the part before the parentheses name `tool`? An MCP server's name covers its tools."""
        if self.tool == tool:
            return True
        if "*" in self.tool:
            return fnmatchcase(tool, self.tool)
        return self.tool.startswith("mcp__") and tool.startswith(f"{self.tool}__")


class Rules(Value, frozen=True, kw_only=True):
    """The three lists. A plain string is parsed when the lists are made: `RuleError` where it can't be."""

    deny: tuple[str | Rule, ...] = ()
    ask: tuple[str | Rule, ...] = ()
    allow: tuple[str | Rule, ...] = ()

    def __post_init__(self) -> None:
        """Nothing that can't be kept is taken."""
        for rule in (*self.deny, *self.ask, *self.allow):
            if isinstance(rule, str):
                parse_rule(rule)


def parse_rule(text: str, source: RuleSource | None = None) -> Rule:
    """The rule that `text` says. Raises `RuleError`, which names the rule and what is wrong with it."""
    name, bracket, rest = text.partition("(")
    if not _TOOL.fullmatch(name):
        raise RuleError(text, f"{name!r} is not a tool name", hint="like 'Bash', 'Read(src/**)' or 'mcp__server__*'")
    if not bracket:
        if ")" in text:
            raise RuleError(text, "a closing parenthesis without an opening one", hint="write 'Tool(specifier)'")
        return Rule(text=text, tool=name, source=source)
    if not rest.endswith(")"):
        raise RuleError(text, "the closing parenthesis is missing at the end", hint="write 'Tool(specifier)'")
    specifier = rest[:-1]
    kind = _kind(text, name)
    if not specifier.strip():
        raise RuleError(text, "the specifier is empty", hint=f"write {name!r} for the whole tool")
    if any(ord(c) < 32 or ord(c) == 127 or c == "\ue000" for c in specifier):
        raise RuleError(text, "the specifier holds a control character", hint="write it without")
    return Rule(text=text, tool=name, kind=kind, specifier=_CHECKS[kind](text, specifier), source=source)


def _kind(text: str, tool: str) -> Kind:
    if tool == "Bash":
        return "command"
    if tool in PATH_TOOLS:
        return "path"
    if tool == "WebFetch":
        return "domain"
    if tool.startswith("mcp__"):
        raise RuleError(text, "rules over MCP tools take no specifier", hint=f"write {tool!r}")
    raise RuleError(text, f"{tool!r} takes no specifier that is known", hint=f"write {tool!r} for the whole tool")


def _command(text: str, specifier: str) -> str:
    try:
        compile_pattern(specifier)
    except PatternFault as fault:
        raise RuleError(text, str(fault), hint="write it as the command is typed, like 'Bash(git log *)'") from None
    return specifier


def _path(text: str, specifier: str) -> str:
    if specifier.startswith("!"):
        raise RuleError(text, "a path can't be negated", hint="use the other list: deny wins over allow")
    if specifier.startswith("#"):
        raise RuleError(text, "a path that begins with # names nothing", hint=r"write \#")
    if ".." in specifier.split("/"):
        raise RuleError(text, "a path can't hold `..`", hint="write it from `~/`, `//` or the workspace's root `/`")
    if specifier.startswith("~") and not specifier.startswith("~/"):
        raise RuleError(text, "only one's own home folder can be named", hint="write `~/…`, or `//` and the whole path")
    try:
        _spec_compiles(specifier)
    except ValueError as fault:
        raise RuleError(text, f"not a gitignore pattern: {fault}", hint="like 'Read(src/**/*.py)'") from None
    return specifier


def _spec_compiles(specifier: str) -> None:
    from pathspec import GitIgnoreSpec

    GitIgnoreSpec.from_lines([specifier.lstrip("~")])


def _domain(text: str, specifier: str) -> str:
    prefix, colon, host = specifier.partition(":")
    if not colon or prefix != "domain":
        raise RuleError(text, "WebFetch takes `domain:`", hint="like 'WebFetch(domain:example.com)'")
    host = host.strip().casefold().rstrip(".")
    if not (_DOMAIN.fullmatch(host) or _ADDRESS.fullmatch(host) or host == "*"):
        raise RuleError(text, f"{host!r} is not a domain", hint="a host name alone: 'example.com' or '*.example.com'")
    return host


_CHECKS = {"command": _command, "path": _path, "domain": _domain}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Rule:
    return parse_rule(text)


def as_rules(rules: tuple[str | Rule, ...]) -> tuple[Rule, ...]:
    """Each as a parsed rule."""
    return tuple(_parsed(rule) if isinstance(rule, str) else rule for rule in rules)


__all__ = ["PATH_TOOLS", "Rule", "RuleError", "RuleSource", "Rules", "as_rules", "parse_rule"]
