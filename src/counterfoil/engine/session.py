"""A session that this process drives: everything that can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

from counterfoil.engine import asks, hooking
from counterfoil.engine.compact import compact
from counterfoil.engine.context import Context, Parked, RunOutcome, Stop
from counterfoil.engine.mail import AnyLetter, Mail, Settled
from counterfoil.engine.recover import closing_run
from counterfoil.engine.run import drive, finish, store_stop
from counterfoil.engine.watch import Hub, Watch
from counterfoil.errors import NotResumable, ReviewNotFound, SessionBusy, StaleReview, StoreError, UsageError
from counterfoil.events import (
    ErrorInfo,
    Event,
    GrantChanged,
    Limits,
    MessageDelta,
    Mode,
    Part,
    Principal,
    Receipt,
    ReviewAcknowledged,
    ReviewDetail,
    RunStarted,
    Scope,
    SessionUpdated,
    StopReason,
    TextPart,
    UserPrompt,
    Verdict,
    text_of,
    text_parts,
)
from counterfoil.identity import AskID, ReviewID, Revision, SessionID
from counterfoil.ports import Lease
from counterfoil.state import SessionState


class Session:
    """One session under this process's lease. Made by `Engine.create` and `Engine.open`; close it at the end."""

    def __init__(self, ctx: Context, lease: Lease, hub: Hub) -> None:
        self._ctx = ctx
        self._lease = lease
        self._hub = hub
        self._answers = asyncio.Lock()
        self._driving: asyncio.Task[RunOutcome] | None = None
        self._cancelled = False
        self._open = False
        self._begun = False
        self._ran = False
        self._mail = Mail(self, ctx, lease)

    @property
    def id(self) -> SessionID:
        """The session's id."""
        return self._ctx.state.meta.session_id

    @property
    def state(self) -> SessionState:
        """The folded state, as published so far. Read it, don't change it."""
        return self._ctx.state

    @property
    def running(self) -> bool:
        """Whether a run is being driven right now."""
        return self._driving is not None

    def watch(self) -> Watch:
        """Everything that is published from now on; first, the text of a message that streams already."""
        watch = Watch(self._hub)
        run = self.state.run
        if (text := self._ctx.publisher.streaming) and run is not None:
            self._ctx.publisher.catch_up(watch, MessageDelta(turn=run.turn, text=text))
        self._hub.add(watch)
        return watch

    async def prompt(self, parts: str | tuple[Part, ...]) -> RunOutcome:
        """Start a run with this prompt and drive it. Whatever an earlier run left open is closed first.

        Raises `SessionBusy` while a run is driven, `UsageError` for an empty prompt.
        """
        await self.read_mail()
        given = text_parts(parts) if isinstance(parts, str) else parts
        if not given or all(isinstance(p, TextPart) and not p.text.strip() for p in given):
            raise UsageError("the prompt is empty", hint="say what is to be done")
        return await self._drive(lambda: self._begin(given))

    async def resume(self) -> RunOutcome:
        """Go on with the run that a restart or a parked ask left open.

        Raises `NotResumable` where no run is open, `SessionBusy` while one is driven.
        """
        await self.read_mail()
        run = self.state.run
        if run is None:
            raise NotResumable(f"session {self.id} has no open run", hint="give it a prompt instead")
        if not run.prompted:
            await self._close_run()
            raise NotResumable(
                f"session {self.id} stopped before its prompt was recorded", hint="give the prompt again"
            )
        return await self._drive(None)

    async def read_mail(self) -> None:
        """Wait until every letter that was left before the session was opened is read: nothing is driven before."""
        await self._mail.caught_up()

    async def _close_run(self) -> None:
        """End what an earlier process left open."""
        await self._ctx.publisher.publish_made(
            lambda: closing_run(self.state, "interrupted", "interrupted", "interrupted")
        )

    async def _begin(self, parts: tuple[Part, ...]) -> Stop | None:
        """Record the start of a run and its prompt, unless a hook drops the prompt: then the stop."""
        run_id = self._ctx.parts.ids.run()
        await self._close_run()
        hooks = self._ctx.hooks
        if not (hooks.wants("SessionStart") or hooks.wants("UserPromptSubmit")):
            await self._ctx.publish(RunStarted(run_id=run_id), UserPrompt(parts=parts))
            return self._opened()
        await self._ctx.publish(RunStarted(run_id=run_id))
        if stop := self._opened():
            return stop
        contexts: list[Event] = []
        if not self._begun:
            contexts += await hooking.session_start(self._ctx, "startup" if self.state.runs == 1 else "resume")
        self._begun = True
        dropped: str | None = None
        more: list[Event] = []
        if self.state.run is not None and self.state.run.stopped is None:
            dropped, more = await hooking.prompt_submitted(self._ctx, text_of(parts))
        stopped = dropped or (self.state.run.stopped if self.state.run is not None else None)
        if stopped is not None:
            return Stop(reason="hook_stopped", error=ErrorInfo(code="hook_stopped", message=stopped))
        await self._ctx.publish(UserPrompt(parts=parts), *contexts, *more)
        return None

    async def _drive(self, begin: Callable[[], Awaitable[Stop | None]] | None) -> RunOutcome:
        if self._driving is not None:
            raise SessionBusy(f"session {self.id} is running", hint="steer it, or wait for its end")
        self._cancelled, self._open, self._ran = False, False, True
        self._driving = asyncio.ensure_future(self._to_the_end(begin))
        try:
            return await asyncio.shield(self._driving)
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait([self._driving])
            raise
        finally:
            self._driving = None

    async def _to_the_end(self, begin: Callable[[], Awaitable[Stop | None]] | None) -> RunOutcome:
        stop = Stop(reason="cancelled")
        run = self.state.run
        try:
            dropped = await begin() if begin is not None else self._opened()
            run = self.state.run
            stop = dropped or await drive(self._ctx)
        except Parked as parked:
            return self._outcome(None, deferred=parked.deferred)
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
        except StoreError as fault:
            stop = store_stop(fault)
            return self._unrecorded(stop, run.run_id if run else None)
        try:
            await self._finish(stop)
        except StoreError as fault:
            stop = store_stop(fault)
            return self._unrecorded(stop, run.run_id if run else None)
        return self._outcome(stop)

    def _opened(self) -> Stop | None:
        """The run is in the log: from here on `cancel` breaks off what it waits for. A stop, where that came before."""
        self._open = True
        return Stop(reason="cancelled") if self._cancelled else None

    async def _finish(self, stop: Stop) -> None:
        """Publish the run's end. Who cancels now comes too late: it is over."""
        ending = asyncio.ensure_future(finish(self._ctx, stop))
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                if ending.cancelled() or not self._cancelled:
                    raise
            except BaseException:
                break
        ending.result()

    def _outcome(self, stop: Stop | None, *, deferred: bool = False) -> RunOutcome:
        state = self.state
        if stop is None:
            assert state.run is not None
            reason: StopReason | None = "deferred" if deferred else None
            return RunOutcome(run_id=state.run.run_id, stop_reason=reason, parked=True, usage=state.run.usage)
        assert state.last_run is not None
        return RunOutcome(
            run_id=state.last_run.run_id,
            stop_reason=stop.reason,
            text=state.last_run.text,
            error=stop.error,
            usage=state.last_run.usage,
        )

    def _unrecorded(self, stop: Stop, run_id: object) -> RunOutcome:
        """The outcome of a run whose end couldn't be stored: the next opener closes it as interrupted."""
        text = self.state.run.last_text if self.state.run else ""
        return RunOutcome(run_id=run_id, stop_reason=stop.reason, text=text, error=stop.error)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Stop the run: what runs is stopped, open asks are withdrawn, every call gets its result."""
        if self._driving is not None and not self._driving.done():
            self._cancelled = True
            if self._open:
                self._driving.cancel()

    def park(self) -> None:
        """Leave the drive at the ask that it waits at; the ask stays open for whoever answers later."""
        asks.park(self._ctx)

    async def steer(self, text: str) -> None:
        """Add input to the run; the model gets it at the next turn boundary.

        Raises `UsageError` where no run is driven.
        """
        if self.state.run is None:
            raise UsageError(f"session {self.id} isn't running", hint="give it a prompt instead")
        await self._ctx.publish(UserPrompt(parts=text_parts(text), source="steer"))

    async def answer(
        self,
        ask_id: AskID,
        verdict: Verdict,
        *,
        principal: Principal,
        scope: Scope = "once",
        note: str = "",
        rule: str = "",
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Answer one ask. Raises `AskIsSettled`, `AskWithdrawn`, `AskNotFound`; then nothing changed."""
        async with self._answers:
            return await asks.settle(
                self._ctx,
                ask_id,
                verdict,
                principal=principal,
                scope=scope,
                note=note,
                rule=rule,
                idempotency_key=idempotency_key,
            )

    async def take(self, letter: AnyLetter) -> Receipt | None:
        """Do what a letter says, without its way through the mailbox. Returns the receipt of an answer.

        Raises what stands against it: `AskIsSettled`, `AskWithdrawn`, `AskNotFound`, `UsageError`, `StaleReview`, …
        """
        done = await self._mail.done(letter)
        return done.receipt if isinstance(done, Settled) else None

    async def acknowledge(self, review: ReviewID, revision: int, *, principal: Principal) -> None:
        """Record that a person saw this revision of a review. Decides nothing; repeating it changes nothing.

        Raises `ReviewNotFound`; `StaleReview` where a newer revision stands.
        """

        def acknowledged() -> list[Event]:
            mark = self.state.reviews.get(review)
            if mark is None or not 0 < revision <= mark.revision:
                raise ReviewNotFound(f"no review {review} with revision {revision} in this session")
            if revision < mark.revision:
                raise StaleReview(
                    f"review {review} stands at revision {mark.revision} by now",
                    hint="look at it again; nothing changed",
                )
            if mark.acknowledged >= revision:
                return []
            return [
                ReviewAcknowledged(
                    review_id=review,
                    revision=Revision(revision),
                    origin_session_id=self.id,
                    tool_call_id=mark.tool_call_id,
                    decided_by=principal,
                    decided_at=self._ctx.parts.clock.now(),
                )
            ]

        await self._ctx.publisher.publish_made(acknowledged)

    def review_detail(self, review: ReviewID, revision: int) -> ReviewDetail:
        """What the checker wrote: untrusted prose, for the session's owner alone, while it is fresh.

        Raises `ReviewNotFound` where nothing is kept, `StaleReview` where the review was done again after `revision`.
        """
        return self._ctx.details.get(review, revision)

    async def revoke_grant(self, rule: str, principal: Principal) -> None:
        """Forget a rule that was learned for this session: from the next decision on it is asked again.

        One that was learned for good is forgotten where it is kept, for its folder. Raises `UsageError` where no rule
        of the session stands.
        """

        def revoked() -> list[Event]:
            grant = next((g for g in self.state.grants if g.rule == rule and g.scope == "session"), None)
            if grant is None:
                raise UsageError(
                    f"rule {rule!r} was not learned for session {self.id}",
                    hint=f"`counterfoil permissions list --session {self.id}` shows all",
                )
            return [GrantChanged(rule=rule, scope="session", revoked=True, ask_id=grant.ask_id, decided_by=principal)]

        await self._ctx.publisher.publish_made(revoked)

    async def compact(self) -> bool:
        """Compact now, or at the next turn boundary of a run in hand. False where there is nothing to replace.

        Raises `ProviderError` when the summary can't be had.
        """
        if self._driving is not None:
            self._ctx.compact_wanted = True
            return True
        return await compact(self._ctx, trigger="manual")

    async def rename(self, title: str) -> None:
        """Give the session a title."""
        await self._update(SessionUpdated(title=title))

    async def set_mode(self, mode: Mode) -> None:
        """Change the permission mode, from the next decision on."""
        await self._update(SessionUpdated(mode=mode))

    async def set_model(self, provider: str, model: str, *, base_url: str = "") -> None:
        """Ask another model, or the model at another place, from the next turn on."""
        await self._update(SessionUpdated(provider=provider, model=model, base_url=base_url))

    async def set_limits(self, limits: Limits) -> None:
        """Change the limits of runs."""
        await self._update(SessionUpdated(limits=limits))

    async def _update(self, event: Event) -> None:
        await self._ctx.publish(event)
        if self._driving is None:
            await self._ctx.forget_provider()

    async def close(self) -> None:
        """Cancel what runs, stop background tools, end the watches and give the lease back."""
        if self._driving is not None:
            driving = self._driving
            self.cancel()
            await asyncio.wait([driving])
        await self._mail.close()
        try:
            if self._ran and self._ctx.hooks.wants("SessionEnd"):
                await hooking.session_end(self._ctx, "other")
            await self._ctx.hooks.close()
            if self._ctx.reviewer is not None:
                await self._ctx.reviewer.close()
            await self._ctx.toolset.close()
            await self._ctx.forget_provider()
        finally:
            if self._ctx.publisher.transcript is not None:
                self._ctx.publisher.transcript.close()
            self._hub.close()
            await self._ctx.parts.store.release(self._lease)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
