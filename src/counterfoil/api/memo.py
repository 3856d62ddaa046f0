"""What was made of a value a moment ago: an event that a hundred watchers get is encoded once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """The results of `make` for the last `size` values, by identity. A value is held as long as its result is, so that
    no other one can have its identity.
    """

    def __init__(self, make: Callable[[K], V], size: int = 256) -> None:
        self._make = make
        self._size = size
        self._made: OrderedDict[int, tuple[K, V]] = OrderedDict()

    def __call__(self, value: K) -> V:
        """What is made of `value`, which may not change any more."""
        found = self._made.get(id(value))
        if found is None:
            found = self._made[id(value)] = (value, self._make(value))
            if len(self._made) > self._size:
                self._made.popitem(last=False)
        return found[1]
