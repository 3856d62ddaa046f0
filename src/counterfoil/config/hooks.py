"""Hooks in a configuration file: `[[hooks.PreToolUse]]` tables as definitions, each with its file and line."""

from __future__ import annotations

import re
from typing import Any

from counterfoil.config.values import Problem, Source, TierName
from counterfoil.hooks.definition import HookDefinition, HookTier
from counterfoil.hooks.parse import parse_table

_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*hooks[ \t]*\.[ \t]*[\"']?([A-Za-z]+)[\"']?[ \t]*\]\]", re.MULTILINE)
HOOK_TIERS: dict[str, HookTier] = {"operator": "operator", "user": "user", "project": "project"}


def read_hooks(tier: TierName, place: str, text: str, value: Any) -> tuple[list[HookDefinition], list[Problem]]:
    """The hooks in `value`, the `hooks` of the document `text`; and what is wrong with them."""
    definitions: list[HookDefinition] = []
    problems: list[Problem] = []
    if not isinstance(value, dict):
        return [], [_problem(tier, place, None, "hooks", "must be a table of events", fatal=True)]
    lines = _lines(text)
    for phase, tables in value.items():
        if not isinstance(tables, list):
            problems.append(_problem(tier, place, None, f"hooks.{phase}", "is written as [[hooks.EVENT]]", fatal=True))
            continue
        for n, table in enumerate(tables):
            line = lines.get((phase, n))
            where = place if line is None else f"{place}:{line}"
            read = parse_table(phase, table, tier=HOOK_TIERS.get(tier, "user"), place=where)
            definitions += read.definitions
            problems += [_told(tier, place, line, phase, fatal, said, where) for fatal, said in read.problems]
    return definitions, problems


def _told(tier: TierName, place: str, line: int | None, phase: str, fatal: bool, said: str, where: str) -> Problem:
    return _problem(tier, place, line, f"hooks.{phase}", said.removeprefix(f"{where}: "), fatal=fatal)


def _problem(
    tier: TierName, place: str, line: int | None, field: str, text: str, *, fatal: bool, hint: str = ""
) -> Problem:
    source = Source(tier=tier, place=place, line=line)
    return Problem(source=source, field=field, text=text, hint=hint, fatal=fatal)


def _lines(text: str) -> dict[tuple[str, int], int]:
    """The line of each `[[hooks.EVENT]]` header, by event and number."""
    found: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for match in _HEADER.finditer(text):
        phase = match[1]
        number = counts.get(phase, 0)
        counts[phase] = number + 1
        found[(phase, number)] = text.count("\n", 0, match.start()) + 1
    return found
