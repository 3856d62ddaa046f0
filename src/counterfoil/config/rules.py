"""Permission rules as this version has them: a tool name, or a pattern with `*` over tool names."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_*][A-Za-z0-9_.*-]*")


def rule_fault(rule: str) -> tuple[str, str] | None:
    """What is wrong with a rule, and what to do; None for a good one.

    A rule that can't be kept is a fault and never ignored: a deny that isn't kept would be an allow.
    """
    if "(" in rule or ")" in rule:
        name = rule.split("(")[0].strip() or "Tool"
        return (
            f"rule {rule!r}: specifiers in parentheses aren't supported by this version, and are never ignored",
            f"a plain rule is a tool name: {name!r}",
        )
    if not _PLAIN.fullmatch(rule):
        return f"rule {rule!r} is not a tool name", "like 'Bash', 'Read' or 'mcp__server__*'"
    return None
