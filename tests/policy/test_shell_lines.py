from __future__ import annotations

import pytest

from tests.policy.lines import Row, bash, rows

ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=[f"{r.case if r.case != '-' else r.group}: {r.command!r}" for r in ROWS])
def test_a_line_gets_its_verdict_and_a_reason_that_names_what_decided(row: Row) -> None:
    decision = bash(row.command, row.rules, row.mode)
    reasons = [decision.reason] if row.verdict != "allow" else [p.reason for p in decision.parts] or [decision.reason]
    assert (decision.verdict, row.command) == (row.verdict, row.command), (decision.reason, decision.parts)
    assert any(row.reason in reason for reason in reasons), reasons


def test_the_table_is_as_large_as_promised_and_holds_every_field_case_of_the_shell() -> None:
    assert len(ROWS) >= 150
    assert {r.case for r in ROWS} >= {"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"}
