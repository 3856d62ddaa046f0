"""`counterfoil verify`: is a stored log what was written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.identity import SessionID
    from counterfoil.ports import EventStore

_Session = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", help="A session's id, a unique beginning of it, or `last`.", show_default=False
    ),
]


class Verdict(msgspec.Struct, kw_only=True):
    """What was found of one session. `offset` is that of the first row that doesn't fit."""

    session_id: str
    intact: bool
    events: int
    offset: int | None = None
    reason: str = ""


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
    verdicts = with_store(state_dir, lambda store: _all(store, session))
    if as_json:
        print_json(verdicts)
    else:
        for verdict in verdicts:
            _print(verdict)
        if not verdicts:
            print("no sessions")
    return exits.DONE if all(v.intact for v in verdicts) else exits.FAILED


def _print(verdict: Verdict) -> None:
    from counterfoil.cli.terminal import print_line

    if verdict.intact:
        print_line(f"{verdict.session_id}: intact, {verdict.events} events")
    else:
        print_line(f"{verdict.session_id}: DAMAGED at offset {verdict.offset}: {verdict.reason}")


async def _all(store: EventStore, reference: str | None) -> list[Verdict]:
    from counterfoil.cli.reference import MANY, resolve

    if reference is not None:
        return [await _one(store, await resolve(store, reference))]
    return [await _one(store, s.session_id) for s in await store.sessions(limit=MANY)]


async def _one(store: EventStore, session: SessionID) -> Verdict:
    from counterfoil.identity import START, Offset
    from counterfoil.stores.rows import FIRST
    from counterfoil.stores.rows import verify as verify_rows

    previous, expected, count = b"", FIRST, 0
    after = START
    while page := await store.read(session, after):
        fault = verify_rows(page, previous, expected)
        if fault is not None:
            return Verdict(
                session_id=session,
                intact=False,
                events=count + fault.offset - expected,
                offset=fault.offset,
                reason=fault.reason,
            )
        count += len(page)
        previous, after = page[-1].digest, page[-1].offset
        expected = Offset(after + 1)
    return Verdict(session_id=session, intact=True, events=count)
