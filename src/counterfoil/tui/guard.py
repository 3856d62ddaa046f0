"""The input guard: no key that was typed before a question could be read answers it."""

from __future__ import annotations

from collections.abc import Callable

QUIET = 0.35
"""Seconds without a key, after the question stands on the screen, before a key may answer it."""


class Guard:
    """Lets a key through when the question has been seen for a moment and nobody was in the middle of typing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None

    def shown(self) -> None:
        """The question stands on the screen now."""
        self._since = self._clock()

    def typing(self) -> None:
        """A key came that answers nothing: somebody types, and what follows is no answer before there is a pause."""
        if self._since is not None:
            self._since = self._clock()

    def admits(self) -> bool:
        """Whether a key that comes now may answer. One that may not starts the wait anew."""
        now = self._clock()
        if self._since is not None and now - self._since >= QUIET:
            return True
        self.typing()
        return False
