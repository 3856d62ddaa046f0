"""Rules in the shape in which hooks are offered them and ask for them: `updatedPermissions` of a permission request."""

from __future__ import annotations

from typing import Any

from counterfoil.events.codec import clean_text
from counterfoil.events.visible import visible_line
from counterfoil.ports import HookAnswer

MAX_RULES = 20
MAX_SHOWN = 200


class RulesAnswer(HookAnswer, frozen=True, kw_only=True):
    """An answer to a permission request that would have rules learned as well."""

    rules: tuple[str, ...] = ()


def suggested(rule: str | None) -> list[dict[str, Any]]:
    """What a hook is offered: the one rule that a person could learn from this call."""
    if rule is None:
        return []
    tool, bracket, rest = rule.partition("(")
    found = {"toolName": tool} | ({"ruleContent": rest.removesuffix(")")} if bracket else {})
    return [{"type": "addRules", "rules": [found], "behavior": "allow", "destination": "session"}]


def asked_for(updates: list[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules in `updatedPermissions`; and what in it can't be had here, for people."""
    rules: list[str] = []
    others: list[str] = []
    for update in updates[:MAX_RULES]:
        kind = update.get("type") if isinstance(update, dict) else None
        if kind != "addRules" or update.get("behavior") != "allow":
            others.append(f"`{_short(str(kind))}`" if kind != "addRules" else "rules that don't allow")
            continue
        given = update.get("rules")
        for rule in given if isinstance(given, list) else [given]:
            text = _rule(rule)
            if text is None or len(rules) >= MAX_RULES:
                others.append("a rule that isn't one" if text is None else "more rules")
            else:
                rules.append(text)
        if update.get("destination", "session") != "session":
            others.append(f"the destination {_short(str(update['destination']))}: a rule holds for this session alone")
    if len(updates) > MAX_RULES:
        others.append("more updates")
    return tuple(rules), tuple(dict.fromkeys(others))


def not_learned(rule: str, learnable: str | None) -> str:
    """Why a rule that a hook asks for isn't learned."""
    why = "no rule can be learned from this call" if learnable is None else f"only {_short(learnable)} can be learned"
    return f"the rule {_short(rule)} is not learned: {why}"


def _rule(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if not isinstance(value, dict) or not isinstance(value.get("toolName"), str):
        return None
    content = value.get("ruleContent")
    if content is None:
        return str(value["toolName"])
    return f"{value['toolName']}({content})" if isinstance(content, str) else None


def _short(text: str) -> str:
    return visible_line(clean_text(text))[:MAX_SHOWN]


__all__ = ["RulesAnswer", "asked_for", "not_learned", "suggested"]
