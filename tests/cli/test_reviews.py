"""`counterfoil reviews`, and a checker that is configured as its page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Cli

PAGE = Path(__file__).parents[2] / "docs" / "reviews.md"


@pytest.fixture
def guarded(cli: Cli) -> Cli:
    """A person whose `Write` calls are reviewed by the page's scripted checker, which objects; its words are kept."""
    checker = cli.root / "guard.yaml"
    (script,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    checker.write_text(script)
    config = cli.root / "home" / ".config" / "counterfoil" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(
        f'[providers.guard]\nwire = "scripted"\nbase_url = "{checker}"\n'
        '[reviews]\nchecker = "guard/any"\nkeep_detail = true\n'
    )
    return cli


def write_once(cli: Cli, *more: str) -> Any:
    script = cli.root / "script.json"
    call = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}}
    script.write_text(json.dumps({"turns": [{"calls": [call]}, {"text": "done"}]}))
    return cli("run", "go", "--script", str(script), "--mode", "accept_edits", *more)


def test_a_concern_parks_the_run_and_the_answer_releases_exactly_it(guarded: Cli) -> None:
    assert write_once(guarded, "--ask", "wait").code == 75
    (ask,) = guarded("asks", "--json").json
    assert "action review: concern (authority)" in ask["ask"]["reason"]
    (log,) = guarded("reviews", "list", "last", "--json").json
    assert log["record"]["review"]["state"] == "asked" and log["record"]["review"]["ask_id"] == ask["ask"]["ask_id"]
    assert guarded("answer", ask["ask"]["ask_id"], "allow").code == 0
    resumed = guarded("resume", "last", "--script", str(guarded.root / "script.json"))
    assert resumed.code == 0
    (log,) = guarded("reviews", "list", "last", "--json").json
    assert [state for _, state in log["revisions"]] == ["pending", "concern", "asked", "released"]
    assert (guarded.workspace / "a.txt").read_text() == "x"


def test_show_marks_the_checkers_words_and_ack_is_recorded_once(guarded: Cli) -> None:
    write_once(guarded, "--ask", "deny")
    (log,) = guarded("reviews", "list", "last", "--json").json
    review = log["record"]["hook_id"]
    shown = guarded("reviews", "show", review).out
    assert "UNTRUSTED" in shown and "| concern: Why this?" in shown
    for _ in range(2):
        assert guarded("reviews", "ack", review).code == 0
    assert guarded("reviews", "list", "last").out.count("acknowledged at") == 1
    exported = guarded("sessions", "export", "last").out
    assert exported.count("review.acknowledged") == 1 and "Why this?" not in exported


def test_an_unknown_review_and_a_stale_revision_are_one_clear_line(guarded: Cli) -> None:
    write_once(guarded, "--ask", "deny")
    (log,) = guarded("reviews", "list", "last", "--json").json
    missing = guarded("reviews", "show", "rev_" + "0" * 32)
    stale = guarded("reviews", "ack", log["record"]["hook_id"], "--revision", "1")
    for shown, said in ((missing, "no review rev_"), (stale, "stands at revision")):
        assert shown.code == 1 and said in shown.err and len(shown.err.strip().split("\n")) <= 2


def test_config_check_lists_every_policy_in_force(guarded: Cli) -> None:
    shown = guarded("config", "check").out
    assert "reviews.action" in shown and "guard/any, enforced" in shown


def test_a_checker_that_isnt_configured_is_an_outage_and_no_clearance(guarded: Cli) -> None:
    config = guarded.root / "home" / ".config" / "counterfoil" / "config.toml"
    config.write_text('[reviews]\nchecker = "nobody/m"\n')
    write_once(guarded, "--ask", "deny")
    (log,) = guarded("reviews", "list", "last", "--json").json
    assert (log["record"]["review"]["finding"], log["record"]["review"]["outage"]) == ("failed", "provider_failure")
    assert not list(guarded.root.rglob("a.txt"))
