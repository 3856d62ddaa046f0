"""Recomputes the digest chains of stored logs, page by page."""

from __future__ import annotations

import msgspec

from counterfoil.errors import LogDamaged
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports import EventStore
from counterfoil.stores.rows import FIRST
from counterfoil.stores.rows import verify as verify_rows


class Verdict(msgspec.Struct, kw_only=True):
    """What was found of one session. `offset` is that of the first row that doesn't fit, where it is known."""

    session_id: str
    intact: bool
    events: int
    offset: int | None = None
    reason: str = ""


async def verify_one(store: EventStore, session: SessionID) -> Verdict:
    """The verdict on one session. A log that the store itself can't read is damaged too, and hides no other."""
    previous, expected, count = b"", FIRST, 0
    after = START
    while True:
        try:
            page = await store.read(session, after)
        except LogDamaged as damaged:
            return Verdict(session_id=session, intact=False, events=count, reason=damaged.message)
        if not page:
            return Verdict(session_id=session, intact=True, events=count)
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
