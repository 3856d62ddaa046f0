"""`counterfoil permissions`: the rules that were learned from "always allow", listed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.service.grants import Grants
    from counterfoil.service.local import LocalService
    from counterfoil.state.session import Grant

_Session = Annotated[
    str | None,
    typer.Option("--session", metavar="SESSION", help="What this session learned.", show_default=False),
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
    """List the rules that hold for this folder because somebody answered "always", or those of one session."""
    from counterfoil.cli.terminal import print_json, print_line
    from counterfoil.scrollback import visible_line

    if session is not None:
        return _of_session(session, state_dir, as_json=as_json)
    grants, place = _grants(workspace, state_dir)
    found = grants.of(str(place))
    if as_json:
        print_json(found)
        return exits.DONE
    for grant in found:
        print_line(f"{visible_line(grant.rule)}  (learned from {grant.ask_id} in {grant.session_id})")
    if not found:
        print_line(f"no rule was learned for {visible_line(str(place))}")
    return exits.DONE


def _of_session(session: str, state_dir: str | None, *, as_json: bool) -> int:
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.reference import resolve
    from counterfoil.cli.terminal import print_json, print_line
    from counterfoil.scrollback import visible_line

    async def read(local: LocalService) -> list[Grant]:
        return (await local.engine.load(await resolve(local.store, session))).grants

    found = with_service(state_settings(state_dir), read)
    if as_json:
        print_json(found)
        return exits.DONE
    for grant in found:
        print_line(f"{visible_line(grant.rule)}  ({grant.scope}, learned from {grant.ask_id})")
    if not found:
        print_line("no rule was learned in this session")
    return exits.DONE


@app.command(epilog=exits.HELP)
def revoke(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule, as `counterfoil permissions list` shows it.")],
    workspace: options.Workspace = None,
    state_dir: options.StateDir = None,
) -> int:
    """Forget a learned rule: what it allowed is asked again."""
    from counterfoil.cli.terminal import print_line
    from counterfoil.errors import UsageError
    from counterfoil.scrollback import visible_line

    grants, place = _grants(workspace, state_dir)
    if not grants.revoke(str(place), rule):
        raise UsageError(f"rule {rule!r} was not learned for {place}", hint="`counterfoil permissions list` shows all")
    print_line(f"revoked: {visible_line(rule)}")
    return exits.DONE


def _grants(workspace: Path | None, state_dir: str | None) -> tuple[Grants, Path]:
    from counterfoil.cli.compose import folder, state_settings
    from counterfoil.service.grants import Grants

    return Grants(state_settings(state_dir).state_dir), folder(workspace)
