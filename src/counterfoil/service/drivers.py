"""The sessions that this process drives: opened when needed, kept while a run goes, given back when idle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakValueDictionary

from counterfoil.engine import Engine, NewSession, RunOutcome, Session
from counterfoil.errors import CounterfoilError, NotResumable, SessionBusy, ShuttingDown, TooMuch
from counterfoil.events import Part, RunStarted
from counterfoil.identity import RunID, SessionID

log = logging.getLogger("counterfoil.service")

IDLE = 60.0
"""Seconds after which a session that nobody uses is closed, so that other processes may drive it."""
LOOK = 15.0
OPEN = 500
"""So many sessions are open at most: beyond that the one that was idle longest is closed, or no more is opened."""
PARKING = 5.0
"""Seconds for runs that wait at a question to leave it open."""
PARK = 0.1
"""Seconds between two looks, while the service drains, for runs that have come to a question."""


class _Driver:
    """One open session, how many use it, its run, and since when nobody does."""

    def __init__(self, session: Session, now: float) -> None:
        self.session = session
        self.uses = 0
        self.run: asyncio.Task[RunOutcome] | None = None
        self.runs_before = 0
        self.since = now

    @property
    def ending(self) -> bool:
        """Whether the log has the end of the run in hand already: what is left of it takes a moment."""
        state = self.session.state
        return self.run is not None and state.run is None and state.runs > self.runs_before

    async def ended(self) -> None:
        """Wait for a run that is ending. Whoever saw its end may go on at once."""
        while self.run is not None and self.ending:
            await asyncio.wait([self.run])


class Drivers:
    """Opens sessions on demand, one driver for each. Close it at the end: what runs is parked or ended."""

    def __init__(self, engine: Engine, opened: Callable[[Session], None] = lambda _: None) -> None:
        """`opened` is called with each session that is opened here."""
        self._engine = engine
        self._tell = opened
        self._open: dict[SessionID, _Driver] = {}
        self._locks: WeakValueDictionary[SessionID, asyncio.Lock] = WeakValueDictionary()
        self.closing = False
        self._reaper: asyncio.Task[None] | None = None
        self.opened = asyncio.Condition()
        """Notified whenever a session is opened or closed here."""

    def peek(self, session: SessionID) -> Session | None:
        """The session, where it is open here."""
        driver = self._open.get(session)
        return driver.session if driver is not None else None

    @property
    def count(self) -> int:
        """How many sessions are open here."""
        return len(self._open)

    @property
    def running_count(self) -> int:
        """How many runs are driven here."""
        return sum(driver.run is not None for driver in self._open.values())

    def running(self, session: SessionID) -> bool:
        """Whether a run of it is driven here."""
        driver = self._open.get(session)
        return driver is not None and driver.run is not None

    async def ended(self, session: SessionID) -> None:
        """Wait for the end of the run that is driven here. Raises what it couldn't record."""
        driver = self._open.get(session)
        if driver is not None and driver.run is not None:
            await asyncio.shield(driver.run)

    async def create(self, new: NewSession) -> Session:
        """Make a session and keep it open."""
        self._require_open()
        await self._make_room()
        session = await self._engine.create(new)
        await self._keep(session)
        return session

    @contextlib.asynccontextmanager
    async def using(self, session: SessionID) -> AsyncIterator[Session]:
        """The open session, for as long as the block lasts. Raises `SessionHeld`, `SessionNotFound`, `NotResumable`."""
        driver = await self._enter(session)
        try:
            yield driver.session
        finally:
            self._leave(driver)

    async def prompt(self, session: SessionID, parts: tuple[Part, ...]) -> RunID:
        """Start a run and return its id once it is recorded. Raises `SessionBusy` while one is driven."""
        driver = await self._enter(session)
        try:
            await driver.ended()
            if driver.run is not None:
                raise SessionBusy(f"session {session} is running", hint="steer it, or wait for its end")
            return await self._started(driver, lambda: driver.session.prompt(parts))
        finally:
            self._leave(driver)

    async def resume(self, session: SessionID) -> RunID:
        """Go on with the run that was left open. Raises `NotResumable` where there is none."""
        driver = await self._enter(session)
        try:
            await driver.session.read_mail()
            run = driver.session.state.run
            if run is None:
                raise NotResumable(f"session {session} has no open run", hint="give it a prompt instead")
            if driver.run is None:
                self._begin(driver, driver.session.resume, runs_before=driver.session.state.runs - 1)
            return run.run_id
        finally:
            self._leave(driver)

    async def _started(self, driver: _Driver, drive: Callable[[], Awaitable[RunOutcome]]) -> RunID:
        """Begin the run; wait until it is recorded, or ended before that. Raises what ended it."""
        async with driver.session.watch() as stream:
            run = self._begin(driver, drive, runs_before=driver.session.state.runs)
            first = asyncio.ensure_future(_run_started(stream))
            try:
                await asyncio.wait([run, first], return_when=asyncio.FIRST_COMPLETED)
                if first.done() and not first.cancelled() and first.exception() is None:
                    return first.result()
                return (await asyncio.shield(run)).run_id
            finally:
                first.cancel()
                await asyncio.gather(first, return_exceptions=True)

    def _begin(
        self, driver: _Driver, drive: Callable[[], Awaitable[RunOutcome]], *, runs_before: int
    ) -> asyncio.Task[RunOutcome]:
        async def owned() -> RunOutcome:
            try:
                return await drive()
            finally:
                driver.run = None
                self._leave(driver)

        driver.uses += 1
        driver.runs_before = runs_before
        driver.run = asyncio.ensure_future(owned())
        driver.run.add_done_callback(_told)
        return driver.run

    async def _enter(self, session: SessionID) -> _Driver:
        self._require_open()
        if session not in self._open:
            await self._make_room()
        async with self._locks.setdefault(session, asyncio.Lock()):
            driver = self._open.get(session)
            if driver is None:
                driver = await self._keep(await self._engine.open(session))
            driver.uses += 1
            return driver

    def _require_open(self) -> None:
        if self.closing:
            raise ShuttingDown("the service is shutting down", hint="try again when it is back")

    async def _keep(self, session: Session) -> _Driver:
        driver = self._open[session.id] = _Driver(session, asyncio.get_running_loop().time())
        self._tell(session)
        if self._reaper is None:
            self._reaper = asyncio.ensure_future(self._reap())
        async with self.opened:
            self.opened.notify_all()
        return driver

    async def _make_room(self) -> None:
        """Close the session that was idle longest where too many are open. Raises `TooMuch` where all are in use."""
        while len(self._open) >= OPEN:
            idle = [driver for driver in self._open.values() if not driver.uses]
            if not idle:
                raise TooMuch(f"{OPEN} sessions are in use", hint="try again when one of them has ended")
            await self.release(min(idle, key=lambda driver: driver.since).session.id)

    def _leave(self, driver: _Driver) -> None:
        driver.uses -= 1
        driver.since = asyncio.get_running_loop().time()

    async def _reap(self) -> None:
        """Close what nobody has used for a while."""
        while True:
            await asyncio.sleep(LOOK)
            now = asyncio.get_running_loop().time()
            for session, driver in list(self._open.items()):
                if not driver.uses and now - driver.since > IDLE:
                    try:
                        await self.release(session)
                    except CounterfoilError as fault:
                        log.warning("session %s could not be closed: %s", session, fault)

    async def release(self, session: SessionID) -> bool:
        """Close the session here, where nobody uses it. False where somebody does."""
        async with self._locks.setdefault(session, asyncio.Lock()):
            driver = self._open.get(session)
            if driver is None:
                return True
            await driver.ended()
            if driver.uses:
                return False
            del self._open[session]
            await driver.session.close()
        async with self.opened:
            self.opened.notify_all()
        return True

    async def close(self, grace: float = 5.0) -> None:
        """Take no more; park runs that wait for a person, give others `grace` seconds, then end them."""
        self.closing = True
        if self._reaper is not None:
            self._reaper.cancel()
            await asyncio.gather(self._reaper, return_exceptions=True)
        runs = [driver.run for driver in self._open.values() if driver.run is not None]
        await self._parked(grace)
        for session in list(self._open):
            try:
                await self._open.pop(session).session.close()
            except CounterfoilError as fault:
                log.warning("session %s could not be closed: %s", session, fault)
        await asyncio.gather(*runs, return_exceptions=True)
        async with self.opened:
            self.opened.notify_all()

    async def _parked(self, grace: float) -> None:
        """Wait until no run goes on, for `grace` seconds at most. One that comes to a question meanwhile is parked, for
        which there are `PARKING` seconds in any case.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while runs := [driver.run for driver in self._open.values() if driver.run is not None]:
            for driver in self._open.values():
                driver.session.park()
            asking = any(driver.run is not None and driver.session.state.asks for driver in self._open.values())
            if (left := began + (max(grace, PARKING) if asking else grace) - loop.time()) <= 0:
                return
            await asyncio.wait(runs, timeout=min(left, PARK), return_when=asyncio.FIRST_COMPLETED)


async def _run_started(stream: AsyncIterator[object]) -> RunID:
    async for envelope in stream:
        event = getattr(envelope, "event", None)
        if isinstance(event, RunStarted):
            return event.run_id
    raise CounterfoilError("the session was closed before its run began", hint="try again")


def _told(run: asyncio.Task[RunOutcome]) -> None:
    """A fault that no event tells is in the log of the program at least."""
    if not run.cancelled() and (fault := run.exception()) is not None:
        log.error("a run ended with %s: %s", type(fault).__name__, fault)
