"""A command line, reduced by a real shell grammar to the simple commands that it would run."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from counterfoil.policy.patterns import UNKNOWN
from counterfoil.policy.shell_crude import crude_commands
from counterfoil.policy.shell_danger import danger, variable_danger
from counterfoil.policy.shell_readers import is_reader
from counterfoil.policy.shell_tree import MAX_TEXT, reduce_line
from counterfoil.policy.shell_values import Flag, Line, Simple
from counterfoil.policy.shell_wrappers import unwrap

MAX_BYTES = 32_768
MAX_PIPES = 400
MAX_COMMANDS = 1000
MAX_WORK = 40_000
MAX_DEPTH = 8
MAX_CACHED = 4096
HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


def analyse(command: str) -> Line:
    """Every simple command that `command` would run, at any depth and behind wrappers, and what can't be reduced.

    Pure and total: text of any kind is answered, in bounded time.
    """
    return _cached(command) if len(command) <= MAX_CACHED else _analyse(command, 0)


@lru_cache(maxsize=256)
def _cached(command: str) -> Line:
    return _analyse(command, 0)


def _analyse(command: str, depth: int) -> Line:
    shown = command[:MAX_TEXT]
    if depth > MAX_DEPTH or len(command.encode("utf-8", "replace")) > MAX_BYTES or _branches(command) > MAX_PIPES:
        return Line(flags=(Flag(kind="opaque", why="too complex to check", text=shown),))
    flags: list[Flag] = []
    if odd := _odd(command):
        flags.append(Flag(kind="opaque", why=f"a character that can't be seen ({odd})", text=shown))
    line = reduce_line(command)
    commands, assignments = list(line.commands), list(line.assignments)
    if any(flag.kind == "opaque" for flag in (*flags, *line.flags)):
        commands += crude_commands(command)
    redirects = list(line.redirects)
    flags += line.flags
    at = work = 0
    while at < len(commands):
        work += len(commands[at].words)
        if at > MAX_COMMANDS or work > MAX_WORK:
            flags.append(Flag(kind="opaque", why="too complex to check", text=shown))
            break
        found = unwrap(commands[at])
        if found is not None:
            commands[at] = _through(commands[at]) if found.through else commands[at]
            flags += found.flags
            nested = list(found.inner)
            assignments += [a for inner in found.inner for a in inner.assignments if a not in commands[at].assignments]
            for text in found.lines:
                line = _analyse(text, depth + 1)
                flags += line.flags
                assignments += line.assignments
                redirects += line.redirects
                commands[at + 1 : at + 1] = [_done(c) for c in line.commands]
                at += len(line.commands)
            commands[at + 1 : at + 1] = nested
        at += 1
    return Line(
        commands=tuple(commands), assignments=tuple(assignments), redirects=tuple(redirects), flags=tuple(flags)
    )


def _through(command: Simple) -> Simple:
    return Simple(
        words=command.words, assignments=command.assignments, raw=command.raw, through=True, inner=command.inner
    )


def _done(command: Simple) -> Simple:
    return Simple(
        words=command.words, assignments=command.assignments, raw=command.raw, through=command.through, inner=True
    )


def _branches(command: str) -> int:
    """What the grammar takes more than linear time for."""
    return command.count("|") + command.count("<<") + command.count("${")


_ORDINARY = re.compile(r"[ -~\t\n]*")


def _odd(command: str) -> str:
    """The first character that a person can't see, or that the shell may take for another."""
    if _ORDINARY.fullmatch(command):
        return ""
    for char in command:
        if char in " \t\n":
            continue
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
            return f"U+{ord(char):04X}"
    return ""


def surely_read_only(command: str) -> bool:
    """Does the line surely change nothing: known readers alone, nothing written, nothing that isn't known?"""
    line = analyse(command)
    if line.flags or not line.commands or any(variable_danger(a) for a in line.assignments):
        return False
    if any(r.writes and r.target.text not in HARMLESS_TARGETS for r in line.redirects):
        return False
    return all(c.through or (is_reader(c) and danger(c) is None and UNKNOWN not in c.text) for c in line.commands)


__all__ = ["HARMLESS_TARGETS", "analyse", "surely_read_only"]
