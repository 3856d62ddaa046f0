"""Letters to the process that drives a session, from whoever doesn't hold it: answers, cancels, steers, acks.

A letter is read once it is there, one after the other, and gets one reply. Where the holder dies before it replied,
the next one reads the letter again: an answer with its key is still one answer, a cancel of a run that is over changes
nothing, and a steer may then reach the model twice.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from counterfoil import errors
from counterfoil.engine.context import Context
from counterfoil.engine.recover import closing_run
from counterfoil.errors import AskIsSettled, CodecError, CounterfoilError, SessionNotFound, StaleFence, StoreError
from counterfoil.events import Principal, Receipt, Scope, Verdict
from counterfoil.events.base import Value
from counterfoil.events.codec import clean_text
from counterfoil.identity import AskID, ReviewID, RunID
from counterfoil.ports import EventStore, Lease
from counterfoil.ports.store import LETTER_BYTES, Letter

if TYPE_CHECKING:
    from counterfoil.engine.session import Session

log = logging.getLogger("counterfoil.engine")
PAUSE = 1.0
"""Seconds until letters are looked at again after the store failed."""
_LONGEST = LETTER_BYTES // 2
"""Leaves room for the receipt that repeats what the letter said."""
_CUT = 4_000


class AnswerLetter(Value, frozen=True, kw_only=True, tag_field="letter", tag="answer"):
    """The answer to an ask. `principal` is stamped by the door that posts it, never by its client."""

    ask_id: AskID
    verdict: Verdict
    scope: Scope = "once"
    note: str = ""
    rule: str = ""
    idempotency_key: str
    principal: Principal


class CancelLetter(Value, frozen=True, kw_only=True, tag_field="letter", tag="cancel"):
    """Stop this run, and no other one that may have begun meanwhile."""

    run_id: RunID
    principal: Principal


class SteerLetter(Value, frozen=True, kw_only=True, tag_field="letter", tag="steer"):
    """Input for this run, and for no other one that may have begun meanwhile."""

    run_id: RunID
    text: str
    principal: Principal


class AcknowledgeLetter(Value, frozen=True, kw_only=True, tag_field="letter", tag="acknowledge"):
    """A person saw this revision of a review."""

    review_id: ReviewID
    revision: int
    principal: Principal


AnyLetter = AnswerLetter | CancelLetter | SteerLetter | AcknowledgeLetter


class Settled(Value, frozen=True, kw_only=True, tag_field="reply", tag="settled"):
    """The answer holds."""

    receipt: Receipt


class Done(Value, frozen=True, kw_only=True, tag_field="reply", tag="done"):
    """It was passed on to the run."""


class Refused(Value, frozen=True, kw_only=True, tag_field="reply", tag="refused"):
    """Nothing changed. `receipt` is the one that won, where the ask was settled already."""

    code: str
    message: str
    hint: str = ""
    receipt: Receipt | None = None


AnyReply = Settled | Done | Refused

_encoder = msgspec.json.Encoder()
_letters = msgspec.json.Decoder(AnyLetter)
_replies: msgspec.json.Decoder[AnyReply] = msgspec.json.Decoder(AnyReply)
_KINDS: tuple[type[CounterfoilError], ...] = (
    errors.AskNotFound,
    errors.AskWithdrawn,
    errors.AnswerRefused,
    errors.ReviewNotFound,
    errors.StaleReview,
    errors.NotResumable,
    errors.SessionBusy,
    errors.UsageError,
    errors.CodecError,
)
_BY_CODE = {kind.code: kind for kind in _KINDS}


def encode_letter(letter: AnyLetter) -> bytes:
    """The bytes to post. Raises `UsageError` for a letter that is too long or holds text that isn't valid Unicode."""
    try:
        body = _encoder.encode(letter)
    except UnicodeEncodeError as fault:
        raise errors.UsageError("text that isn't valid Unicode can't be sent") from fault
    if len(body) > _LONGEST:
        raise errors.UsageError("the text is too long to be sent to another process", hint="make it shorter")
    return body


def heard(reply: bytes) -> Receipt | None:
    """What a reply says: the receipt of an answer, None for anything else that was done.

    Raises the error that the holder met: `AskIsSettled` with its receipt, `AskWithdrawn`, `AskNotFound`, `UsageError`.
    """
    try:
        said = _replies.decode(reply)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise CodecError(f"the reply of the process that drives the session can't be read: {fault}") from fault
    if isinstance(said, Refused):
        if said.receipt is not None:
            raise AskIsSettled(said.receipt)
        raise _BY_CODE.get(said.code, CounterfoilError)(said.message, hint=said.hint)
    return said.receipt if isinstance(said, Settled) else None


