"""The one interface of clients: what the services of the contract can do, by their names, with values and typed errors.

The terminal client and the command line use nothing else. A client speaks for one caller, whom the service verified;
another owner's sessions don't exist for it. Every call may raise what `counterfoil.errors` has for it: those that a
caller should expect are named, `Forbidden` (the role may not do this) and `StoreError` may come from all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Protocol, Self

from counterfoil.client.values import (
    Info,
    LearnedRule,
    LogCheck,
    ReviewPolicy,
    ReviewText,
    SessionPage,
    Started,
    TranscriptPage,
)
from counterfoil.events import Envelope, HookRecord, Limits, Mode, Part, Receipt, Scope, SessionStatus, Verdict
from counterfoil.identity import START, AskID, Offset, ReviewID, SessionID, ToolCallID
from counterfoil.ports import SessionSummary
from counterfoil.service.frames import AskEnded, CaughtUp, Frame, Gap, HeartBeat, InboxFrame, OpenAsk


class Sessions(Protocol):
    """Sessions that the caller sees. A session that isn't one of them raises `SessionNotFound`, as a missing one."""

    async def create(
        self,
        *,
        workspace: str = "",
        provider: str = "",
        model: str = "",
        mode: Mode | None = None,
        title: str = "",
        limits: Limits | None = None,
    ) -> SessionSummary:
        """Make a session that the caller owns. What is left out is the service's default."""
        ...

    async def get(self, session: SessionID) -> SessionSummary:
        """One session."""
        ...

    async def list_sessions(
        self,
        *,
        status: SessionStatus | None = None,
        owner: str = "",
        text: str = "",
        page_size: int = 100,
        page_token: str = "",
    ) -> SessionPage:
        """A page of sessions, latest first: in this state, of this owner, with this text in title, workspace or model.

        Raises `UsageError` for a size outside 1 to 1000 and for a token that isn't of this list.
        """
        ...

    async def rename(self, session: SessionID, title: str) -> None:
        """Give a session a title. Raises `SessionHeld` while another process drives it."""
        ...

    async def fork(self, session: SessionID, *, at: Offset | None = None, title: str | None = None) -> SessionID:
        """Copy a session up to and with offset `at` (default: all). Raises `UsageError` for one it doesn't have."""
        ...

    async def delete(self, session: SessionID) -> None:
        """Delete a session for good. Raises `SessionHeld` while it runs, here or elsewhere."""
        ...

    async def set_mode(self, session: SessionID, mode: Mode) -> None:
        """Change the permission mode from the next decision on. Raises `SessionHeld`."""
        ...

    async def set_model(self, session: SessionID, provider: str, model: str) -> None:
        """Ask another model from the next turn on. Raises `ConfigError` for an unknown provider, `SessionHeld`."""
        ...

    async def compact(self, session: SessionID) -> bool:
        """Have history told by a summary. False where there is nothing to replace. Raises `ProviderError`."""
        ...

    def export(self, session: SessionID) -> AsyncGenerator[bytes, None]:
        """The public log as JSON lines, in chunks of whole lines."""
        ...


class Runs(Protocol):
    """Runs: they go on by themselves, whoever watches."""

    async def prompt(self, session: SessionID, parts: str | tuple[Part, ...]) -> Started:
        """Start a run; returns once it is recorded. Raises `SessionBusy` while one goes on (steer it), `SessionHeld`
        where another process drives the session, `UsageError` for an empty prompt.
        """
        ...

    async def resume(self, session: SessionID) -> Started:
        """Go on with a run that was parked or interrupted. Raises `NotResumable` where there is none."""
        ...

    async def steer(self, session: SessionID, text: str) -> None:
        """Input for the run at its next turn boundary. Raises `UsageError` where there is no run, or no text."""
        ...

    async def cancel(self, session: SessionID) -> None:
        """Stop the run; every call gets its result. Nothing happens where there is none."""
        ...

    async def cancel_call(self, session: SessionID, call: ToolCallID) -> None:
        """Stop one call, or see that it doesn't begin; the run goes on. One that waits at an ask is refused.

        Raises `UsageError` for a call that isn't open, `SessionHeld` where another process runs it.
        """
        ...


