"""`counterfoil inspect`: every call of a session, or everything about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.scrollback import Scrollback


def inspect(
    session: options.SessionRef,
    call: Annotated[
        str | None,
        typer.Argument(metavar="[CALL]", help="A call's id or a unique beginning of it.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Show the calls of a session with their evidence, or one call in full."""
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.reading import read_scrollback
    from counterfoil.cli.reference import resolve

    async def read(store: EventStore) -> Scrollback:
        return await read_scrollback(store, await resolve(store, session))

    if connect is None:
        seen = with_store(state_dir, read)
    else:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        seen = over.with_client(connect, lambda client: over.read_scrollback(client, session))
    if call is not None:
        return _one(seen, call, as_json)
    return _all(seen, as_json)


def _all(seen: Scrollback, as_json: bool) -> int:
    from counterfoil.cli import details
    from counterfoil.cli.terminal import print_json

    if as_json:
        print_json({"session": seen.session, "calls": seen.calls, "entries": seen.entries, "evidence": seen.evidence})
    else:
        details.print_session(seen)
    return exits.DONE


def _one(seen: Scrollback, reference: str, as_json: bool) -> int:
    from counterfoil.cli import details
    from counterfoil.cli.terminal import print_json
    from counterfoil.errors import UsageError

    found = [c for c in seen.call_ids if c.startswith(reference)]
    exact = [c for c in found if c == reference]
    if len(exact or found) != 1:
        how_many = "no call has" if not found else f"{len(found)} calls begin with"
        raise UsageError(
            f"{how_many} the id {reference!r} in {seen.root}", hint=f"`counterfoil inspect {seen.root}` lists all"
        )
    view = seen.call((exact or found)[0])
    assert view is not None
    if as_json:
        print_json(view)
    else:
        details.print_call(view)
    return exits.DONE


if TYPE_CHECKING:
    from counterfoil.ports import EventStore
