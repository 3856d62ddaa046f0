"""A later tier is never weaker than an earlier one: what it would loosen is named, and the earlier value holds."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest

from counterfoil.config import Bounds, Flags, bounds_of, examine, load, merge, parse_tier
from counterfoil.config.values import TierName
from counterfoil.errors import UsageError
from counterfoil.events import Limits, Mode
from counterfoil.policy.permissions import CallFacts, Rules, decide
from counterfoil.ports import Targets
from tests.config.test_config import Home

MODES: tuple[Mode, ...] = get_args(Mode)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize(("bound", "wanted"), list(itertools.product(MODES, MODES)))
def test_no_mode_that_is_within_another_allows_or_asks_more(bound: Mode, wanted: Mode) -> None:
    """The order says nothing that decisions don't: denied stays denied, and what was asked is never allowed."""
    weight = {"deny": 2, "ask": 1, "allow": 0}
    calls = [
        CallFacts(tool=t, read_only=ro, targets=Targets())
        for t in ("Bash", "Edit", "Read", "mcp__x__y")
        for ro in (True, False)
    ]
    rules = (Rules(), Rules(allow=("Bash", "Edit")), Rules(ask=("Read", "Edit")), Rules(ask=("Bash",), allow=("Edit",)))
    looser = any(
        weight[decide(c, r, wanted).verdict] < weight[decide(c, r, bound).verdict] for c in calls for r in rules
    )
    within = Bounds(mode=bound).within(wanted) == wanted
    assert not (within and looser), f"{wanted} is called as strict as {bound} and allows more"


@pytest.mark.parametrize(
    ("operator", "user", "holds"),
    [
        ("default", "bypass", "default"),
        ("default", "accept_edits", "default"),
        ("default", "plan", "plan"),
        ("accept_edits", "dont_ask", "dont_ask"),
        ("plan", "dont_ask", "plan"),
        ("dont_ask", "plan", "dont_ask"),
        ("bypass", "accept_edits", "accept_edits"),
    ],
)
def test_the_operators_mode_is_not_loosened_by_the_person(home: Home, operator: Mode, user: Mode, holds: Mode) -> None:
    home.operator.write_text(f'[permissions]\nmode = "{operator}"\n')
    home.user.write_text(f'\n[permissions]\nmode = "{user}"\n')
    settings = home.load()
    assert settings.permissions.mode == holds
    said = [str(p) for p in settings.problems]
    expected = f"{home.user}:3: permissions.mode: {user} is less strict than {operator}, set in {home.operator}:2"
    assert said == ([] if holds == user else [f"{expected}; it is ignored"])
    assert str(settings.sources["permissions.mode"]) == str(home.user if holds == user else home.operator) + (
        ":3" if holds == user else ":2"
    )


def test_a_flag_that_would_loosen_it_stops_the_start(home: Home) -> None:
    home.operator.write_text('[permissions]\nmode = "default"\n[limits]\nmax_turns = 5\n')
    with pytest.raises(UsageError, match=r"--mode: permissions.mode: bypass is less strict than default, set in .*:2"):
        home.load(Flags(mode="bypass"))
    for turns in (6, 0):
        with pytest.raises(UsageError, match=r"--max-turns: limits.max_turns: . is less strict than 5"):
            home.load(Flags(max_turns=turns))
    tighter = home.load(Flags(mode="dont_ask", max_turns=4))
    assert (tighter.permissions.mode, tighter.limits.max_turns) == ("dont_ask", 4)


def test_a_person_may_loosen_what_is_their_own_by_a_flag(home: Home) -> None:
    home.user.write_text('[permissions]\nmode = "plan"\n[limits]\nmax_turns = 3\n')
    settings = home.load(Flags(mode="bypass", max_turns=0))
    assert (settings.permissions.mode, settings.limits.max_turns, settings.problems) == ("bypass", 0, ())


