"""The examples of the page for rule authors are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from counterfoil.policy.permissions import CallFacts, Rules, decide
from counterfoil.ports import PathUse, Targets
from tests.policy.lines import PLACE, bash, parse_rules

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
BLOCKS = re.findall(r"```permissions\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def _facts(call: str) -> CallFacts:
    tool, _, rest = call.partition("(")
    given = rest.removesuffix(")")
    if tool.startswith("mcp__"):
        return CallFacts(tool=tool, read_only=False, targets=Targets())
    if tool == "WebFetch":
        return CallFacts(tool=tool, read_only=True, targets=Targets(domain=given))
    path = given if given.startswith("/") else f"{PLACE.workspace}/{given}"
    write = tool in ("Write", "Edit")
    use = PathUse(given=path, resolved=path, write=write, inside=path.startswith(f"{PLACE.workspace}/"))
    return CallFacts(tool=tool, read_only=not write, targets=Targets(paths=(use,)))


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n")[0] for block in BLOCKS])
def test_what_the_page_says_is_what_happens(block: str) -> None:
    lines = block.strip().split("\n")
    rules, mode = parse_rules([line for line in lines if "=>" not in line])
    calls = [line.rsplit(" => ", 1) for line in lines if "=>" in line]
    assert calls
    for call, verdict in calls:
        if call.startswith("> "):
            decision = bash(call[2:], rules, mode)
        else:
            decision = decide(_facts(call), rules, mode, place=PLACE)  # type: ignore[arg-type]
        assert (call, decision.verdict) == (call, verdict), decision.reason


def test_the_page_has_examples_for_every_kind_of_rule() -> None:
    text = "".join(BLOCKS)
    assert len(BLOCKS) >= 8 and all(kind in text for kind in ("Bash(", "Read(", "Edit(", "WebFetch(", "mcp__"))
    assert Rules(deny=tuple(re.findall(r"^deny (.*)$", text, re.MULTILINE))).deny
