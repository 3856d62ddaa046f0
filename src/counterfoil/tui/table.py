"""A table on a screen of its own: filtered by text and by kind, with a row to choose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input, Label

from counterfoil.scrollback import visible_line

MOST = 2_000
"""Rows that are laid out at once; the filter finds the rest."""
CELL = 48


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One row: its key and its cells."""

    key: str
    cells: tuple[str, ...]


Chosen = Callable[[str], Awaitable[None] | None]


class TableScreen(ModalScreen[None]):
    """Rows that can be searched. `kind` is the column that F2 filters by. `chosen` is told of enter on a row.

    `keys` are more things to do with a row, by key: what it is called and what is told.
    """

    DEFAULT_CSS = """
    TableScreen { background: $background; }
    TableScreen Label { width: 1fr; background: $panel; padding: 0 1; }
    TableScreen #title { text-style: bold; }
    TableScreen Input { height: 3; border: round $panel; }
    TableScreen Input:focus { border: heavy $primary; }
    TableScreen DataTable { height: 1fr; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back", priority=True),
        Binding("f2", "kind", "next kind", priority=True),
        Binding("down", "rows", "to the rows", show=False),
    ]

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Record],
        *,
        kind: int | None = None,
        chosen: Chosen | None = None,
        keys: Mapping[str, tuple[str, Chosen]] | None = None,
        empty: str = "nothing",
    ) -> None:
        super().__init__()
        self._title = title
        self._columns = columns
        self._rows = list(rows)
        self._kind = kind
        self._kinds = ["", *dict.fromkeys(r.cells[kind] for r in rows)] if kind is not None else [""]
        self._only = ""
        self._chosen = chosen
        self._keys = keys or {}
        self._empty = empty

    def compose(self) -> ComposeResult:
        yield Label("", id="title", markup=False)
        yield Input(placeholder="filter", id="filter")
        yield DataTable(cursor_type="row", zebra_stripes=False, id="rows")
        yield Label(self._hints(), markup=False)

    def on_mount(self) -> None:
        """Fill the table."""
        self._table.add_columns(*self._columns)
        self._fill()
        self._table.focus()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def _hints(self) -> str:
        hints = ["esc back", "tab filter"]
        hints += ["F2 kind"] if self._kind is not None else []
        hints += ["enter open"] if self._chosen is not None else []
        return " · ".join([*hints, *(f"{key} {name}" for key, (name, _) in self._keys.items())])

    def matching(self) -> list[Record]:
        """The rows that the filters leave."""
        wanted = self.query_one(Input).value.lower()
        return [
            row
            for row in self._rows
            if (not self._only or self._kind is None or row.cells[self._kind] == self._only)
            and (not wanted or any(wanted in cell.lower() for cell in (row.key, *row.cells)))
        ]

    def replace(self, rows: Sequence[Record]) -> None:
        """Show other rows."""
        self._rows = list(rows)
        self._fill()

    def _fill(self) -> None:
        table, found = self._table, self.matching()
        table.clear()
        for row in found[:MOST]:
            table.add_row(*(_cell(cell) for cell in row.cells), key=row.key)
        only = f" · only {self._only}" if self._only else ""
        count = f"{len(found)} of {len(self._rows)}" if self._rows else self._empty
        self.query_one("#title", Label).update(f"{self._title}: {count}{only}")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what is written."""
        event.stop()
        self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """On to the rows."""
        event.stop()
        self._table.focus()

    def action_rows(self) -> None:
        """On to the rows."""
        self._table.focus()

    def action_kind(self) -> None:
        """Show the next kind alone."""
        self._only = self._kinds[(self._kinds.index(self._only) + 1) % len(self._kinds)]
        self._fill()

    def current(self) -> str | None:
        """The key of the row under the cursor."""
        table = self._table
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(Coordinate(table.cursor_row, 0)).row_key.value
        return None if key is None else str(key)

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter or a click."""
        event.stop()
        if self._chosen is not None and event.row_key.value is not None:
            await _told(self._chosen, str(event.row_key.value))

    async def key_any(self, key: str) -> bool:
        """Do what `key` does with the row. False where it does nothing."""
        at = self.current()
        if key not in self._keys or at is None or self.query_one(Input).has_focus:
            return False
        await _told(self._keys[key][1], at)
        return True

    async def on_key(self, event: object) -> None:
        """The keys of this table."""
        key = getattr(event, "key", "")
        if await self.key_any(key):
            event.stop()  # type: ignore[attr-defined]


async def _told(whom: Chosen, key: str) -> None:
    done = whom(key)
    if done is not None:
        await done


def _cell(text: str) -> Text:
    line = visible_line(text)
    return Text(line if len(line) <= CELL else line[: CELL - 1] + "…", no_wrap=True)
