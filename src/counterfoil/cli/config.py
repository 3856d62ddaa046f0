"""`counterfoil config`: what the configuration says and where each value came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.config import Report

app = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def config() -> None:
    """Look at the configuration."""


@app.command(epilog=exits.HELP)
def check(
    workspace: options.Workspace = None, as_json: options.AsJson = False, state_dir: options.StateDir = None
) -> int:
    """Show each file, each value with its source, and every fault. Exits 2 where there is one."""
    import os

    from counterfoil.cli.compose import folder
    from counterfoil.cli.terminal import print_json
    from counterfoil.config import Flags, examine, explain

    report = explain(*examine(folder(workspace), os.environ, Flags(state_dir=state_dir)))
    if as_json:
        print_json(report)
    else:
        _print(report)
    return exits.USAGE if any(p.fatal for p in report.problems) else exits.DONE


def _print(report: Report) -> None:
    from counterfoil.cli import faults
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible_line

    for file in report.files:
        print_line(f"{file.tier:9} {visible_line(file.path)}: {'read' if file.read else 'not there'}")
    print_line()
    fields = max(len(row.field) for row in report.values)
    for row in report.values:
        value = visible_line(json.dumps(row.value, ensure_ascii=False))
        print_line(f"{row.field:{fields}}  {value}  ({visible_line(row.source)})")
    for problem in report.problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        faults.say(f"{'' if problem.fatal else 'warning: '}{problem.text}{hint}")
