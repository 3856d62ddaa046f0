"""What may be offered for a word: commands after `/`, files of the workspace after `@`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST = 8
MOST_FILES = 20_000
_SKIPPED = {".git", "node_modules", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".tox"}


def commands(word: str, known: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The commands that begin as `word` does, then those that have it somewhere: text to take, and what it is for."""
    named = [(f"/{name}", what) for name, what in known]
    begin = [one for one in named if one[0].startswith(word)]
    within = [one for one in named if one not in begin and word[1:] and word[1:] in one[0]]
    return (begin + within)[:MOST]


def files(word: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """The files that `@word` may mean: names that begin so first, then paths that have it."""
    wanted = word[1:].lower()
    ranked: list[tuple[int, int, str]] = []
    for path in known:
        low = path.lower()
        name = low.rsplit("/", 1)[-1]
        if wanted in low:
            ranked.append((0 if name.startswith(wanted) else 1 if wanted in name else 2, len(path), path))
    return [(f"@{path} ", "") for _, _, path in sorted(ranked)[:MOST]]


def workspace_files(root: Path) -> list[str]:
    """Files below `root`, as relative paths; folders of tools are left out, and it ends at a bound."""
    return [path for path, _ in zip(_walk(root), range(MOST_FILES), strict=False)]


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        below = os.path.relpath(folder, root)
        for name in sorted(names):
            yield name if below == "." else f"{below}/{name}"
