"""Permission rules in configuration: parsed by the one grammar, faults told with what to do."""

from __future__ import annotations

from counterfoil.policy.rules import RuleError, parse_rule


def rule_fault(rule: str) -> tuple[str, str] | None:
    """What is wrong with a rule, and what to do; None for a good one.

    A rule that can't be kept is a fault and never ignored: a deny that isn't kept would be an allow.
    """
    try:
        parse_rule(rule)
    except RuleError as fault:
        return fault.message, fault.hint or "see the page on permissions"
    return None
