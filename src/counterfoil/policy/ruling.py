"""What every part of a decision shares: the compiled lists, one part's verdict, and how a path is ruled."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from counterfoil.events import Mode
from counterfoil.events.base import Value
from counterfoil.policy.paths import Place, is_protected, is_secret, path_rule_matches, reaches_outside
from counterfoil.policy.rules import Rule, Rules, as_rules
from counterfoil.ports import PathUse

Verdict = Literal["allow", "ask", "deny"]
PartKind = Literal[
    "tool", "command", "path", "variable", "domain", "substitution", "wrapper", "opaque", "unruled", "plan"
]
_WEIGHT: dict[str, int] = {"opaque": 1, "wrapper": 2, "unruled": 3, "substitution": 4}
"""Which of several parts that are asked gives the reason: the first of these, after rules, paths and variables."""
MAX_SHOWN = 200
_SHOWN = {"\n": "␊", "\t": "␉", "\ue000": "…"}


class Part(Value, frozen=True, kw_only=True):
    """One part of a call, and what was decided on it: `reason` names the rule, its source and the part itself."""

    text: str
    verdict: Verdict
    reason: str
    rule: str | None = None
    kind: PartKind = "tool"


class Bench(Value, frozen=True, kw_only=True):
    """All that a part is judged by."""

    deny: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    allow: tuple[Rule, ...]
    mode: Mode
    place: Place

    @property
    def bypass(self) -> bool:
        """Is everything allowed that isn't denied, asked by a rule or protected?"""
        return self.mode == "bypass"


@lru_cache(maxsize=64)
def bench(rules: Rules, grants: tuple[str | Rule, ...], mode: Mode, place: Place) -> Bench:
    """The lists, parsed. What was learned counts as an allow rule."""
    return Bench(
        deny=as_rules(rules.deny),
        ask=as_rules(rules.ask),
        allow=as_rules((*rules.allow, *grants)),
        mode=mode,
        place=place,
    )


def heaviest(parts: Iterable[Part], verdict: Verdict) -> Part | None:
    """The part that says most about why a call has this verdict."""
    return min((p for p in parts if p.verdict == verdict), key=lambda p: _WEIGHT.get(p.kind, 0), default=None)


def part(kind: PartKind, verdict: Verdict, why: str, text: str, rule: Rule | None = None) -> Part:
    """A verdict with its reason in one line."""
    shown = visible(text)
    reason = f"{why}: {shown}" if shown else why
    return Part(text=shown, verdict=verdict, reason=reason, rule=None if rule is None else rule.text, kind=kind)


def visible(text: str) -> str:
    """One bounded line in which every character can be seen."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
    return "".join(
        c if c.isprintable() else {"\n": "␊", "\t": "␉", "\ue000": "…"}.get(c, f"<U+{ord(c):04X}>") for c in cut
    )


def rule_named(tool: str, rules: Iterable[Rule]) -> Rule | None:
    """The first rule over the whole tool."""
    return next((rule for rule in rules if rule.kind == "tool" and rule.names(tool)), None)


_WRITERS = ("Edit", "Write")
_SEEN_BY = {"Read": ("Read",), "Grep": ("Read", "Grep"), "Glob": ("Read", "Glob")}
_CHANGED_BY = {"Write": ("Write", "Edit"), "Edit": ("Edit",)}


def _path_tools(tool: str, write: bool, strict: bool) -> tuple[str, ...]:
    """Whose path rules hold for a use by `tool`: denials over writing hold for every tool that writes."""
    if write:
        return _CHANGED_BY.get(tool, ("Edit",)) if strict else _WRITERS
    return _SEEN_BY.get(tool, ("Read",))


def path_rule(tool: str, use: PathUse, rules: Iterable[Rule], place: Place, *, strict: bool = False) -> Rule | None:
    """The first path rule that covers this use. `strict`, for allow: both the path as given and its target."""
    tools = _path_tools(tool, use.write, strict)
    for rule in rules:
        if rule.kind != "path" or rule.tool not in tools:
            continue
        found = (path_rule_matches(rule, path, place, strict=strict) for path in (use.given, use.resolved))
        if all(found) if strict else any(found):
            return rule
    return None


def judge_path(tool: str, use: PathUse, on: Bench) -> Part | None:
    """Deny, ask, protected and outside, in this order; an allow rule over this path; None where nothing speaks."""
    if rule := path_rule(tool, use, on.deny, on.place):
        return part("path", "deny", f"denied by rule {rule}", use.given, rule)
    if rule := path_rule(tool, use, on.ask, on.place):
        return part("path", "ask", f"rule {rule} asks", use.given, rule)
    if use.write and (is_protected(use.given) or is_protected(use.resolved)):
        why = "protected (configuration, hooks, start-up files and credentials)"
        return part("path", "ask", why, use.given)
    if not use.write and not on.bypass and (is_secret(use.given) or is_secret(use.resolved)):
        return part("path", "ask", "protected (credentials)", use.given)
    allowed = path_rule(tool, use, on.allow, on.place, strict=True)
    if not use.inside and not on.bypass and not (allowed and reaches_outside(allowed)):
        return part("path", "ask", "outside the workspace", use.given)
    if allowed:
        return part("path", "allow", f"allowed by rule {allowed}", use.given, allowed)
    return None


__all__ = ["Bench", "Part", "Verdict", "bench", "heaviest", "judge_path", "part", "path_rule", "rule_named", "visible"]
