"""The application: what callers can do with sessions, runs, asks, reviews and logs, each call checked for who it is."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.engine import NewSession, Session
from counterfoil.engine.mail import AcknowledgeLetter, AnswerLetter, CancelLetter, SteerLetter
from counterfoil.errors import AskNotFound, Forbidden, ReviewNotFound, SessionHeld, SessionNotFound, UsageError
from counterfoil.events import (
    Envelope,
    HookRecord,
    Mode,
    Part,
    Principal,
    Receipt,
    ReviewDetail,
    Scope,
    SessionCreated,
    SessionStatus,
    Verdict,
)
from counterfoil.events.codec import encode_envelope, envelope_of, event_of
from counterfoil.identity import START, AskID, Offset, ReviewID, RunID, SessionID, ToolCallID
from counterfoil.ports import ReviewRule, SessionSummary
from counterfoil.service.access import Action, Caller, may, sees
from counterfoil.service.beginning import MAX_NAME, MAX_NOTE, MAX_STEER, MAX_TITLE, bounded, short
from counterfoil.service.drivers import Drivers
from counterfoil.service.frames import Frame, InboxFrame, OpenAsk
from counterfoil.service.inbox import Inbox
from counterfoil.service.listing import position, wanted
from counterfoil.service.posting import deliver
from counterfoil.service.questions import Questions
from counterfoil.service.reading import about, ask_of, reviews_of, session_of_ask
from counterfoil.service.stopping import held_text, open_question
from counterfoil.service.verifying import Verdict as LogVerdict
from counterfoil.service.verifying import verify_one
from counterfoil.service.watching import Watcher
from counterfoil.state import SessionState
from counterfoil.state.session import Grant

if TYPE_CHECKING:
    from counterfoil.service.local import LocalService
    from counterfoil.service.tracing import Tracer

MANY = 1_000_000
PAGE = 1_000
MAX_PAGE = 1_000
PACE = 0.02


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list. `next_token` is empty on the last."""

    sessions: tuple[SessionSummary, ...]
    next_token: str = ""


