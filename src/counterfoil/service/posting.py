"""How something reaches a session: directly where this process may drive it, by letter where another one does."""

from __future__ import annotations

import asyncio

from counterfoil.engine.mail import AnyLetter, encode_letter, heard
from counterfoil.errors import SessionHeld
from counterfoil.events import Receipt
from counterfoil.identity import SessionID
from counterfoil.ports import EventStore
from counterfoil.service.drivers import Drivers

WAIT = 30.0
FIRST_RETRY, LAST_RETRY = 0.1, 1.0
"""Seconds until a session that was held is tried again: its holder may have died before it read."""


async def deliver(
    store: EventStore, drivers: Drivers, session: SessionID, letter: AnyLetter, wait: float = WAIT
) -> Receipt | None:
    """Have the letter done. Returns the receipt of an answer.

    Raises what the session says against it; `SessionHeld` where its holder doesn't read for `wait` seconds: the letter
    is kept, and whoever opens the session next reads it.
    """
    try:
        return await _directly(drivers, session, letter)
    except SessionHeld:
        number = await store.post(session, encode_letter(letter))
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + wait, FIRST_RETRY
    while True:
        try:
            async with asyncio.timeout(pause):
                return heard(await store.wait_reply(session, number))
        except TimeoutError:
            pause = min(2 * pause, LAST_RETRY)
        try:
            return await _directly(drivers, session, letter)
        except SessionHeld as held:
            if loop.time() > until:
                hint = "it is kept: that process, or whichever opens the session next, reads it"
                raise SessionHeld(f"{held.message} and has not read this yet", hint=hint) from held


async def _directly(drivers: Drivers, session: SessionID, letter: AnyLetter) -> Receipt | None:
    async with drivers.using(session) as found:
        await found.read_mail()
        return await found.take(letter)
