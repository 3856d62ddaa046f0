"""Lays a table out in a given number of columns. Pure; text is measured in cells of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len, chop_cells, set_cell_size

GAP = 2
NARROWEST = 8


class Cell(msgspec.Struct, frozen=True):
    """Text on one line, and the style that it is shown in."""

    text: str
    style: str = ""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column. `grows`: takes the room that is left, and is cut with an ellipsis where that isn't enough.

    Any other column is never cut: what doesn't fit goes on in the next line.
    """

    title: str
    grows: bool = False
    right: bool = False


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of one row. `above` stands on a line of its own over them, whole however long it is."""

    cells: Sequence[Cell]
    above: Cell | None = None


Line = list[Cell]


def lay_out(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Line]:
    """The lines of the table, its head first, each at most `width` wide where that can be."""
    widths = _widths(columns, rows, width)
    lines = _lines(columns, [Cell(c.title, "bold") for c in columns], widths)
    for row in rows:
        if row.above is not None:
            lines += [[Cell(part, row.above.style)] for part in chop_cells(row.above.text, width) or [""]]
        lines += _lines(columns, row.cells, widths)
    return lines


def _widths(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[int]:
    """Natural widths; where they are too many together, the widest gives way, then the growing one gets the rest."""
    natural = [
        max([cell_len(column.title), *(cell_len(row.cells[at].text) for row in rows)])
        for at, column in enumerate(columns)
    ]
    room = width - GAP * (len(columns) - 1)
    growing = [at for at, column in enumerate(columns) if column.grows]
    fixed = [at for at in range(len(columns)) if at not in growing]
    floor = sum(min(natural[at], max(NARROWEST, width // 4)) for at in growing)
    while sum(natural[at] for at in fixed) > room - floor:
        widest = max(fixed, key=lambda at: natural[at])
        if natural[widest] <= NARROWEST:
            break
        natural[widest] -= 1
    left = max(NARROWEST, room - sum(natural[at] for at in fixed))
    for at in growing:
        natural[at] = min(natural[at], left // len(growing))
    return natural


def _lines(columns: Sequence[Column], cells: Sequence[Cell], widths: Sequence[int]) -> list[Line]:
    pieces = [_pieces(column, cell.text, width) for column, cell, width in zip(columns, cells, widths, strict=True)]
    lines: list[Line] = []
    for number in range(max(map(len, pieces))):
        line: Line = []
        for column, cell, width, parts in zip(columns, cells, widths, pieces, strict=True):
            text = parts[number] if number < len(parts) else ""
            padding = " " * (width - cell_len(text))
            line.append(Cell(padding + text if column.right else text + padding, cell.style))
        lines.append(line)
    return lines


def _pieces(column: Column, text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    if column.grows:
        return [set_cell_size(text, max(0, width - 1)).rstrip() + "…"]
    return chop_cells(text, width)
