"""May this call run with these arguments? One function that takes values and returns a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from counterfoil.events import Mode
from counterfoil.events.base import Value
from counterfoil.policy.paths import Place, path_rule_matches
from counterfoil.policy.rules import Rule, RuleError, Rules, RuleSource, as_rules, parse_rule
from counterfoil.policy.ruling import Bench, Part, Verdict, bench, heaviest, judge_path, part, rule_named
from counterfoil.ports import Targets

EDIT_TOOLS = frozenset({"Write", "Edit"})
HARMLESS = frozenset({"TodoWrite", "BashOutput", "KillShell"})
"""Tools whose only effect is on the session itself."""
PRESENT_PLAN = "PresentPlan"
"""Asks to leave plan mode: no rule, grant or hook answers that, only a person."""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision is about. `links`: what the paths of a command line (`shell_paths`) resolve to."""

    tool: str
    read_only: bool
    targets: Targets
    links: Mapping[str, str] = {}


class Decision(Value, frozen=True, kw_only=True):
    """The answer, why, the rule that decided where one did, and the verdict on each part of the call."""

    verdict: Verdict
    reason: str
    rule: str | None = None
    parts: tuple[Part, ...] = ()

    @property
    def firm(self) -> bool:
        """Is it asked by a rule, over a path that is always asked about, or because what would run can't be seen?

        Then a hook can't answer it: that could hide what a rule denies.
        """
        asked = [p for p in self.parts if p.verdict == "ask"]
        return self.rule is not None or any(p.rule is not None or p.kind in ("path", "plan", "opaque") for p in asked)

    @property
    def only_substitution(self) -> bool:
        """Is it asked for nothing but a substitution, all of whose commands are allowed?"""
        asked = [p for p in self.parts if p.verdict != "allow"]
        return self.verdict == "ask" and bool(asked) and all(p.kind == "substitution" for p in asked)


def decide(
    call: CallFacts,
    rules: Rules,
    mode: Mode,
    *,
    place: Place = Place(),  # noqa: B008 (frozen)
    grants: tuple[str | Rule, ...] = (),
) -> Decision:
    """Deny rules first, then ask rules, then what is always asked, then allow rules, then the mode's default.

    `grants` are rules that a person let be learned: allow rules. In mode `dont_ask` whatever would be asked is denied.
    """
    found = _decide(call, bench(rules, grants, mode, place))
    if mode == "dont_ask" and found.verdict == "ask":
        reason = f"{found.reason}; mode dont_ask denies what would be asked"
        return Decision(verdict="deny", reason=reason, rule=found.rule, parts=found.parts)
    return found


def _decide(call: CallFacts, on: Bench) -> Decision:
    if rule := rule_named(call.tool, on.deny):
        return _of(part("tool", "deny", f"denied by rule {rule}", "", rule))
    parts = _parts(call, on)
    if denied := heaviest(parts, "deny"):
        return _of(denied, parts)
    if on.mode == "plan" and call.tool == PRESENT_PLAN:
        return _of(part("plan", "ask", "leave plan mode and carry out this plan", ""))
    if on.mode == "plan" and not call.read_only and call.tool not in HARMLESS:
        return _of(part("tool", "deny", "mode plan allows read-only tools alone", ""), parts)
    if rule := rule_named(call.tool, on.ask):
        return _of(part("tool", "ask", f"rule {rule} asks", "", rule), parts)
    if asked := heaviest(parts, "ask"):
        return _of(asked, parts)
    if on.bypass:
        return Decision(verdict="allow", reason="mode bypass", parts=tuple(parts))
    if rule := rule_named(call.tool, on.allow):
        return _of(part("tool", "allow", f"allowed by rule {rule}", "", rule), parts)
    if parts:
        return _of(parts[0], parts)
    return _by_mode(call, on.mode)


def _of(decided: Part, parts: list[Part] | None = None) -> Decision:
    return Decision(verdict=decided.verdict, reason=decided.reason, rule=decided.rule, parts=tuple(parts or (decided,)))


def _parts(call: CallFacts, on: Bench) -> list[Part]:
    """The verdict on each part that something speaks about."""
    targets = call.targets
    found = [judge_path(call.tool, use, on) for use in targets.paths]
    parts = [p for p in found if p is not None]
    if len(parts) < len(found):
        parts = [p for p in parts if p.verdict != "allow"]
    if targets.domain is not None:
        parts += _domain(call.tool, targets.domain, on)
    if targets.command is not None:
        from counterfoil.policy.bash import judge_command

        parts += judge_command(targets.command, on, call.links)
    return parts


def _domain(tool: str, domain: str, on: Bench) -> list[Part]:
    host = domain.casefold().rstrip(".")
    lists: tuple[tuple[tuple[Rule, ...], Verdict, str], ...] = (
        (on.deny, "deny", "denied by rule"),
        (on.ask, "ask", "asked by rule"),
        (on.allow, "allow", "allowed by rule"),
    )
    for rules, verdict, why in lists:
        for rule in rules:
            if rule.kind == "domain" and rule.tool == tool and _covers(rule.specifier, host):
                return [part("domain", verdict, f"{why} {rule}", domain, rule)]
    if on.bypass or rule_named(tool, on.allow):
        return []
    return [part("domain", "ask", f"reaches {domain} over the network", "")]


def _covers(pattern: str, host: str) -> bool:
    if pattern.startswith("*"):
        return host.endswith(pattern[1:]) and host != pattern[1:]
    return host == pattern


def _by_mode(call: CallFacts, mode: Mode) -> Decision:
    if call.tool in HARMLESS or call.tool == PRESENT_PLAN:
        return Decision(verdict="allow", reason="changes nothing outside the session")
    if call.read_only:
        return Decision(verdict="allow", reason="read-only")
    if mode == "accept_edits" and call.tool in EDIT_TOOLS:
        return Decision(verdict="allow", reason="mode accept_edits")
    return Decision(verdict="ask", reason=f"mode {mode} asks before {call.tool}")


def read_denied(rules: Rules, place: Place) -> Callable[[str], bool]:
    """Says for a resolved absolute path whether a rule denies reading it: searches leave such files out."""
    denied = tuple(rule for rule in as_rules(rules.deny) if rule.kind == "path" and rule.tool == "Read")
    return lambda path: any(path_rule_matches(rule, path, place) for rule in denied)


__all__ = [
    "PRESENT_PLAN",
    "CallFacts",
    "Decision",
    "Part",
    "Place",
    "Rule",
    "RuleError",
    "RuleSource",
    "Rules",
    "decide",
    "parse_rule",
    "read_denied",
]
