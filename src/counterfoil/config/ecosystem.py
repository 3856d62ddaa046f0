"""The settings files that people have already: JSON with `permissions` and `hooks`, read when compatibility is on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from counterfoil.config.hooks import HOOK_TIERS
from counterfoil.config.json_lines import JsonPath, json_lines, line_of
from counterfoil.config.read import broken, file_bytes
from counterfoil.config.rules import rule_fault
from counterfoil.config.values import Assignment, Problem, Source, Tier, TierName
from counterfoil.hooks.definition import HookDefinition
from counterfoil.hooks.parse import parse_json
from counterfoil.identity import bytes_digest

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_MODES = {
    "default": "default",
    "plan": "plan",
    "acceptEdits": "accept_edits",
    "dontAsk": "dont_ask",
    "bypassPermissions": "bypass",
}
_LISTS = ("allow", "ask", "deny")
_TYPES: tuple[str, ...] = get_args(next(f.type for f in msgspec.structs.fields(HookDefinition) if f.name == "kind"))
_TYPES_HINT = f"the types that run here are {', '.join(_TYPES)}"


def ecosystem_files(workspace: Path, home: Path) -> list[tuple[TierName, Path]]:
    """Where such settings lie, weakest first. In one's home folder the person's own file is not a project's too."""
    own = home / ".claude" / "settings.json"
    project = [workspace / ".claude" / name for name in ("settings.json", "settings.local.json")]
    if os.path.realpath(own) == os.path.realpath(project[0]):
        project = []
    return [("user", own), *(("project", path) for path in project)]


def read_ecosystem(name: TierName, path: Path) -> Tier:
    """The rules, the mode and the hooks of one settings file. Everything else in it is noted as not used here."""
    data = file_bytes(name, path)
    if isinstance(data, Tier):
        return data
    digest = bytes_digest("counterfoil/config/v1", data)
    return msgspec.structs.replace(parse_ecosystem(name, str(path), data), digest=digest)


def parse_ecosystem(name: TierName, place: str, data: bytes) -> Tier:
    """The tier in `data`, the content of the file `place`."""
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_each_once)
    except UnicodeDecodeError as fault:
        return broken(name, place, data.count(b"\n", 0, fault.start) + 1, "is not UTF-8")
    except json.JSONDecodeError as fault:
        return broken(name, place, fault.lineno, f"is not valid JSON: {fault.msg}")
    except RecursionError:
        return broken(name, place, None, "is nested too deeply")
    except ValueError as fault:
        return broken(name, place, None, f"can't be kept: {fault}")
    if not isinstance(value, dict):
        return broken(name, place, 1, "is not a JSON object")
    return _Reader(name, place, json_lines(text)).tier(value)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that is there twice one value would be lost, and it may be a denial."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice in one object")
        found[key] = value
    return found


class _Reader:
    def __init__(self, name: TierName, place: str, lines: dict[JsonPath, int]) -> None:
        self.name: TierName = name
        self.place = place
        self.lines = lines
        self.assignments: list[Assignment] = []
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self.hooks: list[HookDefinition] = []

    def tier(self, value: dict[str, Any]) -> Tier:
        """The whole file."""
        for key, part in value.items():
            if key == "permissions":
                self._permissions(part)
            elif key == "hooks":
                self._hooks(part)
            elif key != "$schema":
                self._note((key,))
        return Tier(
            name=self.name,
            place=self.place,
            assignments=tuple(self.assignments),
            problems=tuple(self.problems),
            hooks=tuple(self.hooks),
            notes=tuple(self.notes),
        )

    def _source(self, path: JsonPath) -> Source:
        return Source(tier=self.name, place=self.place, line=line_of(self.lines, path))

    def _problem(self, path: JsonPath, text: str, hint: str = "", *, fatal: bool = True) -> None:
        field = ".".join(step for step in path if isinstance(step, str))
        self.problems.append(Problem(source=self._source(path), field=field, text=text, hint=hint, fatal=fatal))

    def _note(self, path: JsonPath) -> None:
        field = ".".join(map(str, path))
        self.notes.append(Problem(source=self._source(path), field=field, text="not used here", fatal=False))

    def _permissions(self, value: Any) -> None:
        if not isinstance(value, dict):
            self._problem(("permissions",), "must be an object")
            return
        for key, part in value.items():
            if key in _LISTS:
                self._rules(key, part)
            elif key == "defaultMode":
                self._mode(part)
            else:
                self._note(("permissions", key))

    def _rules(self, kind: str, value: Any) -> None:
        path: JsonPath = ("permissions", kind)
        if not isinstance(value, list):
            self._problem(path, "must be a list of rules")
            return
        for n, rule in enumerate(value):
            if not isinstance(rule, str):
                self._problem((*path, n), "a rule must be a string")
            elif fault := rule_fault(rule):
                self._bad_rule(kind, (*path, n), *fault)
            else:
                source = self._source((*path, n))
                self.assignments.append(Assignment(path=("permissions", kind), value=[rule], source=source))

    def _bad_rule(self, kind: str, path: JsonPath, text: str, hint: str) -> None:
        """A rule that can't be kept is a fault; but an allow is left out, which only makes more be asked."""
        if kind == "allow":
            self._problem(path, f"{text}; it is ignored, and such calls are asked", hint, fatal=False)
        else:
            self._problem(path, text, hint)

    def _mode(self, value: Any) -> None:
        path: JsonPath = ("permissions", "defaultMode")
        mode = _MODES.get(value) if isinstance(value, str) else None
        if mode is None:
            self._problem(path, f"{value!r:.80} is no mode here; it is ignored", fatal=False)
        else:
            self.assignments.append(Assignment(path=("permissions", "mode"), value=mode, source=self._source(path)))

    def _hooks(self, block: Any) -> None:
        read = parse_json(block, tier=HOOK_TIERS.get(self.name, "user"), place=self.place)
        foreign = dict(_foreign(block))
        for fatal, said in read.problems:
            field, _, text = said.removeprefix(f"{self.place}: ").partition(": ")
            path = _path(field)
            if path in foreign:
                text = f"a hook of type {foreign[path]!r:.80} can't run here: it is left out, and it stops nothing"
                self._problem(path, text, _TYPES_HINT, fatal=False)
            else:
                self._problem(path, text, fatal=fatal)
        for definition in read.definitions:
            path = _path(definition.place.removeprefix(f"{self.place}: "))
            self.hooks.append(msgspec.structs.replace(definition, place=str(self._source(path))))


def _foreign(block: Any) -> Iterator[tuple[JsonPath, str]]:
    """The handlers of a type that only other programs have, and that type: no typo of ours, so no fault."""
    for phase, groups in block.items() if isinstance(block, dict) else ():
        for n, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for k, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                kind = handler.get("type") if isinstance(handler, dict) else None
                if isinstance(kind, str) and kind not in _TYPES:
                    yield ("hooks", phase, n, "hooks", k), kind


def _path(field: str) -> JsonPath:
    """`hooks.PreToolUse[0].hooks[1]` as a path."""
    return tuple(int(number) if number else name for name, number in _STEP.findall(field))


__all__ = ["ecosystem_files", "parse_ecosystem", "read_ecosystem"]
