"""The machine's clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The ordinary `Clock`."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
