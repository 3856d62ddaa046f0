"""`counterfoil permissions`: the rules that were learned from "always allow", listed and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.identity import SessionID
    from counterfoil.service.grants import Grants
    from counterfoil.service.local import LocalService

_Session = Annotated[
    str | None,
    typer.Option("--session", metavar="SESSION", help="What was learned for this session.", show_default=False),
]


class Learned(msgspec.Struct, kw_only=True):
    """One rule that holds, how far, and the ask and session that it came from."""

    rule: str
    scope: str
    ask_id: str
    session_id: str
    learned_at: int | None = None


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
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_json, print_line
    from counterfoil.scrollback import visible_line

    if session is not None:
        found = with_service(state_settings(state_dir), lambda local: _by_reference(local, session))
        nothing = "no rule was learned in this session"
    else:
        grants, place = _grants(workspace, state_dir)
        always = (
            Learned(rule=g.rule, scope="always", ask_id=g.ask_id, session_id=g.session_id, learned_at=g.learned_at)
            for g in grants.of(str(place))
        )
        found = [*always, *with_service(state_settings(state_dir, warn=False), lambda local: _of_folder(local, place))]
        nothing = f"no rule was learned for {visible_line(str(place))}"
    if as_json:
        print_json(found)
        return exits.DONE
    for one in found:
        print_line(f"{visible_line(one.rule)}  ({one.scope}, learned from {one.ask_id} in {one.session_id})")
    if not found:
        print_line(nothing)
    return exits.DONE


async def _by_reference(local: LocalService, reference: str) -> list[Learned]:
    from counterfoil.cli.reference import resolve

    return await _of_session(local, await resolve(local.store, reference))


async def _of_session(local: LocalService, session: SessionID) -> list[Learned]:
    grants = (await local.engine.load(session)).grants
    return [Learned(rule=g.rule, scope=g.scope, ask_id=g.ask_id or "", session_id=session) for g in grants]


async def _of_folder(local: LocalService, place: Path) -> list[Learned]:
    """What the folder's sessions learned for themselves. One that can't be read is said to be so, and hides none."""
    import os

    from counterfoil.cli import faults
    from counterfoil.cli.reference import MANY
    from counterfoil.errors import CounterfoilError

    found: list[Learned] = []
    for summary in await local.store.sessions(limit=MANY):
        if os.path.realpath(summary.workspace) != os.path.realpath(place):
            continue
        try:
            found += [one for one in await _of_session(local, summary.session_id) if one.scope == "session"]
        except CounterfoilError as fault:
            faults.say(f"warning: what session {summary.session_id} learned can't be read: {fault}")
    return found


@app.command(epilog=exits.HELP)
def revoke(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The rule, as `counterfoil permissions list` shows it.")],
    session: _Session = None,
    workspace: options.Workspace = None,
    state_dir: options.StateDir = None,
) -> int:
    """Forget a learned rule: what it allowed is asked again. For this folder, or with --session for one session."""
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_line
    from counterfoil.errors import UsageError
    from counterfoil.scrollback import visible_line

    if session is not None:
        if workspace is not None:
            raise UsageError("--session and --workspace exclude each other")
        with_service(state_settings(state_dir), lambda local: _revoke_in(local, session, rule))
    else:
        grants, place = _grants(workspace, state_dir)
        if not grants.revoke(str(place), rule):
            hint = "`counterfoil permissions list` shows all; --session SESSION is for one of a session"
            raise UsageError(f"rule {rule!r} was not learned for {place}", hint=hint)
    print_line(f"revoked: {visible_line(rule)}")
    return exits.DONE


async def _revoke_in(local: LocalService, reference: str, rule: str) -> None:
    from counterfoil.cli.compose import principal
    from counterfoil.cli.reference import resolve

    async with await local.engine.open(await resolve(local.store, reference)) as session:
        await session.read_mail()  # an answer that was left before may be what taught it
        await session.revoke_grant(rule, principal())


def _grants(workspace: Path | None, state_dir: str | None) -> tuple[Grants, Path]:
    from counterfoil.cli.compose import folder, state_settings
    from counterfoil.service.grants import Grants

    return Grants(state_settings(state_dir).state_dir), folder(workspace)
