"""Reviews in a configuration file: `[reviews]` and `[[reviews.rule]]`, of operator and person alone."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from counterfoil.config.values import Problem, ReviewSettings, Source, Tier, TierName
from counterfoil.events import Enforcement
from counterfoil.identity import ReviewJob
from counterfoil.policy.reviews import default_rules
from counterfoil.ports import ReviewRule
from counterfoil.ports.review import Tier as RuleTier

_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*reviews[ \t]*\.[ \t]*rule[ \t]*\]\]", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[[ \t]*reviews[ \t]*\]", re.MULTILINE)
_CHECKER = re.compile(r"[^/\s]+/\S+")
_TIERS: dict[str, RuleTier] = {"operator": "operator", "user": "user"}
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class _Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[reviews.rule]]`: what is reviewed, and what follows. `timeout` is in seconds, `max_input` in characters."""

    name: _Text
    jobs: Annotated[tuple[ReviewJob, ...], msgspec.Meta(min_length=1)]
    tools: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1)]
    checker: str = ""
    enforcement: Enforcement | None = None
    on_concern: Literal["ask", "block"] = "ask"
    on_checker_failure: Literal["block", "ask", "allow_with_warning"] | None = None
    on_unresolved: Literal["ask", "allow_with_warning"] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    max_input: Annotated[int, msgspec.Meta(ge=1_000, le=4_000_000)] = 400_000
    context: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    double_check: bool = False


class ReviewsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[reviews]`: the checker is `provider/model`. `default_mode` is the enforcement where a rule says none."""

    checker: str = ""
    default_mode: Enforcement | None = None
    keep_detail: bool | None = None
    rule: tuple[_Rule, ...] = ()


def read_reviews(tier: TierName, place: str, text: str, value: Any) -> tuple[ReviewsTable | None, list[Problem]]:
    """The `reviews` of the document `text`, and what is wrong with it. A project's is never taken."""
    found = _TABLE.search(text) or _HEADER.search(text)
    line = text.count("\n", 0, found.start()) + 1 if found is not None else None
    source = Source(tier=tier, place=place, line=line)
    if tier not in _TIERS:
        said = "a project's own file can't set reviews: nobody switches off their own guard; it is ignored"
        hint = "set it in your user configuration"
        return None, [Problem(source=source, field="reviews", text=said, hint=hint, fatal=False)]
    try:
        table = msgspec.convert(value, ReviewsTable, strict=True)
    except msgspec.ValidationError as fault:
        return None, [Problem(source=_at(source, text, str(fault)), field="reviews", text=_plain(str(fault)))]
    wrong = [checker for checker in (table.checker, *(r.checker for r in table.rule)) if not _is_checker(checker)]
    if wrong:
        said = f"{wrong[0]!r} is not a checker"
        return None, [Problem(source=source, field="reviews", text=said, hint="write provider/model")]
    unnamed = next((r.name for r in table.rule if not (r.checker or table.checker)), None)
    if unnamed is not None:
        said = f"rule {unnamed!r} has no checker"
        return None, [Problem(source=source, field="reviews", text=said, hint="set reviews.checker, or the rule's own")]
    return table, []


def _is_checker(text: str) -> bool:
    return not text or _CHECKER.fullmatch(text) is not None


def _at(source: Source, text: str, fault: str) -> Source:
    """The line of the rule that a fault is about, where it names one."""
    number = re.search(r"\$\.rule\[(\d+)\]", fault)
    headers = [match.start() for match in _HEADER.finditer(text)]
    if number is None or int(number[1]) >= len(headers):
        return source
    line = text.count("\n", 0, headers[int(number[1])]) + 1
    return msgspec.structs.replace(source, line=line)


def _plain(fault: str) -> str:
    said, _, where = fault.partition(" - at `$.")
    return f"{where.rstrip('`')}: {said[:1].lower() + said[1:]}" if where else said


def merge_reviews(tiers: list[Tier]) -> ReviewSettings:
    """The policies in order: the operator's rules, then the person's, then the defaults of the first checker.

    What the operator says of checker, enforcement and kept detail holds before what the person says: the first rule
    that covers a call holds, so that a later one can't be weaker for it.
    """
    tables = [(tier, tier.reviews) for tier in tiers if isinstance(tier.reviews, ReviewsTable)]
    checker = next((table.checker for _, table in tables if table.checker), "")
    mode = next((table.default_mode for _, table in tables if table.default_mode), None)
    keep = next((table.keep_detail for _, table in tables if table.keep_detail is not None), False)
    rules = [_rule(rule, table, tier, mode) for tier, table in tables for rule in table.rule]
    if checker:
        rules += default_rules(checker, mode or "enforced")
    return ReviewSettings(rules=tuple(rules), keep_detail=keep)


def _rule(rule: _Rule, table: ReviewsTable, tier: Tier, mode: Enforcement | None) -> ReviewRule:
    return ReviewRule(
        name=rule.name,
        jobs=rule.jobs,
        tools=rule.tools,
        checker=rule.checker or table.checker,
        enforcement=rule.enforcement or mode or "enforced",
        on_concern=rule.on_concern,
        on_checker_failure=rule.on_checker_failure,
        on_unresolved=rule.on_unresolved,
        timeout=rule.timeout,
        max_input=rule.max_input,
        context=rule.context,
        double_check=rule.double_check,
        tier=_TIERS[tier.name],
    )
