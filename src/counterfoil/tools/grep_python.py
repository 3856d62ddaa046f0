"""The search of Grep where there is no ripgrep: same files, same lines, in linear time."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from counterfoil.errors import ToolFailure
from counterfoil.tools.base import Stopped
from counterfoil.tools.files import open_file
from counterfoil.tools.glob_match import Matches, name_or_path_matcher
from counterfoil.tools.grep_found import Enough, Found, Line
from counterfoil.tools.regex import Pattern
from counterfoil.tools.walk import Walk

FILE_LIMIT = 20 * 1024 * 1024
TYPES: dict[str, str] = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}",
    "cs": "*.cs",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{htm,html,ejs}",
    "java": "*.{java,jsp,jspx,properties}",
    "js": "*.{js,jsx,cjs,mjs,vue}",
    "json": "*.json",
    "kotlin": "*.{kt,kts}",
    "lua": "*.lua",
    "markdown": "*.{md,markdown,mdown,mkd,mkdn,mdx}",
    "md": "*.{md,markdown,mdown,mkd,mkdn,mdx}",
    "php": "*.php",
    "proto": "*.proto",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.{rb,gemspec,rbw}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh,ksh}",
    "sql": "*.{sql,psql}",
    "swift": "*.swift",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,cts,mts}",
    "txt": "*.txt",
    "xml": "*.{xml,xsd,xsl,xslt}",
    "yaml": "*.{yaml,yml}",
}


def search(
    top: Path,
    root: Path,
    pattern: Pattern,
    found: Found,
    *,
    globs: list[str],
    before: int,
    after: int,
    multiline: bool,
    hidden: Callable[[Path], bool],
    stop: threading.Event,
) -> None:
    """Search `top` (a file, or a folder and all below) and add what is found, until that is enough."""
    walk = Walk(top, root, hidden, stop)
    large = 0
    try:
        for path in [top] if top.is_file() else _chosen(walk, top, [name_or_path_matcher(glob) for glob in globs]):
            data = _content(path)
            if len(data) > FILE_LIMIT:
                large += 1
            elif b"\0" not in data[:8192] and pattern.search(data) is not None:
                for line in _lines(path, data, pattern, before, after, multiline, stop):
                    found.add(line)
    except Enough:
        pass
    if walk.incomplete:
        found.notes.append("[not the whole folder was searched: it is too large; give a narrower path]")
    if large:
        found.notes.append(f"[not searched, for their size of more than {FILE_LIMIT} bytes: {large} files]")


def glob_of_type(name: str) -> str:
    """The files of a type. Raises `ToolFailure` for an unknown one."""
    if name not in TYPES:
        raise ToolFailure(f"there is no file type {name!r}; use glob, or one of: {', '.join(TYPES)}", executed="no")
    return TYPES[name]


def _chosen(walk: Walk, top: Path, wanted: list[Matches]) -> Iterator[Path]:
    for entry in walk.files():
        path = Path(entry.path)
        if all(matches(path.relative_to(top).parts) for matches in wanted):
            yield path


def _content(path: Path) -> bytes:
    """The file's bytes, at most one more than the limit; none where it can't be read."""
    try:
        with open_file(path) as file:
            return file.read(FILE_LIMIT + 1)
    except (OSError, ToolFailure):
        return b""


def _lines(
    path: Path, data: bytes, pattern: Pattern, before: int, after: int, multiline: bool, stop: threading.Event
) -> Iterator[Line]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    hits = _spanned(data, lines, pattern, stop) if multiline else _single(lines, pattern, stop)
    shown_to = 0
    hits_list = list(hits)
    matched = {number for first, last in hits_list for number in range(first, last + 1)}
    for first, last in hits_list:
        for number in range(max(first - before, shown_to), min(last + after + 1, len(lines))):
            yield Line(str(path), number + 1, lines[number], number in matched)
        shown_to = max(shown_to, min(last + after + 1, len(lines)))


def _single(lines: list[bytes], pattern: Pattern, stop: threading.Event) -> Iterator[tuple[int, int]]:
    for number, line in enumerate(lines):
        if number % 4096 == 0 and stop.is_set():
            raise Stopped
        if pattern.search(line) is not None:
            yield number, number


def _spanned(data: bytes, lines: list[bytes], pattern: Pattern, stop: threading.Event) -> Iterator[tuple[int, int]]:
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    at = 0
    while at <= len(data) and (span := pattern.search(data, at)) is not None:
        if stop.is_set():
            raise Stopped
        first = min(bisect_right(starts, span.start()) - 1, len(lines) - 1)
        last = min(bisect_right(starts, max(span.end() - 1, span.start())) - 1, len(lines) - 1)
        yield first, last
        at = max(span.end(), starts[last + 1])


__all__ = ["TYPES", "glob_of_type", "search"]
