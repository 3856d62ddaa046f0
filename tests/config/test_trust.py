"""Trust: what it covers, what a change of any of it does, and files that somebody hostile wrote."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from counterfoil.config import Settings, load
from counterfoil.config.json_lines import json_lines
from counterfoil.config.load import Flags, examine, project_offer
from counterfoil.config.trust import Offer, Trust
from counterfoil.errors import ConfigError


class Project:
    """A workspace with a configuration of its own, and the state directory of a person."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.state = root, root / "work", root / "state"
        self.file = self.work / ".counterfoil/config.toml"
        self.file.parent.mkdir(parents=True)
        (root / "home").mkdir()
        self.env = {
            "HOME": str(root / "home"),
            "COUNTERFOIL_OPERATOR_CONFIG": str(root / "none.toml"),
            "COUNTERFOIL_STATE_DIR": str(self.state),
        }

    def hook(self, command: str) -> None:
        self.file.write_text(f"[[hooks.PreToolUse]]\ncommand = {json.dumps(command)}\n")

    def write(self, name: str, text: str = "exit 0") -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def offer(self) -> Offer:
        offer = project_offer(examine(self.work, self.env)[0], self.work)
        assert offer is not None
        return offer

    def trusted(self) -> None:
        Trust(self.state).give(self.work, self.offer())
        assert self.settings().trust == "trusted"

    def settings(self, flags: Flags | None = None) -> Settings:
        return examine(self.work, self.env, flags or Flags())[1]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "hooks/check.sh",
        "sh ./hooks/check.sh --strict",
        '"$CLAUDE_PROJECT_DIR"/hooks/check.sh',
        "${COUNTERFOIL_PROJECT_DIR}/hooks/check.sh",
        "cd hooks && ./check.sh",
        "true;sh hooks/check.sh>/dev/null",
        "env CHECK=hooks/check.sh sh -c 'sh $CHECK'",
        "sh hooks/../hooks/check.sh",
        "sh 'hooks/check.sh",
    ],
)
def test_a_script_is_covered_however_the_command_names_it(project: Project, command: str) -> None:
    script = project.write("hooks/check.sh")
    project.hook(command)
    project.trusted()
    script.write_text("exit 2")
    after = project.settings()
    assert after.trust == "changed" and after.hooks == ()
    assert any("has changed since it was trusted" in p.text and "counterfoil trust" in p.text for p in after.problems)


def test_a_script_that_comes_goes_or_leads_elsewhere_is_a_change(project: Project) -> None:
    project.hook("sh hooks/check.sh")
    project.trusted()
    script = project.write("hooks/check.sh")
    assert project.settings().trust == "changed", "it is there now"
    project.trusted()
    other = project.write("other.sh", script.read_text())
    script.unlink()
    script.symlink_to(other)
    assert project.settings().trust == "changed", "it leads elsewhere, with the same content"
    project.trusted()
    script.unlink()
    assert project.settings().trust == "changed"
    script.write_text("exit 0")


def test_a_script_behind_a_link_out_of_the_workspace_is_covered(project: Project) -> None:
    outside = project.root / "outside.sh"
    outside.write_text("exit 0")
    (project.work / "check.sh").symlink_to(outside)
    project.hook("./check.sh")
    project.trusted()
    outside.write_text("exit 2")
    assert project.settings().trust == "changed"


def test_a_script_that_would_never_end_or_is_huge_is_no_fault(project: Project) -> None:
    os.mkfifo(project.work / "pipe")
    with (project.work / "huge").open("wb") as file:
        file.truncate(20_000_000_000)
    project.hook("cat pipe huge")
    project.trusted()
    with (project.work / "huge").open("ab") as file:
        file.truncate(20_000_000_001)
    assert project.settings().trust == "changed"


def test_scripts_that_a_script_or_a_runner_takes_up_are_covered_in_turn(project: Project) -> None:
    project.hook("./first.sh && make check && python3 -m tools.sixth")
    files = {
        "first.sh": "#!/bin/sh\n. tools/second.sh\n",
        "tools/second.sh": "python3 -m tools.third\n",
        "tools/third.py": "from tools import fourth\n",
        "tools/fourth.py": "",
        "Makefile": "check:\n\t./fifth\n",
        "tools/sixth/__main__.py": "",
        "fifth": "#!/usr/bin/env node\n",
    }
    for name, text in files.items():
        project.write(name, text)
    for name, text in files.items():
        project.trusted()
        project.write(name, text + "# more\n")
        assert project.settings().trust == "changed", name


def test_files_that_no_hook_names_are_no_change(project: Project) -> None:
    project.hook("sh hooks/check.sh")
    project.write("hooks/check.sh")
    project.trusted()
    project.write("src/main.py", "print()")
    assert project.settings().trust == "trusted"


def test_trust_is_for_the_folder_however_it_is_reached_and_not_for_a_copy(project: Project) -> None:
    project.hook("true")
    project.trusted()
    link = project.root / "link"
    link.symlink_to(project.work)
    assert examine(link, project.env)[1].trust == "trusted"
    copy = project.root / "copy/.counterfoil"
    copy.mkdir(parents=True)
    (copy / "config.toml").write_bytes(project.file.read_bytes())
    assert examine(project.root / "copy", project.env)[1].trust == "untrusted"


def test_denies_and_asks_hold_in_every_state_and_bypass_in_none(project: Project) -> None:
    project.file.write_text('[permissions]\nmode = "bypass"\nallow = ["Bash"]\ndeny = ["Read(.env)"]\nask = ["Edit"]\n')
    before = project.settings()
    assert before.permissions.allow == () and before.trust == "untrusted"
    project.trusted()
    after = project.settings()
    assert [r.pattern for r in after.permissions.allow] == ["Bash"]
    for settings in (before, after):
        assert [r.pattern for r in settings.permissions.deny] == ["Read(.env)"]
        assert [r.pattern for r in settings.permissions.ask] == ["Edit"]
        assert settings.permissions.mode == "default"
    assert [field for field, _ in project.offer().settings] == ["permissions.allow"], "bypass isn't even offered"


