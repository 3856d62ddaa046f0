"""One thread that does one piece of work after the other, and two ways to wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from counterfoil.errors import StoreError
from counterfoil.stores.faults import closed

T = TypeVar("T")

PATIENCE = 0.001
"""Seconds. A durable append takes about 0.2 ms on a good disk; being woken through the event loop takes half as long
again. So a caller of `run_quick` waits this long at most in its own thread, and goes through the loop after that."""

TURN = 0.002
"""Seconds after which a caller who appends without a pause gives the event loop a turn."""


class _Job(Generic[T]):
    """A piece of work and what came of it. The worker ends it; the waiter may or may not be there any more."""

    def __init__(self, work: Callable[[], T], at_end: Callable[[float], None] | None = None) -> None:
        self._work = work
        self._at_end = at_end
        self._result: T | None = None
        self._fault: BaseException | None = None
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.ended = False

    def do(self) -> None:
        began = time.perf_counter()
        try:
            self._result = self._work()
        except BaseException as fault:
            self._fault = fault
        self.ended = True
        if self._at_end is not None:
            self._at_end(time.perf_counter() - began)
        for loop, future in self._waiters:  # looked at after `ended` is set; who waits does it the other way round
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_wake, future)

    async def wait(self) -> T:
        """Wait through the event loop. When the waiter is cancelled, the work goes on."""
        if not self.ended:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._waiters.append((loop, future))
            if not self.ended:
                await future
        try:
            if self._fault is not None:
                raise self._fault
            return self._result  # type: ignore[return-value]
        finally:
            self._fault = None


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Bell:
    """A pipe that wakes a thread. A pipe, because a writer that goes to sleep hands its processor to the reader: a
    round trip takes 10 µs where locks and queues take 20 to 60.
    """

    def __init__(self) -> None:
        self._ear, self._cord = os.pipe()
        os.set_blocking(self._cord, False)
        self._poll = select.poll()
        self._poll.register(self._ear, select.POLLIN)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full of rings
            os.write(self._cord, b"!")

    def wait(self) -> None:
        os.read(self._ear, 4096)

    def wait_at_most(self, seconds: float) -> None:
        if self._poll.poll(seconds * 1000):
            os.read(self._ear, 4096)

    def close(self) -> None:
        os.close(self._ear)
        os.close(self._cord)


class Worker:
    """The thread. Started at first use, ended by `close`; it never keeps the process alive."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid = os.getpid()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._jobs: deque[_Job[Any] | None] = deque()
        self._last: _Job[Any] | None = None
        self._end: _Job[None] | None = None
        self._quick = True
        self._yielded = 0.0

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in the thread and give its result or raise its error. Raises `StoreError` when closed."""
        return await self._put(_Job(work)).wait()

    async def run_quick(self, work: Callable[[], T]) -> T:
        """The same for work that is mostly done within `PATIENCE`: no detour through the event loop then.

        Work that took longer sends the next one through the loop at once, until one is quick again.
        """
        patient = self._quick and (self._last is None or self._last.ended)
        job = self._put(_Job(work, self._tell))
        if patient:
            self._done.wait_at_most(PATIENCE)  # a ring may be an old one: only the job itself tells
            if job.ended and time.perf_counter() - self._yielded > TURN:
                await asyncio.sleep(0)
                self._yielded = time.perf_counter()
        return await job.wait()

    def later(self, work: Callable[[], Any]) -> None:
        """Do `work` after what was asked for before, and tell nobody."""
        if not self._closed:
            self._put(_Job(work))

    async def close(self, last: Callable[[], None]) -> None:
        """Finish what was asked for, do `last`, end the thread. Closing twice is no matter: both wait for the end."""
        if os.getpid() != self._pid:
            return
        if not self._closed:
            self._closed = True
            if self._thread is None:
                return
            self._end = _Job(last)
            self._jobs.extend((self._end, None))
            self._asked.ring()
        if self._end is None:
            return
        try:
            await self._end.wait()
        finally:
            if self._end.ended:
                self._dispose()

    def _dispose(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()  # it ends at once now; only then are its bells taken away
            self._asked.close()
            self._done.close()

    def _tell(self, took: float) -> None:
        self._quick = took < PATIENCE
        self._done.ring()

    def _put(self, job: _Job[T]) -> _Job[T]:
        if self._closed:
            raise closed()
        if os.getpid() != self._pid:
            raise StoreError("the store was opened before this process was forked", hint="open it in the fork")
        if self._thread is None:
            self._asked, self._done = _Bell(), _Bell()
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._last = job
        self._jobs.append(job)
        self._asked.ring()
        return job

    def _work(self) -> None:
        while True:
            self._asked.wait()
            while self._jobs:
                job = self._jobs.popleft()
                if job is None:
                    return
                job.do()
                del job
