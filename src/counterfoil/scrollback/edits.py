"""What an edit changes, as the lines of a diff. Each line says by its first character what it is. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

MOST_COMPARED = 2_000
"""Lines on each side that are compared; longer texts are shown as taken out and put in, whole."""


def of_edit(tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """The lines of the diff that a call of an editing tool would make, or None where it is no edit."""
    old, new, content = (arguments.get(name) for name in ("old_string", "new_string", "content"))
    if tool == "Edit" and isinstance(old, str) and isinstance(new, str):
        return compared(old, new)
    if tool == "Write" and isinstance(content, str):
        return _written(content)
    return None


def _written(content: str) -> list[str]:
    """The lines of a whole file; one that ends without a line end says so, as diffs do."""
    lines = [f"+{line}" for line in content.removesuffix("\n").split("\n")] if content else []
    return lines if content.endswith("\n") else [*lines, "\\ no line end at the end"]


def compared(old: str, new: str) -> list[str]:
    """The lines of a diff from `old` to `new`, without heads."""
    before, after = old.split("\n"), new.split("\n")
    if max(len(before), len(after)) > MOST_COMPARED:
        return [f"-{line}" for line in before] + [f"+{line}" for line in after]
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return [line for number, line in enumerate(lines) if number or not line.startswith("@@")]


def of_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A diff of two sets of arguments, name by name."""
    lines: list[str] = []
    for name in (*before, *(n for n in after if n not in before)):
        old, new = before.get(name), after.get(name)
        if old == new and name in before and name in after:
            lines.append(f" {name}: {_shown(old)}")
            continue
        lines += [f"-{name}: {_shown(old)}"] if name in before else []
        lines += [f"+{name}: {_shown(new)}"] if name in after else []
    return lines


def _shown(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
