"""Time, injected."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time, injected."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Used for back-off alone, never as synchronisation."""
        ...
