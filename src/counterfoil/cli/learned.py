"""Rules that answers taught: what of them holds for a folder and for sessions, and taking one back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import compose, faults
from counterfoil.cli.reference import MANY, resolve
from counterfoil.errors import CounterfoilError
from counterfoil.identity import SessionID

if TYPE_CHECKING:
    from counterfoil.service.grants import Grants
    from counterfoil.service.local import LocalService


class Learned(msgspec.Struct, kw_only=True):
    """One rule that holds, how far, and the ask and session that it came from."""

    rule: str
    scope: str
    ask_id: str
    session_id: str
    learned_at: int | None = None


def for_good(grants: Grants, place: Path) -> list[Learned]:
    """What was learned for a folder. Raises `ConfigError`."""
    return [
        Learned(rule=g.rule, scope="always", ask_id=g.ask_id, session_id=g.session_id, learned_at=g.learned_at)
        for g in grants.of(str(place))
    ]


async def of_session(local: LocalService, reference: str) -> list[Learned]:
    """What the session learned that `reference` means."""
    return await _of(local, await resolve(local.store, reference))


async def of_folder(local: LocalService, place: Path) -> list[Learned]:
    """What the folder's sessions learned for themselves. One that can't be read is said to be so, and hides none."""
    found: list[Learned] = []
    for summary in await local.store.sessions(limit=MANY):
        if os.path.realpath(summary.workspace) != os.path.realpath(place):
            continue
        try:
            found += [one for one in await _of(local, summary.session_id) if one.scope == "session"]
        except CounterfoilError as fault:
            faults.say(f"warning: what session {summary.session_id} learned can't be read: {fault}")
    return found


async def _of(local: LocalService, session: SessionID) -> list[Learned]:
    grants = (await local.engine.load(session)).grants
    return [Learned(rule=g.rule, scope=g.scope, ask_id=g.ask_id or "", session_id=session) for g in grants]


async def revoke_in(local: LocalService, reference: str, rule: str) -> None:
    """Forget a rule of one session. Raises `UsageError` where none such stands."""
    async with await local.engine.open(await resolve(local.store, reference)) as session:
        await session.read_mail()  # an answer that was left before may be what taught it
        await session.revoke_grant(rule, compose.principal())
