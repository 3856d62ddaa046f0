"""`[reviews]`: operator before person, never a project; every fault with its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from counterfoil.config import examine
from counterfoil.config.values import Settings

PAGE = Path(__file__).parents[2] / "docs" / "reviews.md"
MINE = '[reviews]\nchecker = "mine/m"\n\n[[reviews.rule]]\nname = "edits"\njobs = ["action"]\ntools = ["Edit"]\n'


def settings(tmp_path: Path, *, operator: str = "", user: str = "", project: str = "") -> Settings:
    workspace = tmp_path / "w"
    files = {
        tmp_path / "operator.toml": operator,
        tmp_path / "config" / "counterfoil" / "config.toml": user,
        workspace / ".counterfoil" / "config.toml": project,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    env = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "COUNTERFOIL_OPERATOR_CONFIG": str(tmp_path / "operator.toml"),
    }
    return examine(workspace, env)[1]


def test_the_operators_rules_stand_first_then_the_persons_then_the_defaults(tmp_path: Path) -> None:
    theirs = '[reviews]\ndefault_mode = "enforced"\n[[reviews.rule]]\nname = "all"\njobs = ["action"]\ntools = ["*"]\n'
    theirs += 'checker = "theirs/m"\n'
    found = settings(tmp_path, operator=theirs, user=MINE + 'enforcement = "advisory"\n').reviews
    assert [(r.name, r.tier) for r in found.rules[:2]] == [("all", "operator"), ("edits", "user")]
    assert {r.tier for r in found.rules[2:]} == {"builtin"}
    assert {r.checker for r in found.rules[2:]} == {"mine/m"}


def test_the_operators_word_on_checker_and_mode_holds(tmp_path: Path) -> None:
    theirs = '[reviews]\nchecker = "theirs/m"\ndefault_mode = "enforced"\nkeep_detail = false\n'
    mine = '[reviews]\nchecker = "mine/m"\ndefault_mode = "advisory"\nkeep_detail = true\n'
    found = settings(tmp_path, operator=theirs, user=mine).reviews
    assert {(r.checker, r.enforcement) for r in found.rules} == {("theirs/m", "enforced")}
    assert not found.keep_detail


def test_a_project_switches_no_guard_on_or_off_and_that_is_said(tmp_path: Path) -> None:
    found = settings(tmp_path, user=MINE, project='\n[reviews]\nchecker = "evil/m"\ndefault_mode = "advisory"\n')
    assert "evil" not in str(found.reviews)
    (said,) = [p for p in found.problems if p.field == "reviews"]
    assert not said.fatal and str(said).startswith(f"{tmp_path}/w/.counterfoil/config.toml:2: reviews: ")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[reviews]\nchecker = "m"\n', 1, "'m' is not a checker"),
        ("[reviews]\nchekcer = 1\n", 1, "unknown field"),
        ('[reviews]\ndefault_mode = "loud"\n', 1, "default_mode"),
        ('\n\n[[reviews.rule]]\nname = "x"\njobs = ["action"]\ntools = ["*"]\n', 3, "has no checker"),
        (MINE + '[[reviews.rule]]\nname = "x"\njobs = ["acton"]\ntools = ["*"]\n', 8, "rule[1].jobs[0]"),
        (MINE + "timeout = 0\n", 4, "rule[0].timeout"),
        (MINE + "tools = []\n", None, "TOML"),
        ("reviews = 3\n", None, "expected `object`"),
    ],
)
def test_every_fault_names_file_line_and_field(tmp_path: Path, text: str, line: int | None, said: str) -> None:
    (problem,) = settings(tmp_path, user=text).problems
    assert problem.fatal and said.casefold() in str(problem).casefold()
    assert line is None or f"config.toml:{line}:" in str(problem)


def test_without_a_checker_nothing_is_reviewed(tmp_path: Path) -> None:
    assert settings(tmp_path).reviews.rules == ()


def test_the_pages_examples_are_read(tmp_path: Path) -> None:
    whole, scripted = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = settings(tmp_path, user=whole)
    assert found.problems == ()
    assert found.reviews.rules[0].name == "deploys" and len(found.reviews.rules) > 5
    assert settings(tmp_path, user=scripted).reviews.rules