def _encode(reply: AnyReply) -> bytes:
    """The bytes of a reply; one that is too long, for the sake of a text that somebody else gave, is cut."""
    body = _encoder.encode(reply)
    if len(body) <= LETTER_BYTES or not isinstance(reply, Refused):
        return body
    receipt = reply.receipt
    if receipt is not None:
        receipt = msgspec.structs.replace(receipt, note=receipt.note[:_CUT])
    return _encoder.encode(Refused(code=reply.code, message=reply.message[:_CUT], hint=reply.hint, receipt=receipt))


class Mail:
    """The letters of one open session, from opening to closing. Closed by its session."""

    def __init__(self, session: Session, ctx: Context, lease: Lease) -> None:
        self._session = session
        self._ctx = ctx
        self._lease = lease
        self._first = asyncio.Event()
        self._reading = asyncio.Lock()
        self._serving = asyncio.ensure_future(self._serve())

    @property
    def _store(self) -> EventStore:
        return self._ctx.parts.store

    async def caught_up(self) -> None:
        """Wait until the letters that were there when the session was opened are read, and the one in hand."""
        await self._first.wait()
        async with self._reading:
            pass

    async def close(self) -> None:
        """Read no more. A letter without a reply is read again by the next who opens the session."""
        self._serving.cancel()
        await asyncio.wait([self._serving])
        self._first.set()  # a task that was cancelled before its first step never came to do so

    async def _serve(self) -> None:
        try:
            if await self._read(first=True):
                while await self._read():
                    continue
        finally:
            self._first.set()

    async def _read(self, *, first: bool = False) -> bool:
        """Read what is there, or wait for it. False where nothing more can be read under this lease."""
        try:
            look = self._store.letters if first else self._store.wait_letters
            for letter in await look(self._lease.session_id):
                async with self._reading:
                    await self._store.reply(self._lease, letter.number, _encode(await self._reply_to(letter)))
        except (StaleFence, SessionNotFound) as fault:
            log.debug("letters are read no more: %s", fault)
            return False
        except StoreError as fault:
            log.warning("letters to session %s can't be read for now: %s", self._lease.session_id, fault)
            self._first.set()
            await asyncio.sleep(PAUSE)
        self._first.set()
        return True

    async def _reply_to(self, letter: Letter) -> AnyReply:
        """Do what the letter says. Raises `StoreError` alone: then the letter stays for the next holder."""
        try:
            return await self.done(_letters.decode(letter.body))
        except StoreError:
            raise
        except AskIsSettled as fault:
            return Refused(code=fault.code, message=fault.message, hint=fault.hint, receipt=fault.receipt)
        except CounterfoilError as fault:
            return Refused(code=fault.code, message=fault.message, hint=fault.hint)
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            return Refused(code=CodecError.code, message=f"the letter can't be read: {fault}")
        except Exception as fault:  # one letter must not keep the others from being read
            log.exception("letter %s to session %s failed", letter.number, self._lease.session_id)
            return Refused(code="error", message=f"the letter could not be handled: {type(fault).__name__}")

    async def done(self, letter: AnyLetter) -> Settled | Done:
        """Do what a letter says. Raises what the session says against it."""
        if isinstance(letter, AnswerLetter):
            receipt = await self._session.answer(
                letter.ask_id,
                letter.verdict,
                principal=letter.principal,
                scope=letter.scope,
                note=clean_text(letter.note),
                rule=letter.rule,
                idempotency_key=letter.idempotency_key,
            )
            return Settled(receipt=receipt)
        if isinstance(letter, AcknowledgeLetter):
            await self._session.acknowledge(letter.review_id, letter.revision, principal=letter.principal)
            return Done()
        run = self._session.state.run
        if run is None or run.run_id != letter.run_id:
            raise errors.UsageError(f"run {letter.run_id} is over", hint="nothing changed")
        if isinstance(letter, SteerLetter):
            await self._session.steer(clean_text(letter.text))
        elif self._session.running:
            self._session.cancel()
        else:
            await self._ctx.publisher.publish_made(
                lambda: closing_run(self._session.state, "cancelled", "cancelled", "cancelled")
            )
        return Done()
