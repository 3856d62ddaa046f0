"""How an answer reaches its ask: here where nobody drives the session, by letter where another process does."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import compose, wording
from counterfoil.cli.asking import verdict_for
from counterfoil.cli.reading import read_scrollback, rows
from counterfoil.cli.reference import MANY
from counterfoil.engine.mail import AnswerLetter, encode_letter, heard
from counterfoil.errors import (
    AnswerRefused,
    AskIsSettled,
    AskNotFound,
    AskWithdrawn,
    LogDamaged,
    SessionHeld,
    SessionNotFound,
    UsageError,
)
from counterfoil.events import Receipt, Scope, Verdict
from counterfoil.events.codec import clean_text
from counterfoil.identity import AskID, SessionID
from counterfoil.ports import EventStore
from counterfoil.scrollback import AskView, Scrollback

if TYPE_CHECKING:
    from counterfoil.client.interface import Client
    from counterfoil.service.local import LocalService

FIRST_RETRY, LAST_RETRY = 0.1, 1.0
"""Seconds until a session that was held is tried again: the holder may have died, or let go before it read."""
LONGEST_KEY = 200


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the person said, and for how many seconds a holder is waited for."""

    ask: str
    word: str
    note: str
    scope: Scope
    rule: str
    key: str | None
    wait: float


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt, the session in which the ask stands, and whether another process drives it."""

    receipt: Receipt
    session_id: SessionID
    driven: bool


async def settle(local: LocalService, given: Given) -> Answered:
    """Answer the ask. Raises `AskNotFound`, `AnswerRefused` with what became of it, `SessionHeld`, `UsageError`."""
    if given.key is not None and not 0 < len(given.key) <= LONGEST_KEY:
        raise UsageError(f"--key takes 1 to {LONGEST_KEY} characters")
    found = await _find(local.store, AskID(given.ask))
    if found is None:
        raise AskNotFound(f"no ask {given.ask}", hint="`counterfoil asks` lists the open ones")
    session_id, view = found
    letter = AnswerLetter(
        ask_id=view.ask.ask_id,
        verdict=verdict_for(view.ask, given.word),
        scope=given.scope,
        note=clean_text(given.note),
        rule=given.rule,
        idempotency_key=clean_text(given.key or secrets.token_hex(16)),
        principal=compose.principal(),
    )
    if receipt := _told_before(view, letter):
        return Answered(receipt=receipt, session_id=session_id, driven=False)
    try:
        return await _deliver(local, session_id, letter, given.wait)
    except AskIsSettled as fault:
        raise _settled(fault.receipt) from fault


async def settle_elsewhere(client: Client, given: Given) -> Answered:
    """Answer the ask at a server. Raises as `settle`."""
    if given.key is not None and not 0 < len(given.key) <= LONGEST_KEY:
        raise UsageError(f"--key takes 1 to {LONGEST_KEY} characters")
    try:
        found = await client.get_ask(AskID(given.ask))
        verdict = verdict_for(found.ask, given.word)
    except AskIsSettled as fault:  # perhaps by this very answer: the server knows
        found = None
        words: dict[str, Verdict] = {"allow": "allow", "deny": "deny"}
        if fault.receipt.result_digest is not None:
            words = {"allow": "release", "deny": "withhold"}
        verdict = words[given.word]
    try:
        receipt = await client.answer(
            AskID(given.ask),
            verdict,
            scope=given.scope,
            note=clean_text(given.note),
            rule=given.rule,
            idempotency_key=clean_text(given.key or secrets.token_hex(16)),
        )
    except AskIsSettled as fault:
        raise _settled(fault.receipt) from fault
    session = found.session_id if found is not None else receipt.origin_session_id
    return Answered(receipt=receipt, session_id=session, driven=True)


def _told_before(view: AskView, letter: AnswerLetter) -> Receipt | None:
    """The receipt of this very answer, where it was given before. Raises what became of an ask that isn't open."""
    if view.state == "withdrawn":
        raise AskWithdrawn(f"ask {letter.ask_id} was withdrawn: {view.withdrawn_reason}", hint="nothing changed")
    if view.receipt is None:
        return None
    if (view.receipt.idempotency_key, view.receipt.verdict) == (letter.idempotency_key, letter.verdict):
        return view.receipt
    raise _settled(view.receipt)


