"""Settings files that people have already: their rules and hooks, when compatibility is on, and trust as for ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterfoil.config.load import examine, fatal
from counterfoil.config.trust import Trust, offer_of
from counterfoil.config.values import Settings

HOOK = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]}


class Place:
    """A home and a workspace."""

    def __init__(self, root: Path, *, compat: bool = True) -> None:
        self.home, self.work = root / "home", root / "work"
        self.work.mkdir()
        config = self.home / ".config" / "counterfoil"
        config.mkdir(parents=True)
        if compat:
            (config / "config.toml").write_text(f'state_dir = "{root}/state"\n\n[compat]\nclaude = true\n')
        self.env = {"HOME": str(self.home), "COUNTERFOIL_OPERATOR_CONFIG": str(root / "none.toml")}

    def write(self, where: str, value: Any) -> None:
        folder = (self.home if where == "user" else self.work) / ".claude"
        folder.mkdir(exist_ok=True)
        name = "settings.local.json" if where == "local" else "settings.json"
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))

    def settings(self) -> Settings:
        return examine(self.work, self.env)[1]


def patterns(rules: Any) -> list[str]:
    return [rule.pattern for rule in rules]


def test_a_persons_rules_mode_and_hooks_are_read_when_it_is_wanted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(
        "user",
        {
            "permissions": {"allow": ["Bash(git *)"], "deny": ["Read(.env)"], "defaultMode": "acceptEdits"},
            "hooks": HOOK,
            "theme": "dark",
        },
    )
    found = place.settings()
    assert patterns(found.permissions.allow) == ["Bash(git *)"] and patterns(found.permissions.deny) == ["Read(.env)"]
    assert found.permissions.mode == "accept_edits"
    assert [(h.tier, h.command) for h in found.hooks] == [("user", "check")]
    assert fatal(found) is None


def test_nothing_of_it_is_read_when_it_is_not_wanted(tmp_path: Path) -> None:
    place = Place(tmp_path, compat=False)
    place.write("user", {"permissions": {"allow": ["Bash"]}, "hooks": HOOK})
    found = place.settings()
    assert found.hooks == () and found.permissions.allow == ()


def test_a_projects_file_can_not_switch_it_on(tmp_path: Path) -> None:
    place = Place(tmp_path, compat=False)
    (place.work / ".counterfoil").mkdir()
    (place.work / ".counterfoil" / "config.toml").write_text("[compat]\nclaude = true\n")
    place.write("user", {"hooks": HOOK})
    assert place.settings().hooks == ()


def test_a_projects_settings_need_trust_and_its_denies_hold_without(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("project", {"permissions": {"allow": ["Bash"], "deny": ["WebFetch"]}, "hooks": HOOK})
    place.write("local", {"permissions": {"allow": ["Edit"]}})
    before = place.settings()
    assert before.hooks == () and before.permissions.allow == () and patterns(before.permissions.deny) == ["WebFetch"]
    read, _ = examine(place.work, place.env)
    offer = offer_of([t for t in read if t.name == "project"], place.work)
    assert offer is not None
    Trust(before.state_dir).give(place.work, offer)
    after = place.settings()
    assert len(after.hooks) == 1 and patterns(after.permissions.allow) == ["Bash", "Edit"]
    place.write("local", {"permissions": {"allow": ["Write"]}})
    assert place.settings().hooks == (), "a change of any of its files asks again"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a JSON object"),
        ({"permissions": {"deny": ["Bash(rm"]}}, "the closing parenthesis is missing"),
        ({"permissions": {"deny": "Bash"}}, "must be a list of rules"),
        ({"hooks": {"PreToolUse": [{"hooks": [{"type": 3, "command": "x"}]}]}}, "can't run here"),
        ({"hooks": {"PreToolUse": [{"hooks": [{"command": ""}]}]}}, "a hook needs its `command`"),
        (
            {"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}]}},
            "regular expression",
        ),
    ],
)
def test_what_can_not_be_kept_is_a_fault_that_names_the_file(tmp_path: Path, value: Any, said: str) -> None:
    place = Place(tmp_path)
    place.write("user", value)
    fault = fatal(place.settings())
    assert fault is not None and said in fault.message and "settings.json" in fault.message


def test_an_allow_rule_that_is_not_known_is_warned_of_and_left_out(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("user", {"permissions": {"allow": ["TodoWrite(x)", "Bash(ls)"]}})
    found = place.settings()
    assert patterns(found.permissions.allow) == ["Bash(ls)"] and fatal(found) is None
    assert any("TodoWrite(x)" in problem.text for problem in found.problems)


def test_a_hook_of_a_type_that_is_not_known_is_warned_of_with_its_line_and_the_others_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    command = '{"type": "command", "command": "check"}'
    hooks = f'[\n{{"hooks": [{command},\n{{"type": "agent", "prompt": "look"}}]}}]'
    place.write("user", f'{{"hooks": {{\n"PreToolUse": {hooks}}}}}')
    found = place.settings()
    assert fatal(found) is None and [h.command for h in found.hooks] == ["check"]
    (problem,) = found.problems
    file = place.home / ".claude" / "settings.json"
    said = "hooks.PreToolUse.hooks: a hook of type 'agent' can't run here: it is left out, and it stops nothing"
    assert str(problem) == f"{file}:4: {said}" and "command, http, python, prompt" in problem.hint


def test_in_our_own_file_such_a_type_is_a_fault(tmp_path: Path) -> None:
    place = Place(tmp_path, compat=False)
    (place.home / ".config" / "counterfoil" / "config.toml").write_text('[[hooks.PreToolUse]]\ntype = "agent"\n')
    fault = fatal(place.settings())
    assert fault is not None and "config.toml:1: hooks.PreToolUse: a hook of type 'agent' can't run here" in str(fault)
