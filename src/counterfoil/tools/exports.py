"""Assignments in a file of shell exports, read as plain data: nothing in it is run."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

MAX_CHARACTERS = 64 * 1024
MAX_VALUE = 32 * 1024

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_LEAD = re.compile(r"[ \t]*(?:(?:export|declare -x|typeset -x)[ \t]+)?")
_BEGIN = re.compile(rf"({_NAME})=")
_BARE = re.compile(rf"{_NAME}(?=[ \t;\n]|\Z)")
_BETWEEN = re.compile(r"[ \t]+")
_END = re.compile(r"[ \t]*(?:[ \t]#[^\n]*|;[ \t]*)?(?=\n|\Z)")
_EMPTY = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?=\n|\Z)")
_PIECE = re.compile(
    rf"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\`]|\\.)*)\"|\\(?P<escaped>.)|\$(?:(?P<name>{_NAME})|{{(?P<braced>{_NAME})}})"
    r"|(?P<plain>[^\s'\"\\;&|<>()`$*?\[~#]+|(?<!=)[#~])",
    re.DOTALL,
)
_INSIDE = re.compile(
    rf"\\(?P<escaped>[$`\"\\\n])|\$(?:(?P<name>{_NAME})|{{(?P<braced>{_NAME})}})|(?P<plain>[^$])", re.DOTALL
)


class Exports(msgspec.Struct, frozen=True, kw_only=True):
    """What a text assigns, in its order; and the lines that are no plain assignment."""

    values: dict[str, str]
    others: tuple[int, ...] = ()


class _NotPlain(Exception):
    """A shell would have to run something, or would not take it."""


def parse_exports(text: str, known: Mapping[str, str]) -> Exports:
    """Read `export NAME=value`, `NAME=value` and `declare -x NAME="value"`. Quotes mean what they mean in a shell;
    `$NAME` and `${NAME}` are what `known`, or a line before, says. Anything that would have to be run is left out.
    """
    values: dict[str, str] = {}
    others: list[int] = []
    at = 0
    while at < len(text):
        try:
            end, found = _line(text, at, {**known, **values})
            values |= found
        except _NotPlain:
            others.append(text.count("\n", 0, at) + 1)
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
        at = end + 1
    return Exports(values=values, others=tuple(others))


def _line(text: str, at: int, known: dict[str, str]) -> tuple[int, dict[str, str]]:
    """The assignments of the line at `at`, and where it ends. One in quotes may go over several lines."""
    if empty := _EMPTY.match(text, at):
        return empty.end(), {}
    lead = _LEAD.match(text, at)
    assert lead is not None
    found: dict[str, str] = {}
    at = lead.end()
    while True:
        if bare := _BARE.match(text, at):
            if not lead.group().strip():
                raise _NotPlain
            at = bare.end()
        elif begin := _BEGIN.match(text, at):
            at, found[begin[1]] = _value(text, begin.end(), known | found)
        else:
            raise _NotPlain
        if end := _END.match(text, at):
            return end.end(), found
        between = _BETWEEN.match(text, at)
        if between is None:
            raise _NotPlain
        at = between.end()


def _value(text: str, at: int, known: Mapping[str, str]) -> tuple[int, str]:
    value = ""
    while piece := _PIECE.match(text, at):
        at = piece.end()
        if (inside := piece["double"]) is not None:
            value += _expanded(inside, known)
        elif (name := piece["name"] or piece["braced"]) is not None:
            value += known.get(name, "")
        elif piece["escaped"] is not None:
            value += "" if piece["escaped"] == "\n" else piece["escaped"]
        else:
            value += piece["single"] or piece["plain"] or ""
        if len(value) > MAX_VALUE:
            raise _NotPlain
    return at, value


def _expanded(inside: str, known: Mapping[str, str]) -> str:
    """What stands between double quotes."""
    value, at = [], 0
    while at < len(inside):
        piece = _INSIDE.match(inside, at)
        if piece is None:
            raise _NotPlain
        at = piece.end()
        if (name := piece["name"] or piece["braced"]) is not None:
            value.append(known.get(name, ""))
        elif piece["escaped"] is not None:
            value.append("" if piece["escaped"] == "\n" else piece["escaped"])
        else:
            value.append(piece["plain"])
    return "".join(value)


__all__ = ["MAX_CHARACTERS", "Exports", "parse_exports"]
