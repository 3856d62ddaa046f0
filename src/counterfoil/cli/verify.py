"""`counterfoil verify`: is a stored log what was written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.ports import EventStore
    from counterfoil.service.verifying import Verdict

_Session = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", help="A session's id, a unique beginning of it, or `last`.", show_default=False
    ),
]


def verify(
    session: _Session = None,
    all_: Annotated[bool, typer.Option("--all", help="Every session.")] = False,
    as_json: options.AsJson = False,
    state_dir: options.StateDir = None,
) -> int:
    """Recompute a log's digest chain. Exits 1 and names the first row that doesn't fit where there is one."""
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.terminal import print_json
    from counterfoil.errors import UsageError

    if (session is None) == (not all_):
        raise UsageError("one of SESSION and --all is needed", hint="`counterfoil sessions list` shows all")
    verdicts = with_store(state_dir, lambda store: _verdicts(store, session))
    if as_json:
        print_json(verdicts)
    else:
        for verdict in verdicts:
            _print(verdict)
        if not verdicts:
            print("no sessions")
    return exits.DONE if all(v.intact for v in verdicts) else exits.FAILED


async def _verdicts(store: EventStore, reference: str | None) -> list[Verdict]:
    """What is found of the session that `reference` means, or of every session."""
    from counterfoil.cli.reference import MANY, resolve
    from counterfoil.service.verifying import verify_one

    if reference is not None:
        return [await verify_one(store, await resolve(store, reference))]
    return [await verify_one(store, s.session_id) for s in await store.sessions(limit=MANY)]


def _print(verdict: Verdict) -> None:
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible_line

    if verdict.intact:
        print_line(f"{verdict.session_id}: intact, {verdict.events} events")
    else:
        where = "" if verdict.offset is None else f" at offset {verdict.offset}"
        print_line(f"{verdict.session_id}: DAMAGED{where}: {visible_line(verdict.reason)}")
