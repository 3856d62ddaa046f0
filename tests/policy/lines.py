"""The table of shell lines, read from its file; and a short way to ask for a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.policy.permissions import CallFacts, Decision, Place, Rules, decide
from counterfoil.ports import Targets

PLACE = Place(workspace="/srv/space", home="/home/me")
_MARKS = {"␊": "\n", "␉": "\t", "␍": "\r", "<NBSP>": "\u00a0"}


class Row(NamedTuple):
    group: str
    rules: Rules
    mode: Any
    verdict: str
    case: str
    command: str
    reason: str


def bash(command: str, rules: Rules, mode: Any = "default", **more: Any) -> Decision:
    facts = CallFacts(tool="Bash", read_only=False, targets=Targets(command=command), links=more.pop("links", {}))
    return decide(facts, rules, mode, place=PLACE, **more)


def rows() -> list[Row]:
    found: list[Row] = []
    group, rules, mode = "", Rules(), "default"
    for line in (Path(__file__).parent / "shell_lines.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            group, _, given = line[3:].partition(": ")
            rules, mode = parse_rules(given.split(";;"))
        elif line.strip() and not line.startswith("#"):
            head, command, reason = line.split("  ::  ")
            verdict, case = head.split()
            for mark, char in _MARKS.items():
                command = command.replace(mark, char)
            found.append(Row(group, rules, mode, verdict, case, command, reason))
    return found


def parse_rules(given: list[str]) -> tuple[Rules, str]:
    """Rules and mode from lines like `deny Bash(rm *)` and `mode plan`."""
    lists: dict[str, list[str]] = {"deny": [], "ask": [], "allow": []}
    mode = "default"
    for each in given:
        kind, _, rule = each.strip().partition(" ")
        if kind == "mode":
            mode = rule
        else:
            lists[kind].append(rule)
    return Rules(**{kind: tuple(rules) for kind, rules in lists.items()}), mode
