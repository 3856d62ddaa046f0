"""Tables: the calls of a session, lists of sessions and asks. Rich is imported when the first one is printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from counterfoil.cli import wording
from counterfoil.cli.terminal import coloured, width
from counterfoil.scrollback import CallView, visible_line

if TYPE_CHECKING:
    from rich.console import Console

_STATES = {
    "ok": "green",
    "error": "red",
    "denied": "yellow",
    "blocked": "yellow",
    "withheld": "yellow",
    "cancelled": "magenta",
    "interrupted": "magenta",
    "asked": "bold yellow",
    "held": "bold yellow",
    "started": "cyan",
}
_LOUD = {"unknown": "bold red", "open": "bold yellow"}


class Column:
    """One column. `grows`: takes the room that is left, and is cut with an ellipsis where that isn't enough."""

    def __init__(self, title: str, *, grows: bool = False, right: bool = False) -> None:
        self.title = title
        self.grows = grows
        self.right = right


def console(stream: Any = None) -> Console:
    """A console on stdout that is as wide as the terminal, and plain in pipes and with NO_COLOR."""
    from rich.console import Console

    out = stream if stream is not None else sys.stdout
    colour = coloured(out)
    return Console(
        file=out,
        width=width(),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table. A cell is a string or a `Text`; nothing in it is taken as markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True, expand=True, header_style="bold")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            ratio=1 if column.grows else None,
            overflow="ellipsis" if column.grows else "fold",
            no_wrap=column.grows,
        )
    for row in rows:
        table.add_row(*[cell if isinstance(cell, Text) else Text(str(cell)) for cell in row])
    out = console()
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        out.file.write(line.rstrip() + "\n")
    out.file.flush()


def print_calls(calls: Sequence[CallView]) -> None:
    """The table of calls: each id whole, on a line of its own over what it is about."""
    if not calls:
        print("no calls")
        return
    columns = [
        Column("call", grows=True),
        Column("state"),
        Column("ran"),
        Column("ms", right=True),
        Column("evidence"),
        Column("approval"),
    ]
    print_table(columns, [_row(view) for view in calls])


def _row(view: CallView) -> list[Any]:
    from rich.text import Text

    state, executed, approval = wording.state(view), wording.executed(view), wording.approval(view)
    severe = any(r.severity in ("conflict", "blocking", "warning") for r in view.records)
    return [
        _call_cell(view),
        Text(state, style=_STATES.get(state, "")),
        Text(executed, style=_LOUD.get(executed, "")),
        wording.duration(view),
        Text(wording.evidence(view), style="bold yellow" if severe else ""),
        Text(approval, style=_LOUD.get(approval, "")),
    ]


def _call_cell(view: CallView) -> Any:
    from rich.text import Text

    cell = Text(view.tool_call_id, style="dim")
    cell.append("\n")
    cell.append(visible_line(view.tool), style="bold not dim")
    about = wording.target(view)
    if about:
        cell.append(f" {about}", style="not dim")
    return cell
