"""Those who wait for mail: each looks for itself, and looks again when it is woken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from counterfoil.errors import StoreError

T = TypeVar("T")
POLL = 0.04
"""Seconds between two looks at a database that other processes write to."""


class Waiters:
    """Waits until something can be seen; whoever changes what may be seen calls `wake`."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    async def until(self, look: Callable[[], Awaitable[T | None]]) -> T:
        """What `look` sees, once that isn't None. Raises what `look` raises, and what `fail` was given."""
        while True:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)  # before the look: what comes after it wakes
            try:
                seen = await look()
                if seen is not None:
                    return seen
                await woken
            finally:
                self._waiting.discard(woken)
                woken.cancel()

    def wake(self) -> None:
        """Everybody looks again."""
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    def fail(self, fault: StoreError) -> None:
        """Nobody will see anything any more."""
        for woken in self._waiting:
            if not woken.done():
                woken.set_exception(fault)
                woken.exception()  # heard here: who is looking just now finds out by itself


class Poll:
    """The same over something that nobody calls us about: while anybody waits, one task looks for a change.

    `look` gives a value that changes with whatever may be seen.
    """

    def __init__(self, look: Callable[[], Awaitable[object]]) -> None:
        self._look = look
        self._waiters = Waiters()
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    async def until(self, look: Callable[[], Awaitable[T | None]]) -> T:
        """See `Waiters.until`."""
        self._count += 1
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())
        try:
            return await self._waiters.until(look)
        finally:
            self._count -= 1
            if not self._count:
                task, self._task = self._task, None
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        """The first look wakes too: what was there before is no matter of this task's."""
        known: object = None
        try:
            while True:
                now = await self._look()
                if now != known:
                    known = now
                    self._waiters.wake()
                await asyncio.sleep(POLL)
        except StoreError as fault:
            self._waiters.fail(fault)
