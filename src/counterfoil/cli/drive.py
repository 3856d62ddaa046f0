"""Drives one run from the command line: follows its events, has its questions answered, hears the person's Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

from counterfoil.cli import faults
from counterfoil.cli.asking import Asker, Reply
from counterfoil.cli.reading import rows
from counterfoil.cli.reporters import Reporter
from counterfoil.engine import RunOutcome, Session, Watch, WatchGap
from counterfoil.errors import AnswerRefused, AskIsSettled
from counterfoil.events import Ask, AskOpened, Envelope, Receipt
from counterfoil.events.codec import envelope_of
from counterfoil.identity import START, AskID
from counterfoil.ports import EventStore
from counterfoil.scrollback import Scrollback

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Drive:
    """One run of one session, shown by a reporter, its asks answered by an asker."""

    def __init__(self, session: Session, store: EventStore, reporter: Reporter, asker: Asker) -> None:
        self.session = session
        self.store = store
        self.reporter = reporter
        self.asker = asker
        self.seen = Scrollback(session.id)
        self._asking: list[asyncio.Task[None]] = []
        self._fault: BaseException | None = None
        self._watch: Watch | None = None
        self._from = START
        self._over = False

    async def prompt(self, text: str) -> RunOutcome:
        """Give the session a prompt and drive its run to the end."""
        if self.session.state.runs == 0:
            await self._catch_up(shown=True)
        return await self._to_the_end(lambda: self.session.prompt(text))

    async def resume(self) -> RunOutcome:
        """Go on with the open run. What is asked already is answered first; where nobody answers, it stays parked."""
        await self.session.read_mail()
        await self._catch_up(shown=False)
        for ask in list(self.session.state.asks.values()):
            if not await self._answered(ask):
                return self._still_parked()
        await self._catch_up(shown=True)
        return await self._to_the_end(self.session.resume)

    def _still_parked(self) -> RunOutcome:
        run = self.session.state.run
        assert run is not None
        outcome = RunOutcome(run_id=run.run_id, stop_reason=None, parked=True, usage=run.usage)
        self.reporter.end(outcome, self.seen)
        return outcome

    async def _to_the_end(self, start: Callable[[], Awaitable[RunOutcome]]) -> RunOutcome:
        """Drive, follow, and report the end. A fault while following stops the run and is raised."""
        with _stopped_by_signals(self.session):
            self._from = self.session.state.offset
            self._watch = self.session.watch()
            follower = asyncio.ensure_future(self._follow())
            try:
                outcome = await start()
            except BaseException:
                follower.cancel()
                await asyncio.wait([follower])
                raise
            finally:
                await self._end_watch()
            await follower
        if self._fault is not None:
            raise self._fault
        self.reporter.end(outcome, self.seen)
        return outcome

    async def _follow(self) -> None:
        try:
            async for envelope in self._envelopes():
                self._take(envelope, shown=True)
        except Exception as fault:  # a broken pipe, most often: the run must not go on unseen
            self._fault = fault
            self.session.cancel()
        finally:
            for task in self._asking:
                task.cancel()
            await asyncio.gather(*self._asking, return_exceptions=True)

    async def _envelopes(self) -> AsyncIterator[Envelope]:
        """What is published; what a slow follower missed is read from the log."""
        assert self._watch is not None
        while True:
            try:
                async for envelope in self._watch:
                    yield envelope
                return
            except WatchGap as gap:
                await self._watch.__aexit__(None, None, None)
                self._watch = self.session.watch()
                if self._over:
                    await self._end_watch()
                async for row in rows(self.store, self.session.id, max(self._from, gap.last_offset)):
                    yield envelope_of(row)

    async def _end_watch(self) -> None:
        """Nothing more will come; what is queued is still taken."""
        self._over = True
        if self._watch is not None:
            await self._watch.__aexit__(None, None, None)

    async def _catch_up(self, *, shown: bool) -> None:
        async for row in rows(self.store, self.session.id, self.seen.through):
            self._take(envelope_of(row), shown=shown)

    def _take(self, envelope: Envelope, *, shown: bool) -> None:
        if not self.seen.apply(envelope) or not shown:
            return
        self.reporter.event(envelope, self.seen)
        event = envelope.event
        if isinstance(event, AskOpened) and not event.ask.deferred:
            self._asking = [task for task in self._asking if not task.done()]
            self._asking.append(asyncio.ensure_future(self._answer_or_park(event.ask)))

    async def _answer_or_park(self, ask: Ask) -> None:
        try:
            if not await self._answered(ask):
                self.session.park()
        except Exception as fault:
            self._fault = fault
            self.session.cancel()

    async def _answered(self, ask: Ask) -> bool:
        """Have the ask answered, here or by whoever is faster. False where nobody answers and it stays open."""
        reply = await self._asked(ask)
        if ask.ask_id not in self.session.state.asks:
            self._say(ask, self.session.state.receipts.get(ask.ask_id))
            return True
        if reply is None:
            return False
        try:
            await self.session.answer(
                ask.ask_id, reply.verdict, principal=reply.principal, note=reply.note, scope=reply.scope
            )
        except AskIsSettled as fault:
            self._say(ask, fault.receipt)
        except AnswerRefused as fault:
            faults.say(str(fault))
        return True

    async def _asked(self, ask: Ask) -> Reply | None:
        """What the asker says. It is stopped when the ask is no longer open: then None."""
        self.reporter.clear()
        asking = asyncio.ensure_future(self.asker(ask))
        closing = asyncio.ensure_future(self._closed(ask.ask_id))
        try:
            await asyncio.wait([asking, closing], return_when=asyncio.FIRST_COMPLETED)
            return await asking if asking.done() else None
        finally:
            for task in (asking, closing):
                task.cancel()
            await asyncio.gather(asking, closing, return_exceptions=True)

    async def _closed(self, ask_id: AskID) -> None:
        """Wait until the ask is settled or withdrawn, by anybody."""
        while ask_id in self.session.state.asks:
            with contextlib.suppress(WatchGap):  # what was missed is in the state
                async with self.session.watch() as watch:
                    async for _ in watch:
                        if ask_id not in self.session.state.asks:
                            return
                return  # the session is closed

    def _say(self, ask: Ask, receipt: Receipt | None) -> None:
        """Say who answered in the place of this terminal. Nobody, where the ask was withdrawn."""
        if receipt is not None:
            self.reporter.clear()
            who, verdict = receipt.decided_by.name, receipt.verdict
            faults.say(f"{ask.tool} {ask.ask_id}: answered elsewhere: {verdict} by {who}")


@contextlib.contextmanager
def _stopped_by_signals(session: Session) -> Iterator[None]:
    """The first signal cancels the run, and what it did is recorded; the second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        signal.signal(number, lambda *_: _end_now(128 + number))
        session.cancel()

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


def _end_now(code: int) -> None:
    """End this process and the commands that it started, without a word to anybody."""
    for group in _child_groups():
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    os._exit(code)


def _child_groups() -> list[int]:
    """The process groups that this process's children lead, where the system says."""
    groups: list[int] = []
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            groups += [pid for pid in map(int, listing.read_text().split()) if os.getpgid(pid) == pid]
    return groups
