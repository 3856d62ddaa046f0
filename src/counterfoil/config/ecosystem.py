"""The settings files that people have already: JSON with `permissions` and `hooks`, read when compatibility is on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterfoil.config.rules import rule_fault
from counterfoil.config.values import Assignment, Problem, Source, Tier, TierName
from counterfoil.events.codec import loads
from counterfoil.hooks.definition import HookTier
from counterfoil.hooks.parse import parse_json
from counterfoil.identity import bytes_digest
from counterfoil.small_files import read_small

MAX_BYTES = 1_000_000
_MODES = {
    "default": "default",
    "plan": "plan",
    "acceptEdits": "accept_edits",
    "dontAsk": "dont_ask",
    "bypassPermissions": "bypass",
}
_LISTS = ("allow", "ask", "deny")
_TIERS: dict[str, HookTier] = {"user": "user", "project": "project"}


def ecosystem_files(workspace: Path, home: Path) -> list[tuple[TierName, Path]]:
    """Where such settings lie, weakest first."""
    folder = workspace / ".claude"
    return [
        ("user", home / ".claude" / "settings.json"),
        ("project", folder / "settings.json"),
        ("project", folder / "settings.local.json"),
    ]


def read_ecosystem(name: TierName, path: Path) -> Tier:
    """The rules, the mode and the hooks of one settings file. Everything else in it isn't used here."""
    place = str(path)
    try:
        data = read_small(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Tier(name=name, place=place, found=False)
    except OSError as fault:
        return _broken(name, place, f"can't be read: {fault.strerror or type(fault).__name__}")
    if len(data) > MAX_BYTES:
        return _broken(name, place, f"is larger than {MAX_BYTES} bytes")
    try:
        value = loads(data)
    except ValueError as fault:
        return _broken(name, place, f"is not valid JSON: {' '.join(str(fault).split())}")
    if not isinstance(value, dict):
        return _broken(name, place, "is not a JSON object")
    reader = _Reader(name, place)
    reader.permissions(value.get("permissions", {}))
    read = parse_json(value.get("hooks", {}), tier=_TIERS.get(name, "user"), place=place)
    for fatal, text in read.problems:
        reader.problem("", text.removeprefix(f"{place}: "), fatal=fatal)
    return Tier(
        name=name,
        place=place,
        assignments=tuple(reader.assignments),
        problems=tuple(reader.problems),
        hooks=read.definitions,
        digest=bytes_digest("counterfoil/config/v1", data),
    )


def _broken(name: TierName, place: str, text: str) -> Tier:
    return Tier(name=name, place=place, problems=(Problem(source=Source(tier=name, place=place), field="", text=text),))


class _Reader:
    def __init__(self, name: TierName, place: str) -> None:
        self.source = Source(tier=name, place=place)
        self.assignments: list[Assignment] = []
        self.problems: list[Problem] = []

    def problem(self, field: str, text: str, *, fatal: bool) -> None:
        self.problems.append(Problem(source=self.source, field=field, text=text, fatal=fatal))

    def permissions(self, value: Any) -> None:
        if not isinstance(value, dict):
            self.problem("permissions", "must be an object", fatal=True)
            return
        for name in _LISTS:
            self._rules(name, value.get(name, []))
        mode = value.get("defaultMode")
        if mode in _MODES:
            self._assign(("permissions", "mode"), _MODES[mode])
        elif mode is not None:
            self.problem("permissions.defaultMode", f"{mode!r} is no mode here; it is ignored", fatal=False)

    def _rules(self, name: str, value: Any) -> None:
        """A rule that can't be kept is a fault; but an allow is left out, which only makes more be asked."""
        field = f"permissions.{name}"
        if not isinstance(value, list) or not all(isinstance(rule, str) for rule in value):
            self.problem(field, "must be a list of rules", fatal=True)
            return
        kept = []
        for rule in value:
            found = rule_fault(rule)
            if found is None:
                kept.append(rule)
            else:
                ignored = "; it is ignored, and such calls are asked" if name == "allow" else ""
                self.problem(field, f"{found[0]}{ignored}", fatal=name != "allow")
        if kept:
            self._assign(("permissions", name), kept)

    def _assign(self, path: tuple[str, ...], value: object) -> None:
        self.assignments.append(Assignment(path=path, value=value, source=self.source))
