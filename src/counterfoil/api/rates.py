"""How often somebody may: buckets that fill with time. Values in, values out; time is what the caller says it is."""

from __future__ import annotations

from collections import OrderedDict

MOST = 10_000
"""So many keys are remembered; the one that was idle longest is forgotten, which gives it a full bucket again."""


class Buckets:
    """For each key a bucket of `burst` drops, which `rate` drops a second fill up again. `rate` 0: no limit."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, now: float) -> float:
        """Seconds until there is a drop for this key; 0 where there is one. Takes none."""
        if not self._rate:
            return 0.0
        return max(0.0, (1.0 - self._level(key, now)) / self._rate)

    def take(self, key: str, now: float) -> float:
        """Take a drop. Returns 0, or the seconds until there is one: then none is taken."""
        wait = self.wait(key, now)
        if self._rate and not wait:
            self._left[key] = (self._level(key, now) - 1.0, now)
            self._left.move_to_end(key)
            while len(self._left) > MOST:
                self._left.popitem(last=False)
        return wait

    def _level(self, key: str, now: float) -> float:
        level, since = self._left.get(key, (self._burst, now))
        return min(self._burst, level + (now - since) * self._rate)
