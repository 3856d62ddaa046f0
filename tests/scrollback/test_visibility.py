"""What is shown under which setting, and the short lines of evidence on a card."""

from __future__ import annotations

from typing import get_args

import pytest

from counterfoil import events as ev
from counterfoil.identity import ToolCallID, review_id
from counterfoil.scrollback import NoticeEntry, entry_shown, hidden_on, severity_of, summaries
from counterfoil.scrollback.views import SEVERITIES, most_severe
from counterfoil.scrollback.visibility import record_words, shown
from tests.scrollback.builders import accepted, asked, record, see, settled

CALL = ToolCallID("call_a")


def reviewed(state: ev.ReviewState, job: str = "action", **fields: object) -> ev.HookRecord:
    review = ev.Review(review_id=review_id(CALL, "action"), job=job, state=state, **fields)  # type: ignore[arg-type]
    return record(review.review_id, review=review).record


@pytest.mark.parametrize("severity", get_args(ev.Severity))
def test_only_what_is_benign_can_be_hidden(severity: ev.Severity) -> None:
    assert shown(severity, "all") and shown(severity, "important") == (severity != "benign")
    seen = see(ev.Notice(severity=severity, code="c", text="t"), record("hook_1", call=None, severity=severity))
    notice, evidence = seen.entries
    assert isinstance(notice, NoticeEntry) and severity_of(notice) == severity_of(evidence) == severity
    for entry in seen.entries:
        assert entry_shown(entry, "important") == (severity != "benign") and entry_shown(entry, "all")
    assert seen.hidden("important") == (2 if severity == "benign" else 0)
    assert seen.counts == {severity: 2}, "hiding drops nothing"


def test_what_is_no_notice_is_always_shown() -> None:
    seen = see(ev.UserPrompt(parts=ev.text_parts("go")), accepted("call_a"))
    assert all(severity_of(entry) is None and entry_shown(entry, "important") for entry in seen.entries)


def test_the_count_of_hidden_ones_follows_the_revisions() -> None:
    events = [accepted("call_a"), record("hook_1", 1, severity="warning"), record("hook_1", 2, severity="benign")]
    assert see(*events).hidden("important") == 1
    assert see(*events, record("hook_1", 3, severity="blocking")).hidden("important") == 0


def test_what_stands_alone_without_identity_or_in_conflict_is_counted_too() -> None:
    events = [record("", 0, severity="benign"), record("", 0, severity="benign", message="other")]
    assert see(*events).counts == {"benign": 2} and see(*events).hidden("important") == 2
    claims = [accepted("call_a"), record("hook_1", severity="benign"), record("hook_1", message="x", severity="benign")]
    assert see(*claims).counts == {"benign": 1, "conflict": 1}, "a conflict is never benign"


def test_severities_are_ranked_and_all_of_them() -> None:
    assert set(SEVERITIES) == set(get_args(ev.Severity))
    assert most_severe(["benign", "blocking", "warning"]) == "blocking"
    assert most_severe([]) is None


def test_a_card_shows_a_short_line_for_each_piece_most_severe_first() -> None:
    events = [record(f"hook_{s}", n, severity=s, message=s) for n, s in enumerate(reversed(SEVERITIES), 1)]
    view = see(accepted("call_a"), *events, asked("ask_1"), settled("ask_1", verdict="deny")).calls[0]
    every = summaries(view, "all")
    assert [s.severity for s in every] == ["conflict", "blocking", "blocking", "warning", "notable", "benign"]
    assert [s.id for s in every][:3] == ["hook_conflict", "hook_blocking", "ask_1"], "equals in the order of events"
    assert [s.severity for s in summaries(view)] == [s.severity for s in every][:-1]
    assert (hidden_on(view, "important"), hidden_on(view, "all")) == (1, 0)
    assert every[2].text == "deny (once) by ann"
    assert view.severity == "conflict"


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (
            reviewed("concern", finding="concern", enforcement="enforced", categories=("exfiltration",)),
            "h: action review concern, enforced, exfiltration",
        ),
        (reviewed("held", "inbound", finding="concern"), "h: inbound review held, advisory, concern"),
        (reviewed("released", finding="concern"), "h: action review released, advisory, concern"),
        (
            reviewed("failed", finding="failed", outage="timeout"),
            "h: action review failed, advisory, checker outage: timeout",
        ),
        (reviewed("asked", finding="failed"), "h: action review asked, advisory, checker outage: unknown"),
        (record("hook_1", message="a\x1b[2J\nb").record, "h: notice: a␛[2J␤b"),
    ],
)
def test_a_review_says_how_it_stands_and_an_outage_is_no_finding(of: ev.HookRecord, words: str) -> None:
    assert record_words(of) == words