class Application:
    """Everything behind the doors. Every call takes the caller that its door verified.

    Another owner's session doesn't exist for a caller: the error is the one of an id that nobody ever made.
    """

    def __init__(self, local: LocalService, workspace: Path | None = None, tracer: Tracer | None = None) -> None:
        """`workspace`: where sessions work that name no folder. `tracer` follows every session that is opened here."""
        self.local = local
        self.workspace = workspace or Path.cwd()
        self.drivers = Drivers(local.engine, tracer.follow) if tracer is not None else Drivers(local.engine)
        self._tracer = tracer
        self._owners: dict[SessionID, Principal] = {}
        self._questions = Questions(local.store)

    # ---- sessions -----------------------------------------------------------------------------------------------

    async def create(self, caller: Caller, new: NewSession) -> SessionSummary:
        """Make a session that the caller owns. Raises `Forbidden` for a role that may not, `UsageError`."""
        self._require(caller, "drive")
        new = bounded(self.local.settings, new)
        session = await self.drivers.create(msgspec.structs.replace(new, owner=caller.principal))
        return await self.local.store.summary(session.id)

    async def get(self, caller: Caller, session: SessionID) -> SessionSummary:
        """One session. Raises `SessionNotFound`."""
        await self._owned(caller, session, "read")
        return await self.local.store.summary(session)

    async def list_sessions(
        self,
        caller: Caller,
        *,
        page_size: int = 100,
        page_token: str = "",
        status: SessionStatus | None = None,
        text: str = "",
        owner: str = "",
    ) -> Page:
        """The caller's sessions, latest first. Raises `UsageError` for a size or a token that isn't one."""
        self._require(caller, "read")
        if not 1 <= page_size <= MAX_PAGE:
            raise UsageError(f"page_size is {page_size}", hint=f"1 to {MAX_PAGE}")
        mine = [s for s in await self._seen_by(caller) if wanted(s, status, text, owner)]
        start = position(mine, page_token)
        page = mine[start : start + page_size]
        more = start + page_size < len(mine)
        return Page(sessions=tuple(page), next_token=page[-1].session_id if more else "")

    async def rename(self, caller: Caller, session: SessionID, title: str) -> None:
        """Give a session a title."""
        short("title", title, MAX_TITLE)
        async with self._driven(caller, session) as found:
            await found.rename(title)

    async def fork(
        self, caller: Caller, session: SessionID, *, at: Offset | None = None, title: str | None = None
    ) -> SessionID:
        """Copy a session."""
        short("title", title or "", MAX_TITLE)
        await self._owned(caller, session, "drive")
        return await self.local.engine.fork(session, at=at, title=title)

    async def delete(self, caller: Caller, session: SessionID) -> None:
        """Delete a session for good. Raises `SessionHeld` while somebody drives or uses it."""
        await self._owned(caller, session, "drive")
        if not await self.drivers.release(session):
            raise SessionHeld(f"session {session} is in use", hint="cancel its run first")
        store = self.local.store
        await store.delete(await store.acquire(session, self.local.engine.parts.holder))
        self._owners.pop(session, None)
        self._questions.forget(session)
        self.local.forget_files(session)

    async def set_mode(self, caller: Caller, session: SessionID, mode: Mode) -> None:
        """Change the permission mode; never to one that is looser than the operator allows."""
        from counterfoil.config import bounds_of

        async with self._driven(caller, session) as found:
            await found.set_mode(bounds_of(self.local.settings).within(mode))

    async def set_model(self, caller: Caller, session: SessionID, provider: str, model: str) -> None:
        """Ask another model from the next turn on. Raises `ConfigError` for a provider that isn't configured."""
        from counterfoil.config import find_provider

        short("model", model, MAX_NAME)
        found = find_provider(self.local.settings, short("provider", provider, MAX_NAME))
        async with self._driven(caller, session) as driven:
            await driven.set_model(provider, model, base_url=found.base_url)

    async def compact(self, caller: Caller, session: SessionID) -> bool:
        """Have history told by a summary. False where there is nothing to replace."""
        async with self._driven(caller, session) as found:
            return await found.compact()

    # ---- runs ---------------------------------------------------------------------------------------------------

    async def prompt(self, caller: Caller, session: SessionID, parts: tuple[Part, ...]) -> RunID:
        """Start a run; returns when it is recorded. Raises `SessionBusy`, `SessionHeld`, `UsageError`."""
        await self._owned(caller, session, "drive")
        return await self.drivers.prompt(session, parts)

    async def resume(self, caller: Caller, session: SessionID) -> RunID:
        """Go on with a run that was left open. Raises `NotResumable`."""
        await self._owned(caller, session, "drive")
        return await self.drivers.resume(session)

    async def steer(self, caller: Caller, session: SessionID, text: str) -> None:
        """Input for the run that goes on, wherever it is driven. Raises `UsageError` where there is none."""
        short("text", text, MAX_STEER)
        await self._owned(caller, session, "drive")
        run = await self._open_run(session)
        letter = SteerLetter(run_id=run, text=text, principal=caller.principal)
        await deliver(self.local.store, self.drivers, session, letter)
        await self._go_on(session)

    async def cancel(self, caller: Caller, session: SessionID) -> None:
        """Stop the run, wherever it is driven. Nothing happens where there is none."""
        await self._owned(caller, session, "drive")
        try:
            run = await self._open_run(session)
        except UsageError:
            return
        letter = CancelLetter(run_id=run, principal=caller.principal)
        await deliver(self.local.store, self.drivers, session, letter)

    async def cancel_call(self, caller: Caller, session: SessionID, call: ToolCallID) -> None:
        """Stop one call; the run goes on. One that waits at an ask is refused. Raises `UsageError`, `SessionHeld`."""
        await self._owned(caller, session, "drive")
        if self.local.calls.stop(session, call, caller.principal.name):
            return
        state = await self._state(session)
        if (asked := open_question(state, call)) is not None:
            await self.answer(caller, asked[0].ask_id, asked[1], note="the call was cancelled")
        elif state.call(call) is None:
            raise UsageError(f"call {call} isn't open", hint="nothing changed")
        elif self.drivers.running(session):
            self.local.calls.refuse(session, call, caller.principal.name)
        else:
            raise SessionHeld(f"call {call} runs in another process, if it does", hint="cancel the run")

    async def _state(self, session: SessionID) -> SessionState:
        driven = self.drivers.peek(session)
        return driven.state if driven is not None else await self.local.engine.load(session)

    async def _open_run(self, session: SessionID) -> RunID:
        state = await self._state(session)
        if state.run is None:
            raise UsageError(f"session {session} isn't running", hint="give it a prompt instead")
        return state.run.run_id

    # ---- events -------------------------------------------------------------------------------------------------

    async def watch(self, caller: Caller, session: SessionID, after: Offset = START) -> AsyncGenerator[Frame, None]:
        """Logged events after `after`, then live ones. Raises `SessionNotFound`."""
        await self._owned(caller, session, "read")
        frames = Watcher(self.local.store, self.drivers, session, after).frames()
        async with contextlib.aclosing(frames):
            async for frame in frames:
                yield frame

    async def watch_many(
        self, caller: Caller, session: SessionID, after: Offset = START, *, pace: float = PACE
    ) -> AsyncGenerator[list[Frame], None]:
        """As `watch`, as many frames at once as are there, `pace` seconds apart while they come fast."""
        await self._owned(caller, session, "read")
        batches = Watcher(self.local.store, self.drivers, session, after, pace=pace).batches()
        async with contextlib.aclosing(batches):
            async for batch in batches:
                yield batch

    async def watch_all(self, caller: Caller) -> AsyncGenerator[InboxFrame, None]:
        """The open asks of all the caller's sessions, then what becomes of them and of new ones."""
        self._require(caller, "read")
        async for frame in Inbox(lambda: self.list_asks(caller), self.drivers).frames():
            yield frame

    # ---- approvals ----------------------------------------------------------------------------------------------

    async def list_asks(self, caller: Caller, session: SessionID | None = None) -> list[OpenAsk]:
        """The open asks of one session, or of all that the caller sees."""
        self._require(caller, "read")
        if session is not None:
            await self._owned(caller, session, "read")
            return await self._questions.of(await self.local.store.summary(session))
        found: list[OpenAsk] = []
        for summary in await self.local.store.sessions(limit=MANY):
            if summary.open_asks and await self._exists_for(caller, summary.session_id):
                with contextlib.suppress(SessionNotFound):  # it was deleted meanwhile
                    found += await self._questions.of(summary)
        return found

    async def get_ask(self, caller: Caller, ask: AskID) -> OpenAsk:
        """One open ask. Raises `AskNotFound`, `AskIsSettled` with its receipt, `AskWithdrawn`."""
        self._require(caller, "read")
        session = await self._session_of(caller, ask)
        found = await ask_of(self.local.store, await self.local.store.summary(session), ask)
        if found.ask.result_digest is None or not may(caller, "answer"):
            return found
        return msgspec.structs.replace(found, untrusted_preview=held_text(await self._state(session), found.ask))

    async def answer(
        self,
        caller: Caller,
        ask: AskID,
        verdict: Verdict,
        *,
        scope: Scope = "once",
        note: str = "",
        rule: str = "",
        idempotency_key: str = "",
    ) -> Receipt:
        """Settle an ask and go on with its run. Who decided is the caller, as verified.

        `rule`: in place of the one that the ask shows, from whoever may drive the session. Raises `AskNotFound` (also
        for a stranger), `AskIsSettled`, `AskWithdrawn`, `UsageError`.
        """
        short("note", note, MAX_NOTE)
        short("rule", rule, MAX_NOTE)
        short("idempotency_key", idempotency_key, MAX_NAME)
        self._require(caller, "answer")
        if rule:
            self._require(caller, "drive")
        session = await self._session_of(caller, ask)
        letter = AnswerLetter(
            ask_id=ask,
            verdict=verdict,
            scope=scope,
            note=note,
            rule=rule,
            idempotency_key=idempotency_key or f"{ask}/{caller.principal.kind}/{caller.principal.name}/{verdict}",
            principal=caller.principal,
        )
        receipt = await deliver(self.local.store, self.drivers, session, letter)
        if receipt is None:
            raise AskNotFound(f"no ask {ask}")
        await self._go_on(session)
        return receipt

    async def _session_of(self, caller: Caller, ask: AskID) -> SessionID:
        found = await session_of_ask(self.local.store, ask, await self._seen_by(caller))
        if found is None or not await self._exists_for(caller, found):
            raise AskNotFound(f"no ask {ask}", hint="list the open ones")
        return found

    async def _go_on(self, session: SessionID) -> None:
        """An answered run that nobody drives goes on here."""
        found = self.drivers.peek(session)
        if found is not None and found.state.run is not None and not found.running and not found.state.asks:
            await self.drivers.resume(session)

    async def list_grants(self, caller: Caller, session: SessionID) -> list[Grant]:
        """The rules that the session learned."""
        await self._owned(caller, session, "read")
        return list((await self._state(session)).grants)

    async def revoke_grant(self, caller: Caller, session: SessionID, rule: str) -> None:
        """Forget a rule that the session learned."""
        async with self._driven(caller, session) as found:
            await found.revoke_grant(rule, principal=caller.principal)

    # ---- reviews ------------------------------------------------------------------------------------------------

    async def review_rules(self, caller: Caller) -> tuple[ReviewRule, ...]:
        """What is reviewed, and by whom."""
        self._require(caller, "read")
        return self.local.settings.reviews.rules

    async def list_reviews(self, caller: Caller, session: SessionID) -> list[HookRecord]:
        """The newest revision of each review of a session."""
        await self._owned(caller, session, "read")
        return await reviews_of(self.local.store, session)

    async def review_detail(self, caller: Caller, session: SessionID, review: ReviewID, revision: int) -> ReviewDetail:
        """What the checker wrote: untrusted. Raises `ReviewNotFound`, `StaleReview`, `Forbidden`."""
        await self._owned(caller, session, "detail")
        driven = self.drivers.peek(session)
        if driven is None:
            raise ReviewNotFound(f"no live detail of review {review}", hint="its session isn't driven here")
        return driven.review_detail(review, revision)

    async def acknowledge(self, caller: Caller, session: SessionID, review: ReviewID, revision: int) -> None:
        """Record that the caller saw this revision. Raises `ReviewNotFound`, `StaleReview`."""
        await self._owned(caller, session, "answer")
        letter = AcknowledgeLetter(review_id=review, revision=revision, principal=caller.principal)
        await deliver(self.local.store, self.drivers, session, letter)

    # ---- logs ---------------------------------------------------------------------------------------------------

    async def transcript(
        self, caller: Caller, session: SessionID, after: Offset = START, limit: int = PAGE
    ) -> list[Envelope]:
        """Up to `limit` logged events after `after`."""
        await self._owned(caller, session, "read")
        return [envelope_of(row) for row in await self.local.store.read(session, after, min(limit, PAGE))]

    async def export(self, caller: Caller, session: SessionID) -> AsyncGenerator[bytes, None]:
        """The public log as JSON lines, a page at a time."""
        await self._owned(caller, session, "read")
        after = START
        while page := await self.local.store.read(session, after, PAGE):
            yield b"".join(encode_envelope(envelope_of(row), row.public) + b"\n" for row in page)
            after = page[-1].offset

    async def inspect_call(self, caller: Caller, session: SessionID, call: ToolCallID) -> list[Envelope]:
        """Every logged event about one call, in order. Empty where the session has no such call."""
        await self._owned(caller, session, "read")
        return await about(self.local.store, session, call)

    async def verify_log(self, caller: Caller, session: SessionID) -> LogVerdict:
        """Recompute the digest chain."""
        await self._owned(caller, session, "read")
        return await verify_one(self.local.store, session)

    async def close(self, grace: float = 5.0) -> None:
        """Drain: park what waits, end what runs after `grace` seconds. The store is its owner's to close."""
        await self.drivers.close(grace)
        if self._tracer is not None:
            await self._tracer.close()

    # ---- who ----------------------------------------------------------------------------------------------------

    def _require(self, caller: Caller, action: Action) -> None:
        if not may(caller, action):
            raise Forbidden(f"the role {caller.role} may not do this", hint="ask the owner")

    async def _owned(self, caller: Caller, session: SessionID, action: Action) -> None:
        """Raise `SessionNotFound` where it doesn't exist for the caller, `Forbidden` where it may not do this."""
        if not await self._exists_for(caller, session):
            raise SessionNotFound(f"there is no session {session}", hint="list those that there are")
        self._require(caller, action)

    async def _seen_by(self, caller: Caller) -> list[SessionSummary]:
        found = await self.local.store.sessions(limit=MANY)
        return [summary for summary in found if await self._exists_for(caller, summary.session_id)]

    async def _exists_for(self, caller: Caller, session: SessionID) -> bool:
        owner = self._owners.get(session)
        if owner is None:
            try:
                session.encode()
                rows = await self.local.store.read(session, START, 1)
            except (SessionNotFound, UnicodeEncodeError):
                return False
            created = event_of(rows[0]) if rows else None
            if not isinstance(created, SessionCreated):
                return False
            owner = self._owners[session] = created.owner
        return sees(caller, owner)

    @contextlib.asynccontextmanager
    async def _driven(self, caller: Caller, session: SessionID) -> AsyncIterator[Session]:
        """The open session, for an owner who changes it. Raises `SessionHeld` where another process drives it."""
        await self._owned(caller, session, "drive")
        async with self.drivers.using(session) as found:
            yield found
