"""Glob patterns over paths: `*`, `?`, `[…]`, `{a,b}` and `**`, in time linear in the path for each alternative."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from counterfoil.errors import ToolFailure

MAX_ALTERNATIVES = 64
Matches = Callable[[Sequence[str]], bool]


def matcher(pattern: str) -> Matches:
    """A test for the parts of a relative path. `**` stands for any number of folders. Raises `ToolFailure`."""
    if len(pattern) > 1000:
        raise ToolFailure("the glob pattern is longer than 1000 characters", executed="no")
    alternatives = [_parts(each) for each in braces(pattern)]
    return lambda path: any(_match(path, parts) for parts in alternatives)


def name_or_path_matcher(pattern: str) -> Matches:
    """As ripgrep's `--glob`: a pattern without a slash is about the name at any depth; `!` turns it round."""
    turned = pattern.startswith("!")
    bare = pattern.removeprefix("!")
    deep = bare if "/" in bare.rstrip("/") else f"**/{bare}"
    inner = matcher(deep.removeprefix("/"))
    return (lambda path: not inner(path)) if turned else inner


def braces(pattern: str) -> list[str]:
    """The alternatives of a pattern with `{a,b}` in it."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolFailure(f"the glob pattern has over {MAX_ALTERNATIVES} alternatives", executed="no")
        each = waiting.pop()
        found = re.search(r"\{([^{}]*)\}", each)
        if found is None or "," not in found[1]:
            done.append(each)
            continue
        waiting += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
    return done


def _parts(pattern: str) -> list[re.Pattern[str] | None]:
    parts: list[re.Pattern[str] | None] = []
    for part in pattern.split("/"):
        if part in ("", "."):
            continue
        if part == "**":
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            parts.append(re.compile(fnmatch.translate(re.sub(r"\*+", "*", part))))
    return parts


def _match(path: Sequence[str], parts: Sequence[re.Pattern[str] | None]) -> bool:
    states = _closure({0}, parts)
    for name in path:
        after = set()
        for state in states:
            if state == len(parts):
                continue
            part = parts[state]
            if part is None:
                after.add(state)
            elif part.match(name):
                after.add(state + 1)
        states = _closure(after, parts)
        if not states:
            return False
    return len(parts) in states


def _closure(states: set[int], parts: Sequence[re.Pattern[str] | None]) -> set[int]:
    for state in sorted(states):
        if state < len(parts) and parts[state] is None:
            states.add(state + 1)
    return states


__all__ = ["braces", "matcher", "name_or_path_matcher"]
