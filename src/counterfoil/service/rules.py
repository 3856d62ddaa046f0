"""The permission rules of the settings, parsed, each with its source, which reasons name."""

from __future__ import annotations

from counterfoil.config import Rule as ConfiguredRule
from counterfoil.config import Settings
from counterfoil.policy.permissions import Rules
from counterfoil.policy.rules import Rule, RuleSource, parse_rule


def rules_of(settings: Settings) -> Rules:
    """All rules that hold with these settings."""
    lists = settings.permissions
    return Rules(
        deny=tuple(map(_parsed, lists.deny)),
        ask=tuple(map(_parsed, lists.ask)),
        allow=tuple(map(_parsed, lists.allow)),
    )


def _parsed(rule: ConfiguredRule) -> Rule:
    source = rule.source
    return parse_rule(rule.pattern, RuleSource(tier=source.tier, place=source.place, line=source.line))