def _settled(receipt: Receipt) -> AnswerRefused:
    by, at = receipt.decided_by.name, wording.when(receipt.decided_at)
    return AnswerRefused(
        f"ask {receipt.ask_id} is settled: {receipt.verdict} by {by}, {at}", hint="this answer changed nothing"
    )


async def _deliver(local: LocalService, session_id: SessionID, letter: AnswerLetter, wait: float) -> Answered:
    """Answer under the session's lease; while another process has it, by letter to that one, whatever comes first."""
    try:
        return await _directly(local, session_id, letter)
    except SessionHeld:
        number = await local.store.post(session_id, encode_letter(letter))
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + wait, FIRST_RETRY
    while True:
        try:
            async with asyncio.timeout(pause):
                reply = await local.store.wait_reply(session_id, number)
        except TimeoutError:
            pause = min(2 * pause, LAST_RETRY)
        else:
            return Answered(receipt=_receipt(reply), session_id=session_id, driven=True)
        try:
            return await _directly(local, session_id, letter)
        except SessionHeld as held:
            if loop.time() > until:
                raise SessionHeld(
                    f"{held.message} and has not read the answer yet",
                    hint="the answer is kept: that process, or whichever opens the session next, reads it",
                ) from held


def _receipt(reply: bytes) -> Receipt:
    receipt = heard(reply)
    assert receipt is not None, "an answer is replied to with its receipt"
    return receipt


async def _directly(local: LocalService, session_id: SessionID, letter: AnswerLetter) -> Answered:
    async with await local.engine.open(session_id) as session:
        await session.read_mail()  # who wrote before us comes before us
        receipt = await session.answer(
            letter.ask_id,
            letter.verdict,
            principal=letter.principal,
            note=letter.note,
            rule=letter.rule,
            scope=letter.scope,
            idempotency_key=letter.idempotency_key,
        )
    return Answered(receipt=receipt, session_id=session_id, driven=False)


async def _find(store: EventStore, ask_id: AskID) -> tuple[SessionID, AskView] | None:
    """The session in which the ask was opened, and how it stands: looked for where asks are open, then everywhere.

    A log that can't be read hides no other one. Raises `LogDamaged` where the ask may be in it.
    """
    damaged: LogDamaged | None = None
    for summary in sorted(await store.sessions(limit=MANY), key=lambda one: not one.open_asks):
        try:
            if not await _names(store, summary.session_id, ask_id):
                continue
        except LogDamaged as fault:
            damaged = fault
            continue
        seen = await read_scrollback(store, summary.session_id)
        view = _ask(seen, ask_id)
        if view is None:
            continue
        origin = view.ask.origin_session_id
        if view.state == "open" or origin == summary.session_id:
            return summary.session_id, view
        return await _at_origin(store, origin, ask_id) or (summary.session_id, view)
    if damaged is not None:
        raise damaged
    return None


async def _names(store: EventStore, session_id: SessionID, ask_id: AskID) -> bool:
    """Whether an ask with this id was opened in the log: found without reading what the rows say."""
    name = ask_id.encode()
    async for row in rows(store, session_id):
        if row.kind == "ask.opened" and name in row.public:
            return True
    return False


async def _at_origin(store: EventStore, session_id: SessionID, ask_id: AskID) -> tuple[SessionID, AskView] | None:
    """A copy of a log has copies of its asks: what became of one is told by the log that it was opened in."""
    try:
        view = _ask(await read_scrollback(store, session_id), ask_id)
    except SessionNotFound:
        return None
    return None if view is None else (session_id, view)


def _ask(seen: Scrollback, ask_id: AskID) -> AskView | None:
    views = (view for call in seen.calls for view in call.asks)
    return next((view for view in views if view.ask.ask_id == ask_id), None)
