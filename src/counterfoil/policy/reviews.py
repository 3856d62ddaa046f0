"""Which review a call gets, and what follows from what came of it. Values in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from counterfoil.events import Enforcement, Finding, Mode
from counterfoil.identity import ReviewJob
from counterfoil.ports import ReviewRule

Disposition = Literal["go", "warn", "ask", "block"]
"""What follows: nothing, a warning, a person is asked (for a result: it is held), or the call (result) is refused."""

PERMISSION_REFUSALS = 3
"""So many permission reviews of a run that didn't clear, and asks are left to people."""


def rule_for(rules: Iterable[ReviewRule], job: ReviewJob, tool: str) -> ReviewRule | None:
    """The first rule that covers this job and this tool."""
    for rule in rules:
        if job in rule.jobs and any(_names(pattern, tool) for pattern in rule.tools):
            return rule
    return None


def _names(pattern: str, tool: str) -> bool:
    if pattern.endswith("*"):
        return tool.startswith(pattern[:-1])
    return tool == pattern or (pattern.startswith("mcp__") and tool.startswith(pattern + "__"))


def enforcement_of(rule: ReviewRule, mode: Mode) -> Enforcement:
    """Enforced or advisory; in mode `bypass` every review is advisory."""
    return "advisory" if mode == "bypass" else rule.enforcement


def dispose(rule: ReviewRule, finding: Finding, mode: Mode) -> Disposition:
    """What follows from a finding of the jobs `action` and `inbound`. An outage is neither finding nor clearance."""
    if finding == "clear":
        return "go"
    if enforcement_of(rule, mode) == "advisory":
        return _on_failure(rule, "warn") if finding == "failed" and mode != "bypass" else "warn"
    if finding == "failed":
        return _on_failure(rule, "ask")
    if finding == "unresolved":
        return "warn" if rule.on_unresolved == "allow_with_warning" else "ask"
    return "block" if rule.on_concern == "block" else "ask"


def _on_failure(rule: ReviewRule, otherwise: Disposition) -> Disposition:
    if rule.on_checker_failure is None:
        return otherwise
    return "warn" if rule.on_checker_failure == "allow_with_warning" else rule.on_checker_failure


def dispose_permission(rule: ReviewRule, finding: Finding, mode: Mode, *, asked: bool) -> Disposition:
    """What follows from a finding of the job `permission`, where the rules ask (`asked`) or allow.

    `go` answers the ask. Only an enforced clearance does that; everything else leaves it to the person.
    """
    enforced = enforcement_of(rule, mode) == "enforced"
    if not asked:
        return dispose(rule, finding, mode)
    if finding == "clear":
        return "go" if enforced else "ask"
    if finding == "failed" and enforced and rule.on_checker_failure == "block":
        return "block"
    return "ask"


def wants_permission(rule: ReviewRule | None, *, asked: bool, substitution: bool, refusals: int) -> bool:
    """Whether the permission job looks at a call.

    It answers asks that only the shell-substitution floor raised, or that its rule lists by name; an allow only where
    the rule says to double-check; and nothing after `PERMISSION_REFUSALS` refusals or failures in a run.
    """
    if rule is None or refusals >= PERMISSION_REFUSALS:
        return False
    if not asked:
        return rule.double_check
    return substitution or not rule.tools or "*" not in rule.tools


def default_rules(checker: str, enforcement: Enforcement) -> tuple[ReviewRule, ...]:
    """What is reviewed once a checker is configured and nothing else is said."""
    lists: Sequence[tuple[str, tuple[ReviewJob, ...], tuple[str, ...]]] = (
        ("default: commands", ("action", "inbound"), ("Bash", "BashOutput")),
        ("default: edits", ("action",), ("Write", "Edit")),
        ("default: reads", ("inbound",), ("Read", "Grep", "Glob")),
        ("default: network", ("action", "inbound"), ("WebFetch", "mcp__*")),
        ("default: delegation", ("action",), ("Agent", "Parallel", "Team")),
        ("default: substitutions", ("permission",), ("*",)),
    )
    return tuple(
        ReviewRule(name=name, jobs=jobs, tools=tools, checker=checker, enforcement=enforcement, tier="builtin")
        for name, jobs, tools in lists
    )


__all__ = [
    "PERMISSION_REFUSALS",
    "Disposition",
    "default_rules",
    "dispose",
    "dispose_permission",
    "enforcement_of",
    "rule_for",
    "wants_permission",
]