def test_a_trusted_project_loosens_neither_the_operators_nor_the_persons_word() -> None:
    def tier(name: TierName, text: str) -> object:
        return parse_tier(name, name, text.encode())

    tiers = [
        tier("operator", '[permissions]\nmode = "accept_edits"\n[limits]\nmax_tool_calls = 9\n'),
        tier("user", '[permissions]\nmode = "plan"\n[limits]\nmax_turns = 7\n'),
        tier("project", '[permissions]\nmode = "accept_edits"\n[limits]\nmax_turns = 8\nmax_tool_calls = 0\n'),
    ]
    settings = merge(tiers, Path("/s"), trust="trusted")  # type: ignore[arg-type]
    assert settings.permissions.mode == "plan"
    assert (settings.limits.max_turns, settings.limits.max_tool_calls) == (7, 9)
    assert [p.field for p in settings.problems] == ["permissions.mode", "limits.max_turns", "limits.max_tool_calls"]
    assert not any(p.fatal for p in settings.problems)


def test_several_files_of_one_tier_are_all_held_to_the_tier_before() -> None:
    tiers = [
        parse_tier("operator", "o", b'[permissions]\nmode = "default"\n'),
        parse_tier("user", "u1", b'[permissions]\nmode = "plan"\n'),
        parse_tier("user", "u2", b'[permissions]\nmode = "default"\n'),
        parse_tier("user", "u3", b'[permissions]\nmode = "bypass"\n'),
    ]
    settings = merge(tiers, Path("/s"))
    assert settings.permissions.mode == "default" and settings.sources["permissions.mode"].place == "u2"
    assert [p.source.place for p in settings.problems] == ["u3"]


def test_what_the_operator_disables_and_denies_and_hooks_stays_whatever_others_say(home: Home) -> None:
    home.operator.write_text(
        '[tools]\ndisabled = ["WebFetch"]\n[permissions]\ndeny = ["Bash(rm *)"]\nask = ["Edit"]\n'
        '[[hooks.PreToolUse]]\ncommand = "guard"\n'
    )
    home.user.write_text("[tools]\ndisabled = []\n[permissions]\ndeny = []\nask = []\n[hooks]\nPreToolUse = []\n")
    settings = home.load(Flags(mode="bypass", allow=("Bash", "Edit")))
    assert settings.tools.disabled == ("WebFetch",)
    assert [r.pattern for r in (*settings.permissions.deny, *settings.permissions.ask)] == ["Bash(rm *)", "Edit"]
    assert [(h.tier, h.command, h.on_failure) for h in settings.hooks] == [("operator", "guard", "block")]


def test_files_that_the_operator_wants_read_are_read(home: Home) -> None:
    """Else a flag would take back their denials."""
    home.operator.write_text("[compat]\nclaude = true\n")
    (home.workspace / ".claude").mkdir()
    (home.workspace / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    home.user.write_text("[compat]\nclaude = false\n")
    settings = home.load()
    assert [r.pattern for r in settings.permissions.deny] == ["Bash"] and settings.compat.claude
    (problem,) = settings.problems
    assert str(problem).startswith(f"{home.user}:2: compat.claude: false is less strict than true, set in")
    _, settings = examine(home.workspace, home.env, Flags(compat_claude=False))
    assert [p.fatal for p in settings.problems] == [False, True]
    assert [r.pattern for r in settings.permissions.deny] == ["Bash"]


def test_a_session_that_is_there_already_is_brought_within_the_bounds(home: Home) -> None:
    home.operator.write_text('[permissions]\nmode = "default"\n[limits]\nmax_turns = 5\nmax_tokens = 0\n')
    bounds = bounds_of(load(home.workspace, home.env))
    assert [bounds.within(mode) for mode in ("bypass", "plan")] == ["default", "plan"]
    assert bounds.bounded(Limits(max_turns=0)) == Limits(max_turns=5)
    assert bounds.bounded(Limits(max_turns=3, max_tokens=0)) == Limits(max_turns=3, max_tokens=0)
    assert Bounds().within("bypass") == "bypass"


def test_an_ask_that_the_operator_lets_run_out_does_not_stay_open_longer(home: Home) -> None:
    home.operator.write_text("[asks]\ntimeout = 60\n")
    for seconds, holds in ((30, 30), (90, 60), (0, 60)):
        home.user.write_text(f"[asks]\ntimeout = {seconds}\n")
        assert home.load().asks.timeout == holds
