"""`counterfoil token`: bearer tokens for a server, made, listed and revoked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.service.tokens import Tokens

app = typer.Typer(help="Tokens for a server.", no_args_is_help=True, rich_markup_mode=None)


class RoleName(StrEnum):
    """What a token lets its bearer do."""

    owner = "owner"
    approver = "approver"
    viewer = "viewer"


@app.callback()
def token() -> None:
    """Tokens for a server."""


@app.command(epilog=exits.HELP)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will use it: receipts say this name.")],
    role: Annotated[RoleName, typer.Option("--role", help="What it lets its bearer do.")] = RoleName.owner,
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Whose sessions an approver or a viewer sees.")
    ] = "",
    days: Annotated[int, typer.Option("--days", min=0, help="How long it holds; 0 for ever.")] = 90,
    state_dir: options.StateDir = None,
) -> int:
    """Make a token and print it, once: only its digest is kept."""
    from counterfoil.cli.terminal import print_line

    now = _now()
    expires = now + days * 86_400_000_000 if days else 0
    made, bearer = _tokens(state_dir).create(name, role.value, owner=owner, now=now, expires_at=expires)
    print_line(bearer)
    import sys

    print(f"counterfoil: token {made.token_id} for {made.name} ({made.role}); it is not shown again", file=sys.stderr)
    return exits.DONE


@app.command("list", epilog=exits.HELP)
def list_tokens(as_json: options.AsJson = False, state_dir: options.StateDir = None) -> int:
    """List the tokens, without their secrets."""
    from counterfoil.cli import wording
    from counterfoil.cli.terminal import print_json, print_line

    found = _tokens(state_dir).all()
    rows = [
        {
            "token_id": t.token_id,
            "name": t.name,
            "role": t.role,
            "owner": t.owner,
            "created_at": t.created_at,
            "expires_at": t.expires_at,
        }
        for t in found
    ]
    if as_json:
        print_json(rows)
        return exits.DONE
    for t in found:
        until = f"until {wording.when(t.expires_at)}" if t.expires_at else "without an end"
        over = f" over the sessions of {t.owner}" if t.owner else ""
        print_line(f"{t.token_id}  {t.name}  {t.role}{over}, {until}")
    if not found:
        print_line("no tokens")
    return exits.DONE


@app.command(epilog=exits.HELP)
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, as `counterfoil token list` shows it.")],
    state_dir: options.StateDir = None,
) -> int:
    """Forget a token: a running server refuses it from the next request on."""
    from counterfoil.cli.terminal import print_line
    from counterfoil.errors import UsageError

    if not _tokens(state_dir).revoke(token_id):
        raise UsageError(f"no token {token_id}", hint="`counterfoil token list` shows all")
    print_line(f"revoked: {token_id}")
    return exits.DONE


def _tokens(state_dir: str | None) -> Tokens:
    from counterfoil.cli.compose import state_settings
    from counterfoil.service.tokens import Tokens

    return Tokens(state_settings(state_dir).state_dir)


def _now() -> int:
    import time

    return time.time_ns() // 1_000
