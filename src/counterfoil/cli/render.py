"""Tables on a terminal or in a pipe. Rich is imported when the first one is printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from counterfoil.cli import wording
from counterfoil.cli.layout import GAP, Cell, Column, Line, Row, lay_out
from counterfoil.cli.terminal import coloured, width
from counterfoil.scrollback import CallView, visible_line

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
_SEVERE = ("conflict", "blocking", "warning")

CALL_COLUMNS = (
    Column(title="call", grows=True),
    Column(title="state"),
    Column(title="ran"),
    Column(title="ms", right=True),
    Column(title="evidence"),
    Column(title="approval"),
)


def print_table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print a table, coloured on a terminal that wants it, plain anywhere else."""
    lines = lay_out(columns, rows, width())
    if coloured(sys.stdout):
        _print_coloured(lines)
    else:
        for line in lines:
            sys.stdout.write((" " * GAP).join(cell.text for cell in line).rstrip() + "\n")
    sys.stdout.flush()


def _print_coloured(lines: Sequence[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    out = Console(file=sys.stdout, force_terminal=True, color_system="standard", width=width(), highlight=False)
    for line in lines:
        text = Text(" " * GAP).join(Text(cell.text, style=cell.style) for cell in line)
        text.rstrip()
        out.print(text, no_wrap=True, overflow="ignore", crop=False)


def print_calls(calls: Sequence[CallView]) -> None:
    """The table of calls: each id whole, on a line of its own over what it is about."""
    if calls:
        print_table(CALL_COLUMNS, [_row(view) for view in calls])
    else:
        print("no calls")


def _row(view: CallView) -> Row:
    state, executed, approval = wording.state(view), wording.executed(view), wording.approval(view)
    severe = any(r.severity in _SEVERE for r in view.records)
    return Row(
        above=Cell(visible_line(view.tool_call_id), "dim"),
        cells=(
            Cell(f"  {visible_line(view.tool)} {wording.target(view)}".rstrip()),
            Cell(state, _STATES.get(state, "")),
            Cell(executed, _LOUD.get(executed, "")),
            Cell(wording.duration(view)),
            Cell(wording.evidence(view), "bold yellow" if severe else ""),
            Cell(approval, _LOUD.get(approval, "")),
        ),
    )
