"""Which files are read, what the environment and the flags add, and settings that are safe to run with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.config.ecosystem import ecosystem_files, read_ecosystem
from counterfoil.config.merge import merge
from counterfoil.config.read import read_tier
from counterfoil.config.rules import rule_fault
from counterfoil.config.trust import Offer, Trust, offer_of
from counterfoil.config.urls import url_fault
from counterfoil.config.values import Assignment, Problem, Settings, Source, Tier, TierName, TrustState
from counterfoil.errors import ConfigError, CounterfoilError, UsageError
from counterfoil.events import Mode

OPERATOR_FILE = Path("/etc/counterfoil/config.toml")
FILE = "config.toml"

_VARIABLES: dict[str, tuple[str, ...]] = {
    "COUNTERFOIL_STATE_DIR": ("state_dir",),
    "COUNTERFOIL_PROVIDER": ("model", "provider"),
    "COUNTERFOIL_MODEL": ("model", "name"),
    "COUNTERFOIL_BASE_URL": ("model", "base_url"),
}


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line sets. None: not given."""

    state_dir: str | None = None
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    script: str | None = None
    mode: Mode | None = None
    max_turns: int | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    compat_claude: bool | None = None


NO_FLAGS = Flags()

_FLAGS: dict[str, tuple[tuple[str, ...], str]] = {
    "state_dir": (("state_dir",), "--state-dir"),
    "provider": (("model", "provider"), "--provider"),
    "model": (("model", "name"), "--model"),
    "base_url": (("model", "base_url"), "--base-url"),
    "script": (("model", "script"), "--script"),
    "mode": (("permissions", "mode"), "--mode"),
    "max_turns": (("limits", "max_turns"), "--max-turns"),
    "allow": (("permissions", "allow"), "--allow"),
    "deny": (("permissions", "deny"), "--deny"),
    "compat_claude": (("compat", "claude"), "--compat-claude/--no-compat-claude"),
}


def files(workspace: Path, env: Mapping[str, str]) -> list[tuple[TierName, Path]]:
    """The configuration files, weakest first, there or not."""
    operator = env.get("COUNTERFOIL_OPERATOR_CONFIG")
    return [
        ("operator", Path(operator) if operator else OPERATOR_FILE),
        ("user", user_folder(env) / FILE),
        ("project", workspace / ".counterfoil" / FILE),
    ]