class Events(Protocol):
    """Events as they come. Leave a stream early with `contextlib.aclosing`."""

    def watch(self, session: SessionID, after: Offset = START) -> AsyncGenerator[Frame, None]:
        """Each logged event after offset `after` once and in order, then those to come, with transient ones between.

        `CaughtUp` stands at the border from replay to live. After a `Gap` the stream goes on by itself: no logged
        event is missing, transient ones are, so text in flight before it is void; a `CaughtUp` comes again.
        Ends when the session is deleted. Raises `SessionNotFound`, and `ShuttingDown` when the service drains: watch
        again after the last offset.
        """
        ...

    def watch_all(self) -> AsyncGenerator[InboxFrame, None]:
        """The open asks of all sessions, then what becomes of them and new ones. Raises `ShuttingDown`."""
        ...


class Approvals(Protocol):
    """Asks, answers, and rules that were learned from them."""

    async def list_asks(self, session: SessionID | None = None) -> tuple[OpenAsk, ...]:
        """The open asks of one session, or of all."""
        ...

    async def get_ask(self, ask: AskID) -> OpenAsk:
        """One open ask. Raises `AskNotFound`, `AskIsSettled` with the receipt, `AskWithdrawn`."""
        ...

    async def answer(
        self,
        ask: AskID,
        verdict: Verdict,
        *,
        scope: Scope = "once",
        note: str = "",
        rule: str = "",
        idempotency_key: str = "",
    ) -> Receipt:
        """Settle an ask: releases or refuses exactly the call that it shows. `note` goes to the model with a denial.

        With a scope beyond this once the rule that the ask shows is learned, or `rule` in its place (over the same
        tool; from whoever may drive the session).

        The same verdict with the same key is one answer, and returns the receipt again. Raises `AskNotFound`,
        `AskIsSettled` with the receipt that won, `AskWithdrawn`; then nothing changed.
        """
        ...

    async def list_grants(self, session: SessionID) -> tuple[LearnedRule, ...]:
        """The rules that the session learned."""
        ...

    async def revoke_grant(self, session: SessionID, rule: str) -> None:
        """Forget a rule that the session learned for itself. Raises `UsageError` where it doesn't stand."""
        ...


class Reviews(Protocol):
    """What checkers had to say."""

    async def get_status(self) -> tuple[ReviewPolicy, ...]:
        """What is reviewed, by whom, and how the checkers fare."""
        ...

    async def list_reviews(self, session: SessionID) -> tuple[HookRecord, ...]:
        """The newest revision of each review."""
        ...

    async def get_detail(self, session: SessionID, review: ReviewID, revision: int) -> ReviewText:
        """The checker's prose, untrusted, while it is kept. Raises `ReviewNotFound`, `StaleReview`."""
        ...

    async def acknowledge(self, session: SessionID, review: ReviewID, revision: int) -> None:
        """Record that the caller saw this revision. Raises `ReviewNotFound`, `StaleReview`."""
        ...


class Transcripts(Protocol):
    """What the log says."""

    async def get_transcript(
        self, session: SessionID, after: Offset = START, *, page_size: int = 1000
    ) -> TranscriptPage:
        """Logged events after `after`. Raises `UsageError` for a size outside 1 to 1000."""
        ...

    async def inspect_call(self, session: SessionID, call: ToolCallID) -> tuple[Envelope, ...]:
        """Every logged event about one call, in order. Empty where the session has no such call."""
        ...

    async def verify_log(self, session: SessionID) -> LogCheck:
        """Recompute the digest chain."""
        ...


class Client(Sessions, Runs, Events, Approvals, Reviews, Transcripts, Protocol):
    """All services for one caller. Close it at the end; that ends its streams and no run."""

    async def get_info(self) -> Info:
        """The service, and who it takes the caller for."""
        ...

    async def close(self) -> None:
        """Give up what the client holds. Twice is once."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


__all__ = [
    "Approvals",
    "AskEnded",
    "CaughtUp",
    "Client",
    "Events",
    "Frame",
    "Gap",
    "HeartBeat",
    "InboxFrame",
    "Info",
    "LearnedRule",
    "LogCheck",
    "OpenAsk",
    "ReviewPolicy",
    "ReviewText",
    "Reviews",
    "Runs",
    "SessionPage",
    "Sessions",
    "Started",
    "TranscriptPage",
    "Transcripts",
]
