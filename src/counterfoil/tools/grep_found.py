"""What a search found, whoever searched, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from counterfoil.tools.text import LIMIT, visible, well_formed

Mode = Literal["content", "files_with_matches", "count"]
MAX_ROWS = 5000
LINE_CHARACTERS = 500


class Line(msgspec.Struct, frozen=True):
    """Lines that match (or stand around such), from line `number` on."""

    path: str
    number: int
    data: bytes
    matched: bool = True


class Enough(Exception):
    """No more lines are wanted."""


class Found:
    """Collects lines in the order of paths, up to the limit; then raises `Enough`."""

    def __init__(
        self,
        mode: Mode,
        *,
        numbers: bool,
        separated: bool,
        limit: int,
        shown: Callable[[str], str],
        hidden: Callable[[Path], bool],
    ) -> None:
        self._mode, self._numbers, self._separated, self._limit = mode, numbers, separated, limit
        self._shown, self._hidden = shown, hidden
        self._rows: list[str] = []
        self._counts: dict[str, int] = {}
        self._bytes = 0
        self._at: tuple[str, int] | None = None
        self._skip: dict[str, bool] = {}
        self.notes: list[str] = []

    @property
    def limit(self) -> int:
        """How many rows are wanted at most."""
        return min(self._limit or MAX_ROWS, MAX_ROWS)

    def add(self, line: Line) -> None:
        """Take the next one."""
        if self._left_out(line.path):
            return
        pieces = line.data.removesuffix(b"\n").split(b"\n")
        if self._mode == "content":
            self._content(line, pieces)
        elif line.matched:
            self._count(line.path, len(pieces))

    def text(self) -> str:
        """The result."""
        rows = list(self._rows)
        if self._mode == "files_with_matches":
            rows = [self._name(path) for path in self._counts]
        elif self._mode == "count":
            rows = [f"{self._name(path)}:{count}" for path, count in self._counts.items()]
        return "\n".join([*(rows or ["No matches found."]), *self.notes])

    def _left_out(self, path: str) -> bool:
        if path not in self._skip:
            self._skip = {path: self._hidden(Path(path))}
        return self._skip[path]

    def _count(self, path: str, lines: int) -> None:
        if path not in self._counts and len(self._counts) >= self.limit:
            self._full()
        self._counts[path] = self._counts.get(path, 0) + lines

    def _content(self, line: Line, pieces: list[bytes]) -> None:
        name, mark = self._name(line.path), ":" if line.matched else "-"
        if self._separated and self._at is not None and self._at != (line.path, line.number):
            self._rows.append("--")
        self._at = (line.path, line.number + len(pieces))
        for number, piece in enumerate(pieces, line.number):
            text = visible(well_formed(piece.removesuffix(b"\r")[: LINE_CHARACTERS * 4 + 4]))
            if len(text) > LINE_CHARACTERS:
                text = text[:LINE_CHARACTERS] + " […]"
            row = f"{name}{mark}{number}{mark}{text}" if self._numbers else f"{name}{mark}{text}"
            self._bytes += len(row.encode()) + 1
            if len(self._rows) >= self.limit or self._bytes > LIMIT - 1000:
                self._full()
            self._rows.append(row)

    def _full(self) -> None:
        if self._rows[-1:] == ["--"]:
            self._rows.pop()
        self.notes.append("[there is more: narrow the search, or raise head_limit]")
        raise Enough

    def _name(self, path: str) -> str:
        return visible(well_formed(self._shown(path))).replace("\n", "␊")


__all__ = ["Enough", "Found", "Line", "Mode"]
