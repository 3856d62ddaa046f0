"""One configuration file: read, checked field by field, every fault with its file, line and field."""

from __future__ import annotations

import difflib
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.config.lines import key_lines
from counterfoil.config.rules import rule_fault
from counterfoil.config.schema import FileConfig
from counterfoil.config.values import Assignment, Problem, Source, Tier, TierName
from counterfoil.identity import bytes_digest
from counterfoil.small_files import read_small

MAX_BYTES = 1_000_000
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})
_KEY_FIELDS = frozenset({"api_key", "apikey", "key", "token", "secret", "api_token"})
_RULE_LISTS = frozenset({("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny")})


def read_tier(name: TierName, path: Path) -> Tier:
    """The tier in the file at `path`. Faults are in its `problems`; a file that isn't there is an empty tier."""
    data = file_bytes(name, path)
    if isinstance(data, Tier):
        return data
    digest = bytes_digest("counterfoil/config/v1", data)
    return msgspec.structs.replace(parse_tier(name, str(path), data), digest=digest)


def file_bytes(name: TierName, path: Path) -> bytes | Tier:
    """What is in the file at `path`; or the tier that it comes to where it can't be read or isn't there."""
    place = str(path)
    try:
        data = read_small(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Tier(name=name, place=place, found=False)
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        return broken(name, place, None, f"can't be read: {reason}")
    if len(data) > MAX_BYTES:
        return broken(name, place, None, f"is larger than {MAX_BYTES} bytes")
    return data


def parse_tier(name: TierName, place: str, data: bytes) -> Tier:
    """The tier in `data`, the content of the file `place`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        return broken(name, place, data.count(b"\n", 0, fault.start) + 1, "is not UTF-8")
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        message = str(fault)
        found = _AT_LINE.search(message)
        line = int(found[1]) if found else text.count("\n") + 1
        return broken(name, place, line, f"is not valid TOML: {_AT_LINE.sub('', message)}")
    except RecursionError:
        return broken(name, place, None, "is nested too deeply")
    hooks, reviews = tree.pop("hooks", None), tree.pop("reviews", None)
    tier = _Check(name, place, key_lines(text)).tier(tree)
    if reviews is not None:
        from counterfoil.config.reviews import read_reviews

        table, problems = read_reviews(name, place, text, reviews)
        tier = msgspec.structs.replace(tier, reviews=table, problems=(*tier.problems, *problems))
    if hooks is None:
        return tier
    from counterfoil.config.hooks import read_hooks

    definitions, problems = read_hooks(name, place, text, hooks)
    return msgspec.structs.replace(tier, hooks=tuple(definitions), problems=(*tier.problems, *problems))


def broken(name: TierName, place: str, line: int | None, text: str) -> Tier:
    """The tier of a file of which nothing can be taken."""
    source = Source(tier=name, place=place, line=line)
    return Tier(name=name, place=place, problems=(Problem(source=source, field="", text=text),))


class _Check:
    """Walks a parsed document beside the schema."""

    def __init__(self, name: TierName, place: str, lines: Mapping[tuple[str, ...], int]) -> None:
        self.name: TierName = name
        self.place = place
        self.lines = lines
        self.assignments: list[Assignment] = []
        self.problems: list[Problem] = []

    def tier(self, tree: dict[str, Any]) -> Tier:
        self._table((), tree, FileConfig)
        return Tier(
            name=self.name,
            place=self.place,
            assignments=tuple(self.assignments),
            problems=tuple(self.problems),
        )

    def _source(self, path: tuple[str, ...]) -> Source:
        while path and path not in self.lines:
            path = path[:-1]
        return Source(tier=self.name, place=self.place, line=self.lines.get(path))

    def _problem(self, path: tuple[str, ...], text: str, hint: str = "") -> None:
        self.problems.append(Problem(source=self._source(path), field=".".join(path), text=text, hint=hint))

    def _table(self, path: tuple[str, ...], table: dict[str, Any], schema: type[msgspec.Struct]) -> None:
        fields = {f.encode_name: f.type for f in msgspec.structs.fields(schema)}
        for key, value in table.items():
            here = (*path, key)
            if key not in fields:
                self._unknown(here, list(fields))
                continue
            kind = _set_type(fields[key])
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                self._sub_table(here, value, kind)
            elif (entry := _table_of_tables(kind)) is not None:
                for name, sub in self._named(here, value):
                    self._sub_table((*here, name), sub, entry)
            else:
                self._leaf(here, value, kind)

    def _sub_table(self, path: tuple[str, ...], value: object, schema: type[msgspec.Struct]) -> None:
        if isinstance(value, dict):
            self._table(path, value, schema)
        else:
            self._problem(path, f"must be a table, not {_kind_of(value)}")

    def _named(self, path: tuple[str, ...], value: object) -> Iterator[tuple[str, object]]:
        if isinstance(value, dict):
            yield from value.items()
        else:
            self._problem(path, f"must be a table of tables, not {_kind_of(value)}")

    def _unknown(self, path: tuple[str, ...], known: list[str]) -> None:
        key = path[-1]
        if key.lower() in _KEY_FIELDS and path[0] in ("providers", "model"):
            self._problem(
                path,
                "keys are never read from files",
                "put the key in an environment variable and name that in `api_key_env`",
            )
            return
        close = difflib.get_close_matches(key, known, 1, 0.6)
        hint = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(known)}"
        self._problem(path, "is not a known field", hint)

    def _leaf(self, path: tuple[str, ...], value: object, kind: Any) -> None:
        try:
            checked = msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as fault:
            self._problem(path, _plain_fault(str(fault), value), _choices(kind))
            return
        if path in _RULE_LISTS:
            self._rules(path, checked)
            return
        if fault_text := _content_fault(path, checked):
            self._problem(path, *fault_text)
            return
        self.assignments.append(Assignment(path=path, value=checked, source=self._source(path)))

    def _rules(self, path: tuple[str, ...], rules: list[str]) -> None:
        """Each rule with its own line."""
        for n, rule in enumerate(rules):
            source = self._source((*path, f"[{n}]"))
            if fault := rule_fault(rule):
                field = ".".join(path)
                self.problems.append(Problem(source=source, field=field, text=fault[0], hint=fault[1]))
            else:
                self.assignments.append(Assignment(path=path, value=[rule], source=source))


def _set_type(annotation: Any) -> Any:
    """The type of a field without its `UnsetType`."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        rest = [a for a in typing.get_args(annotation) if a is not msgspec.UnsetType]
        return rest[0] if len(rest) == 1 else annotation
    return annotation


def _table_of_tables(kind: Any) -> type[msgspec.Struct] | None:
    if typing.get_origin(kind) is not dict:
        return None
    entry = typing.get_args(kind)[1]
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


def _plain_fault(fault: str, value: object) -> str:
    text = fault.split(" - at `")[0]
    shown = repr(value) if isinstance(value, (str, int, float, bool)) else _kind_of(value)
    text = text[:1].lower() + text[1:]
    if text.startswith("invalid enum value"):
        return f"{shown} is not a choice"
    return f"{text}; it is {shown}" if shown not in text else text


def _choices(kind: Any) -> str:
    args = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
    return f"one of {', '.join(map(str, args))}" if args else ""


def _kind_of(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table"}
    return names.get(type(value), type(value).__name__)


def _content_fault(path: tuple[str, ...], value: object) -> tuple[str, str] | None:
    """What is wrong with a value of the right type, and what to do."""
    if path[-1] == "api_key_env" and not _VARIABLE.fullmatch(str(value)):
        return "is not the name of an environment variable", "the name, like OPENAI_API_KEY, and never the key itself"
    if path[-1] == "headers" and isinstance(value, dict):
        secret = next((h for h in value if h.lower() in _SECRET_HEADERS), None)
        if secret is not None:
            return f"{secret} would hold a key, and keys are never read from files", "name a variable in `api_key_env`"
    return None
