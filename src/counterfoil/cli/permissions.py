"""`counterfoil permissions`: the rules that were learned from "always allow", listed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.service.grants import Grants

_Session = Annotated[
    str | None,
    typer.Option("--session", metavar="SESSION", help="What was learned for this session.", show_default=False),
]


app = typer.Typer(help="Rules learned from answers.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def permissions() -> None:
    """Rules learned from answers."""


@app.command("list", epilog=exits.HELP)
def list_grants(
    session: _Session = None,
    workspace: options.Workspace = None,
    as_json: options.AsJson = False,
    state_dir: options.StateDir = None,
) -> int:
    """List the rules that somebody's answers taught: for this folder and for its sessions, or those of one session."""
    from counterfoil.cli import learned
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_json, print_line
    from counterfoil.scrollback import visible_line

    if session is not None:
        found = with_service(state_settings(state_dir), lambda local: learned.of_session(local, session))
        nothing = "no rule was learned in this session"
    else:
        grants, place = _grants(workspace, state_dir)
        found = [
            *learned.for_good(grants, place),
            *with_service(state_settings(state_dir, warn=False), lambda local: learned.of_folder(local, place)),
        ]
        nothing = f"no rule was learned for {visible_line(str(place))}"
    if as_json:
        print_json(found)
        return exits.DONE
    for one in found:
        print_line(f"{visible_line(one.rule)}  ({one.scope}, learned from {one.ask_id} in {one.session_id})")
    if not found:
        print_line(nothing)
    return exits.DONE


@app.command(epilog=exits.HELP)
def revoke(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule, as `counterfoil permissions list` shows it.")],
    session: _Session = None,
    workspace: options.Workspace = None,
    state_dir: options.StateDir = None,
) -> int:
    """Forget a learned rule: what it allowed is asked again. For this folder, or with --session for one session."""
    from counterfoil.cli import learned
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_line
    from counterfoil.errors import UsageError
    from counterfoil.scrollback import visible_line

    if session is not None:
        if workspace is not None:
            raise UsageError("--session and --workspace exclude each other")
        with_service(state_settings(state_dir), lambda local: learned.revoke_in(local, session, rule))
    else:
        grants, place = _grants(workspace, state_dir)
        if not grants.revoke(str(place), rule):
            hint = "`counterfoil permissions list` shows all; --session SESSION is for one of a session"
            raise UsageError(f"rule {rule!r} was not learned for {place}", hint=hint)
    print_line(f"revoked: {visible_line(rule)}")
    return exits.DONE


def _grants(workspace: Path | None, state_dir: str | None) -> tuple[Grants, Path]:
    from counterfoil.cli.compose import folder, state_settings
    from counterfoil.service.grants import Grants

    return Grants(state_settings(state_dir).state_dir), folder(workspace)