def test_a_trust_that_others_could_have_written_counts_for_nothing(project: Project) -> None:
    project.hook("true")
    project.trusted()
    file = project.state / "trust.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o620)
    assert project.settings().hooks == ()


def test_a_state_directory_in_the_workspace_trusts_nothing(project: Project) -> None:
    project.hook("true")
    offer = project.offer()
    inside = project.work / "state"
    inside.mkdir()
    (inside / "trust.json").write_text(json.dumps({os.path.realpath(project.work): offer.digest}))
    (inside / "trust.json").chmod(0o600)
    settings = examine(project.work, project.env, Flags(state_dir=str(inside)))[1]
    assert settings.trust == "untrusted" and settings.hooks == ()
    with pytest.raises(ConfigError, match="lies in the folder"):
        Trust(inside).give(project.work, offer)


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 3}', "[" * 100_000, "\x00"])
def test_a_broken_trust_file_trusts_nothing_and_is_said(project: Project, content: str) -> None:
    project.hook("true")
    project.state.mkdir()
    (project.state / "trust.json").write_text(content)
    (project.state / "trust.json").chmod(0o600)
    settings = project.settings()
    assert settings.trust == "untrusted" and settings.hooks == ()
    assert any("trust.json" in p.text for p in settings.problems)


def test_several_who_trust_at_once_lose_nothing(tmp_path: Path) -> None:
    offer = Offer(digest=Project(tmp_path / "p").write("x").as_posix())  # type: ignore[arg-type]
    folders = [tmp_path / f"f{n}" for n in range(30)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: Trust(tmp_path / "state").give(folder, offer), folders))
    assert set(Trust(tmp_path / "state").folders()) == {os.path.realpath(f) for f in folders}


@pytest.mark.parametrize("name", [".counterfoil/config.toml", ".claude/settings.json", ".claude/settings.local.json"])
def test_a_configuration_that_leads_out_of_the_workspace_is_a_fault(project: Project, name: str) -> None:
    outside = project.root / "outside"
    outside.write_text("{}" if name.endswith("json") else '[permissions]\nallow = ["Bash"]\n')
    path = project.work / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside)
    with pytest.raises(ConfigError, match="leads out of the workspace"):
        load(project.work, project.env, Flags(compat_claude=True))


# ---- the ecosystem's files ----------------------------------------------------------------------------------------


def test_each_rule_and_hook_of_a_json_file_has_its_line_and_what_is_not_used_is_noted(project: Project) -> None:
    project.write(
        ".claude/settings.json",
        '{\n  "model": "x",\n  "permissions": {\n    "deny": [\n      "Bash(rm *)",\n      "Read(.env)"\n    ],\n'
        '    "additionalDirectories": []\n  },\n  "hooks": {"Stop": [\n    {"hooks": [\n'
        '      {"type": "command", "command": "true"}\n    ]}\n  ]}\n}\n',
    )
    settings = project.settings(Flags(compat_claude=True))
    assert [r.source.line for r in settings.permissions.deny] == [5, 6]
    read, _ = examine(project.work, project.env, Flags(compat_claude=True))
    (hook,) = (h for tier in read for h in tier.hooks)
    assert hook.place.endswith("settings.json:12")
    assert [(n.field, n.source.line) for n in settings.notes] == [
        ("model", 2),
        ("permissions.additionalDirectories", 8),
    ]


def test_files_that_are_there_and_not_read_are_named(project: Project) -> None:
    path = project.write(".claude/settings.json", "{}")
    assert project.settings().unread == (str(path),)
    assert project.settings(Flags(compat_claude=True)).unread == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"permissions": {"deny": ["Bash"], "deny": []}}', "the key 'deny' is there twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"permissions": {"deny": [3]}}', "settings.json:1: permissions.deny: a rule must be a string"),
        ('{"permissions": [], "hooks": 3}', "permissions: must be an object"),
        ('{"permissions": {"ask": ["Bash(a\\u0007b)"]}}', "control character"),
        ('{\n"permissions": {"deny":\n ["Read(!x)"]}}', "settings.json:3: permissions.deny: "),
        ('{"hooks": {"Stop": {"a": 1}}}', "hooks.Stop: must be a list"),
        (" " * 1_000_001, "larger than"),
        ('{"a": "\udcff"}', "is not UTF-8"),
    ],
)
def test_a_hostile_json_file_is_a_fault_with_its_place(project: Project, text: str, said: str) -> None:
    path = project.write(".claude/settings.json", "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    (first, *_) = (p for p in project.settings(Flags(compat_claude=True)).problems if p.fatal)
    assert said in str(first)


def test_in_ones_home_folder_the_persons_own_file_is_not_a_projects(project: Project) -> None:
    home = Path(project.env["HOME"])
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text('{"permissions": {"allow": ["Bash(ls)"]}}')
    settings = examine(home, project.env, Flags(compat_claude=True))[1]
    assert [r.source.tier for r in settings.permissions.allow] == ["user"]
    assert settings.trust == "nothing"


def test_json_lines_of_nested_values() -> None:
    found = json_lines('{\n"a": [1,\n{"b": "x, ] }"},\n[]],\n"c\\n": null}')
    assert found == {
        (): 1,
        ("a",): 2,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "b"): 3,
        ("a", 2): 4,
        ("c\n",): 5,
    }
