"""Follows one run at a server elsewhere: shows it, has its questions answered, hears the person's Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from counterfoil.cli import exits, faults
from counterfoil.cli.asking import Asker
from counterfoil.cli.drive import STOPPING
from counterfoil.cli.reporters import Reporter
from counterfoil.client.interface import CaughtUp, Client
from counterfoil.engine import RunOutcome
from counterfoil.errors import AnswerRefused, AskIsSettled, CounterfoilError, ShuttingDown, Unreachable
from counterfoil.events import Ask, AskOpened, AskSettled, AskWithdrawn, AssistantMessage, Envelope, RunFinished, Usage
from counterfoil.identity import START, AskID, RunID, SessionID
from counterfoil.scrollback import Scrollback

if TYPE_CHECKING:
    from counterfoil.client.values import Started

FIRST_PAUSE, LAST_PAUSE = 0.2, 5.0
PATIENCE = 60.0
"""Seconds for which a server that is gone is tried again."""


class RemoteDrive:
    """One run of one session at a server, shown by a reporter, its asks answered by an asker."""

    def __init__(self, client: Client, session: SessionID, reporter: Reporter, asker: Asker) -> None:
        self._client = client
        self._session = session
        self._reporter = reporter
        self._asker = asker
        self.seen = Scrollback(session)
        self._after = START
        self._run: RunID | None = None
        self._text = ""
        self._asking: dict[AskID, asyncio.Task[None]] = {}
        self._left = asyncio.Event()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begun: asyncio.Task[None] | None = None
        self._over: RunFinished | None = None

    async def prompt(self, text: str) -> RunOutcome:
        """Give the session a prompt and follow its run to the end, or until a question is left open."""
        return await self._to_the_end(lambda: self._client.prompt(self._session, text))

    async def resume(self) -> RunOutcome:
        """Go on with the open run. What is asked already is answered first, and the server goes on by itself."""

        async def start() -> Started | None:
            waiting = [view.ask for view in self.seen.open_asks]
            for ask in waiting:
                self._ask(ask)
            return None if waiting else await self._client.resume(self._session)

        return await self._to_the_end(start)

    async def _to_the_end(self, start: Callable[[], Awaitable[Started | None]]) -> RunOutcome:
        with self._stopped_by_signals():
            following = asyncio.ensure_future(self._follow(start))
            left = asyncio.ensure_future(self._left.wait())
            try:
                waits: list[asyncio.Future[Any]] = [self._failed, following]
                await asyncio.wait([*waits, left], return_when=asyncio.FIRST_COMPLETED)
                for ended in waits:
                    if ended.done():
                        await ended
            finally:
                tasks: list[asyncio.Future[Any]] = [following, left, self._failed, *self._asking.values()]
                tasks += [self._begun] if self._begun is not None else []
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        outcome = self._outcome()
        self._reporter.end(outcome, self.seen)
        return outcome

    def _outcome(self) -> RunOutcome:
        over = self._over
        if over is None:
            return RunOutcome(run_id=self._run or RunID(""), stop_reason=None, parked=True, usage=Usage())
        return RunOutcome(
            run_id=over.run_id, stop_reason=over.stop_reason, text=self._text, error=over.error, usage=over.usage
        )

    async def _follow(self, start: Callable[[], Awaitable[Started | None]]) -> None:
        """Take what the server says until the run is over. A server that is gone is tried again for a while."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + PATIENCE, FIRST_PAUSE
        while self._over is None:
            try:
                async with contextlib.aclosing(self._client.watch(self._session, self._after)) as frames:
                    async for frame in frames:
                        until, pause = loop.time() + PATIENCE, FIRST_PAUSE
                        if isinstance(frame, CaughtUp) and self._begun is None:
                            self._begun = asyncio.ensure_future(self._or_fail(self._begin(start)))
                        elif isinstance(frame, Envelope):
                            self._take(frame)
                        if self._over is not None:
                            return
                raise CounterfoilError(f"session {self._session} was deleted while its run went on")
            except (Unreachable, ShuttingDown):
                if loop.time() > until or self._begun is None:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)

    async def _or_fail(self, work: Awaitable[None]) -> None:
        """Do `work`; a fault of it ends the following, and is raised there."""
        try:
            await work
        except Exception as fault:
            if not self._failed.done():
                self._failed.set_exception(fault)

    async def _begin(self, start: Callable[[], Awaitable[Started | None]]) -> None:
        started = await start()
        if started is not None:
            self._run = started.run_id

    def _take(self, envelope: Envelope) -> None:
        self._after = self._after if envelope.offset is None else envelope.offset
        if not self.seen.apply(envelope) or self._begun is None:
            return
        event = envelope.event
        self._reporter.event(envelope, self.seen)
        if isinstance(event, AssistantMessage):
            self._text = event.text
        elif isinstance(event, AskOpened):
            self._ask(event.ask)
        elif isinstance(event, (AskSettled, AskWithdrawn)):
            self._closed(event.receipt.ask_id if isinstance(event, AskSettled) else event.ask_id)
        elif isinstance(event, RunFinished):
            self._over = event

    def _ask(self, ask: Ask) -> None:
        if ask.deferred:
            self._left.set()
        elif ask.ask_id not in self._asking:
            self._asking[ask.ask_id] = asyncio.ensure_future(self._or_fail(self._answer(ask)))

    def _closed(self, ask: AskID) -> None:
        """The question is over: here or elsewhere. Whoever is still asked need not answer."""
        if (task := self._asking.get(ask)) is not None and not task.done():
            task.cancel()

    async def _answer(self, ask: Ask) -> None:
        self._reporter.clear()
        reply = await self._asker(ask)
        if reply is None:
            self._left.set()
            return
        key = secrets.token_hex(16)
        try:
            await self._client.answer(
                ask.ask_id, reply.verdict, scope=reply.scope, note=reply.note, idempotency_key=key
            )
        except AskIsSettled as fault:
            faults.say(f"{ask.tool} {ask.ask_id}: answered elsewhere: {fault.receipt.verdict}")
        except AnswerRefused as fault:
            faults.say(str(fault))

    @contextlib.contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """The first signal cancels the run at the server, and its end is waited for; the second one leaves at once."""
        loop = asyncio.get_running_loop()
        cancels: set[asyncio.Task[None]] = set()

        def stop(number: signal.Signals) -> None:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda *_: os._exit(128 + number))
            cancels.add(asyncio.ensure_future(self._client.cancel(self._session)))

        handled = []
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, stop, number)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def told(outcome: RunOutcome, seen: Scrollback, url: str) -> int:
    """Say on stderr how a run ended that didn't simply end, and return the exit code."""
    if outcome.parked:
        for view in seen.open_asks:
            faults.say(f"{view.ask.tool} waits for an answer to {view.ask.ask_id}: {view.ask.reason}")
            faults.say(f"`counterfoil answer {view.ask.ask_id} allow --connect {url}`: the server goes on by itself")
    elif outcome.error is not None:
        hint = f" ({outcome.error.hint})" if outcome.error.hint else ""
        faults.say(f"{outcome.error.message}{hint}")
    elif exits.of_outcome(outcome) != exits.DONE:
        faults.say(f"the run stopped: {outcome.stop_reason}")
    return exits.of_outcome(outcome)
