"""`counterfoil config`: what the configuration says and where each value came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.config import Flags, Report, Settings

_Call = Annotated[
    str | None,
    typer.Option(
        "--call",
        metavar="CALL",
        help="Say what would be decided on a call: 'Bash(git log && rm x)', 'Read(.env)', 'WebFetch(example.com)'.",
        show_default=False,
    ),
]

app = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def config() -> None:
    """Look at the configuration."""


@app.command(epilog=exits.HELP)
def check(
    call: _Call = None,
    mode: options.Mode = None,
    allow: options.Allow = None,
    deny: options.Deny = None,
    compat_claude: options.CompatClaude = None,
    workspace: options.Workspace = None,
    as_json: options.AsJson = False,
    state_dir: options.StateDir = None,
) -> int:
    """Show each file, each value with its source, and every fault; or what the rules say of one call.

    Exits 2 where there is a fault.
    """
    import os

    from counterfoil.cli.compose import folder
    from counterfoil.cli.terminal import print_json
    from counterfoil.config import Flags, examine, explain
    from counterfoil.config.load import project_offer

    flags = Flags(
        state_dir=state_dir,
        mode=None if mode is None else mode.value,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
        compat_claude=compat_claude,
    )
    if call is not None:
        return _judge(call, flags, folder(workspace), as_json=as_json)
    place = folder(workspace)
    read, settings = examine(place, os.environ, flags)
    report = explain(read, settings, project_offer(read, place))
    _warn_of_names(settings, place)
    if as_json:
        print_json(report)
    else:
        _print(report)
    return exits.USAGE if any(p.fatal for p in report.problems) else exits.DONE


def _warn_of_names(settings: Settings, workspace: Path) -> None:
    """Say which rules name a tool that isn't there: a misspelt deny denies nothing."""
    import os

    from counterfoil.cli import faults
    from counterfoil.service.judge import unknown_names

    for rule, known in unknown_names(settings, workspace, os.environ):
        faults.say(f"warning: rule {rule!r} names no tool that is known here (known: {known}, mcp__…)")


def _judge(call: str, flags: Flags, workspace: Path, *, as_json: bool) -> int:
    import os

    from counterfoil.cli.compose import load_settings
    from counterfoil.cli.terminal import print_json, print_line
    from counterfoil.scrollback import visible_line
    from counterfoil.service.judge import judge

    decision = judge(call, load_settings(workspace, flags), workspace, os.environ)
    if as_json:
        print_json(decision)
        return exits.DONE
    print_line(f"{decision.verdict}: {visible_line(decision.reason)}")
    for part in decision.parts:
        print_line(f"  {part.verdict:5}  {visible_line(part.text) or '-'}")
        print_line(f"         {visible_line(part.reason)}")
    return exits.DONE


def _print(report: Report) -> None:
    from counterfoil.cli import faults
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible_line

    for file in report.files:
        print_line(f"{file.tier:9} {visible_line(file.path)}: {'read' if file.read else 'not there'}")
    if report.trust.state != "nothing":
        scripts = "".join(f", {visible_line(path)}" for path in report.trust.scripts)
        print_line(f"trust in this folder: {report.trust.state} (its configuration{scripts})")
    print_line()
    fields = max(len(row.field) for row in report.values)
    for row in report.values:
        value = visible_line(json.dumps(row.value, ensure_ascii=False))
        print_line(f"{row.field:{fields}}  {value}  ({visible_line(row.source)})")
    for note in report.notes:
        print_line(visible_line(note))
    for problem in report.problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        faults.say(f"{'' if problem.fatal else 'warning: '}{problem.text}{hint}")