def tiers(workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> list[Tier]:
    """All tiers, weakest first."""
    read = [_with_paths(_within(read_tier(name, path), workspace)) for name, path in files(workspace, env)]
    read += [_environment(env), _flags(flags)]
    return _with_ecosystem(read, workspace, env) if _wants_ecosystem(read) else read


def _wants_ecosystem(read: list[Tier]) -> bool:
    """What operator, person or flag say of `compat.claude`; a project can't switch it on.

    Denials in such files count where the operator says so, whoever says otherwise.
    """
    said = [a for t in read if t.name != "project" for a in t.assignments if a.path == ("compat", "claude")]
    return any(a.value for a in said if a.source.tier == "operator") or bool(said and said[-1].value)


def _with_ecosystem(read: list[Tier], workspace: Path, env: Mapping[str, str]) -> list[Tier]:
    """The ecosystem's files too, each before the tier of its name: what is written for this program is stronger."""
    found = [_within(read_ecosystem(name, path), workspace) for name, path in ecosystem_files(workspace, _home(env))]
    joined: list[Tier] = []
    for tier in read:
        joined += [other for other in found if other.name == tier.name]
        joined.append(tier)
    return joined


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _within(tier: Tier, workspace: Path) -> Tier:
    """A project's file lies in the project: one that leads out of it is a fault, and nothing of it is taken."""
    if tier.name != "project" or not tier.found:
        return tier
    real, root = os.path.realpath(tier.place), os.path.realpath(workspace)
    if real.startswith(root.rstrip("/") + "/"):
        return tier
    source = Source(tier="project", place=tier.place)
    text, hint = f"leads out of the workspace, to {real}", "put the file itself into the project"
    return Tier(name="project", place=tier.place, problems=(Problem(source=source, field="", text=text, hint=hint),))


def examine(workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> tuple[list[Tier], Settings]:
    """The tiers and their settings, with all problems and none raised."""
    read = tiers(workspace, env, flags)
    state_dir = merge(read, _default_state_dir()).state_dir
    trust, problems = _trust(read, workspace, state_dir)
    settings = merge(read, state_dir, trust=trust)
    unread: list[str] = []
    if not settings.compat.claude:
        unread = [str(path) for _, path in ecosystem_files(workspace, _home(env)) if path.exists()]
    problems += _above(workspace)
    return read, msgspec.structs.replace(settings, unread=tuple(unread), problems=(*settings.problems, *problems))


def _above(workspace: Path) -> list[Problem]:
    """A warning where the repository that the workspace is a folder of has a file of its own, which isn't read."""
    if (workspace / ".git").exists():
        return []
    for folder in workspace.resolve().parents:
        place = folder / ".counterfoil" / FILE
        if place.is_file():
            text, hint = (
                f"isn't read: the workspace is {workspace}",
                f"to have its rules hold, use --workspace {folder}",
            )
            source = Source(tier="project", place=str(place))
            return [Problem(source=source, field="", text=text, hint=hint, fatal=False)]
        if (folder / ".git").exists():
            break
    return []


def _trust(read: list[Tier], workspace: Path, state_dir: Path) -> tuple[TrustState, list[Problem]]:
    """How it stands with the folder. Where what was trusted can't be read, nothing is trusted, and that is said."""
    offer = project_offer(read, workspace)
    if offer is None:
        return "nothing", []
    try:
        return Trust(state_dir).state(workspace, offer), []
    except ConfigError as fault:
        source = Source(tier="default", place=str(state_dir))
        return "untrusted", [Problem(source=source, field="", text=fault.message, hint=fault.hint, fatal=False)]


def project_offer(read: list[Tier], workspace: Path) -> Offer | None:
    """What the project's own files ask to be trusted for, or None."""
    return offer_of([tier for tier in read if tier.name == "project"], workspace)


def load(workspace: Path, env: Mapping[str, str], flags: Flags = NO_FLAGS) -> Settings:
    """The settings for `workspace`. Raises `ConfigError` or `UsageError` where any tier has a fault."""
    _, settings = examine(workspace, env, flags)
    if fault := fatal(settings):
        raise fault
    return settings


def fatal(settings: Settings) -> CounterfoilError | None:
    """The first fault of `settings` as an error that says how many more there are, or None."""
    faults = [problem for problem in settings.problems if problem.fatal]
    if not faults:
        return None
    first, more = faults[0], len(faults) - 1
    hint = first.hint
    if more:
        hint = "; ".join(filter(None, [hint, f"and {more} more: `counterfoil config check` lists all"]))
    kind = UsageError if first.source.tier == "flag" else ConfigError
    return kind(str(first), hint=hint)


def _default_state_dir() -> Path:
    from platformdirs import user_state_path

    return user_state_path("counterfoil", appauthor=False)


def _with_paths(tier: Tier) -> Tier:
    """`state_dir` of a file: `~` is the home folder, and a relative one is a fault."""
    changed: list[Assignment] = []
    problems = list(tier.problems)
    for a in tier.assignments:
        if a.path == ("state_dir",):
            path = Path(str(a.value)).expanduser()
            if not path.is_absolute():
                text = f"{str(a.value)!r} is not an absolute path"
                problems.append(Problem(source=a.source, field=a.field, text=text))
                continue
            a = msgspec.structs.replace(a, value=str(path))
        changed.append(a)
    return msgspec.structs.replace(tier, assignments=tuple(changed), problems=tuple(problems))


def _environment(env: Mapping[str, str]) -> Tier:
    given = {(path, f"${name}"): env[name] for name, path in _VARIABLES.items() if env.get(name)}
    return _tier("environment", "environment", given)


def _flags(flags: Flags) -> Tier:
    given: dict[tuple[tuple[str, ...], str], Any] = {}
    for name, (path, flag) in _FLAGS.items():
        value = getattr(flags, name)
        if value is not None and value != ():
            given[path, flag] = list(value) if isinstance(value, tuple) else value
    return _tier("flag", "command line", given)


def _tier(name: TierName, place: str, given: Mapping[tuple[tuple[str, ...], str], Any]) -> Tier:
    assignments: list[Assignment] = []
    problems: list[Problem] = []
    for (path, where), value in given.items():
        source = Source(tier=name, place=where)
        if fault := _fault(path, value):
            problems.append(Problem(source=source, field="", text=fault[0], hint=fault[1]))
            continue
        if path in (("state_dir",), ("model", "script")):
            value = str(Path(value).expanduser().absolute())
        assignments.append(Assignment(path=path, value=value, source=source))
    return Tier(name=name, place=place, assignments=tuple(assignments), problems=tuple(problems))


def _fault(path: tuple[str, ...], value: Any) -> tuple[str, str] | None:
    if path == ("model", "base_url"):
        return url_fault(value)
    if path == ("limits", "max_turns") and value < 0:
        return f"{value} is less than 0", "0 means no limit"
    if isinstance(value, list):
        return next((found for rule in value if (found := rule_fault(rule))), None)
    if value == "" or "\x00" in str(value):
        return "is empty or no text", ""
    return None


def user_folder(env: Mapping[str, str]) -> Path:
    """Where a person's own configuration is."""
    xdg = env.get("XDG_CONFIG_HOME", "")
    home = Path(env.get("HOME") or "~").expanduser()
    return (Path(xdg) if xdg.startswith("/") else home / ".config") / "counterfoil"
