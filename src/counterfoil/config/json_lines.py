"""Which line of a JSON document holds which value. Values are read by `json`; this only finds places."""

from __future__ import annotations

import json
import re

JsonPath = tuple[str | int, ...]

MAX_DEPTH = 8
_PIECE = re.compile(r'\n|"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def json_lines(text: str) -> dict[JsonPath, int]:
    """The line (from 1) of each key and each item of a valid document, down to `MAX_DEPTH` levels."""
    found: dict[JsonPath, int] = {}
    stack: list[list[str | int | None]] = []
    line = 1
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece == "\n":
            line += 1
        elif piece in "}]":
            if stack:
                stack.pop()
        elif piece == ",":
            if stack:
                place = stack[-1][0]
                stack[-1][0] = place + 1 if isinstance(place, int) else None
        elif piece != ":":
            _note(found, stack, piece, line)
            if piece in "{[":
                stack.append([None if piece == "{" else 0])
    return found


def _note(found: dict[JsonPath, int], stack: list[list[str | int | None]], piece: str, line: int) -> None:
    """A key, or the beginning of a value."""
    if stack and stack[-1][0] is None and piece.startswith('"'):
        stack[-1][0] = json.loads(piece, strict=False)
    if len(stack) <= MAX_DEPTH:
        found.setdefault(tuple(frame[0] for frame in stack if frame[0] is not None), line)


def line_of(lines: dict[JsonPath, int], path: JsonPath) -> int | None:
    """The line of the value at `path`, or of the closest above it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)
