"""One thread that does one piece of work after the other, and a way to wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from counterfoil.errors import StoreError

T = TypeVar("T")

PATIENCE = 0.001
"""Seconds. A durable append takes about 0.2 ms on a good disk; being woken through the event loop takes half as long
again. So a caller of `run_quick` waits this long at most in its own thread, and goes through the loop after that."""


class _Job(Generic[T]):
    """A piece of work and what came of it. The worker ends it; the waiter may or may not be there any more."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._result: T | None = None
        self._fault: BaseException | None = None
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None
        self.ended = False
        self.lock = threading.Lock()
        self.lock.acquire()

    def do(self) -> None:
        try:
            self._result = self._work()
        except BaseException as fault:
            self._fault = fault
        self.ended = True
        self.lock.release()
        if self._waiter is not None:
            loop, future = self._waiter
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_wake, future)

    async def wait(self) -> T:
        """Wait through the event loop. When the waiter is cancelled, the work goes on."""
        if not self.ended:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            self._waiter = loop, future  # the worker looks at it after setting `ended`, we look the other way round
            if not self.ended:
                await future
        return self.outcome()

    def outcome(self) -> T:
        try:
            if self._fault is not None:
                raise self._fault
            return self._result  # type: ignore[return-value]
        finally:
            self._fault = None


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Worker:
    """The thread. Started at first use, ended by `close`; it never keeps the process alive."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self._quick = True

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in the thread and give its result or raise its error. Raises `StoreError` when closed."""
        return await self._put(work).wait()

    async def run_quick(self, work: Callable[[], T]) -> T:
        """The same for work that is mostly done within `PATIENCE`: no detour through the event loop then.

        Work that took longer sends the next one through the loop at once, until one is quick again.
        """
        patient = self._quick and self._jobs.empty()
        job = self._put(lambda: self._timed(work))
        if patient and job.lock.acquire(timeout=PATIENCE):
            return job.outcome()
        return await job.wait()

    def later(self, work: Callable[[], Any]) -> None:
        """Do `work` after what was asked for before, and tell nobody."""
        if not self._closed:
            self._put(work)

    async def close(self, last: Callable[[], None]) -> None:
        """Finish what was asked for, do `last`, end the thread. Closing twice is no matter."""
        if self._closed or os.getpid() != self._pid:
            return
        job = self._put(last) if self._thread is not None else None
        self._closed = True
        self._jobs.put(None)
        if job is not None:
            await job.wait()

    def _timed(self, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        try:
            return work()
        finally:
            self._quick = time.perf_counter() - began < PATIENCE

    def _put(self, work: Callable[[], T]) -> _Job[T]:
        if self._closed:
            raise StoreError("the store is closed", hint="open it again")
        if os.getpid() != self._pid:
            raise StoreError("the store was opened before this process was forked", hint="open it in the fork")
        if self._thread is None:
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True)
            self._thread.start()
        job = _Job(work)
        self._jobs.put(job)
        return job


def _work(jobs: queue.SimpleQueue[_Job[Any] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.do()
        del job
