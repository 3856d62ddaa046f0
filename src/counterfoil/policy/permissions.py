"""May this call run with these arguments? One function that takes values and returns a value."""

from __future__ import annotations

import fnmatch
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from counterfoil.events import Mode
from counterfoil.events.base import Value
from counterfoil.ports import PathUse, Targets

EDIT_TOOLS = frozenset({"Write", "Edit"})
HARMLESS = frozenset({"TodoWrite", "BashOutput", "KillShell"})
"""Tools whose only effect is on the session itself."""

_PROTECTED_FOLDERS = (".git", ".counterfoil", ".claude", ".ssh", ".gnupg", ".aws", ".kube", ".docker")
_PROTECTED_FILES = frozenset(
    {
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".gitconfig",
        ".git-credentials",
    }
)


class Rules(Value, frozen=True, kw_only=True):
    """Plain rules: each is a tool name, or a pattern with `*` over tool names."""

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision is about."""

    tool: str
    read_only: bool
    targets: Targets


class Decision(Value, frozen=True, kw_only=True):
    """The answer, why, and the rule that decided, where one did."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    rule: str | None = None


def decide(call: CallFacts, rules: Rules, mode: Mode) -> Decision:
    """Deny rules first, then ask rules, then what is always asked, then allow rules, then the mode's default.

    In mode `dont_ask` whatever would be asked is denied.
    """
    found = _decide(call, rules, mode)
    if mode == "dont_ask" and found.verdict == "ask":
        return Decision(verdict="deny", reason=f"{found.reason}; mode dont_ask denies what would be asked")
    return found


def _decide(call: CallFacts, rules: Rules, mode: Mode) -> Decision:
    if rule := _match(call.tool, rules.deny):
        return Decision(verdict="deny", reason=f"denied by rule {rule}", rule=rule)
    if mode == "plan" and not call.read_only and call.tool not in HARMLESS:
        return Decision(verdict="deny", reason="mode plan allows read-only tools alone")
    if rule := _match(call.tool, rules.ask):
        return Decision(verdict="ask", reason=f"rule {rule} asks", rule=rule)
    if always := _always_asked(call.targets, outside_too=mode != "bypass"):
        return Decision(verdict="ask", reason=always)
    if mode == "bypass":
        return Decision(verdict="allow", reason="mode bypass")
    if rule := _match(call.tool, rules.allow):
        return Decision(verdict="allow", reason=f"allowed by rule {rule}", rule=rule)
    return _by_mode(call, mode)


def _by_mode(call: CallFacts, mode: Mode) -> Decision:
    if call.tool in HARMLESS:
        return Decision(verdict="allow", reason="changes nothing outside the session")
    if call.targets.domain is not None:
        return Decision(verdict="ask", reason=f"reaches {call.targets.domain} over the network")
    if call.read_only:
        return Decision(verdict="allow", reason="read-only")
    if mode == "accept_edits" and call.tool in EDIT_TOOLS:
        return Decision(verdict="allow", reason="mode accept_edits")
    return Decision(verdict="ask", reason=f"mode {mode} asks before {call.tool}")


def _always_asked(targets: Targets, *, outside_too: bool) -> str | None:
    for use in targets.paths:
        if use.write and _is_protected(use):
            return f"{use.given} is protected: configuration, hooks, start-up files and credentials"
        if outside_too and not use.inside:
            return f"{use.given} is outside the workspace"
    return None


def _is_protected(use: PathUse) -> bool:
    for path in (use.given, use.resolved):
        parts = PurePosixPath(path).parts
        if any(folder in parts for folder in _PROTECTED_FOLDERS) or (parts[-1:] and parts[-1] in _PROTECTED_FILES):
            return True
    return False


def _match(tool: str, patterns: tuple[str, ...]) -> str | None:
    for pattern in patterns:
        if pattern == tool or ("*" in pattern and fnmatch.fnmatchcase(tool, pattern)):
            return pattern
    return None
