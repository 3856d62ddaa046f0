"""What was painted, kept: the lines of each entry once per version and look, bounded by lines in all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from textual.strip import Strip


class LineCache:
    """The lines of entries. An entry has one place: a new version or look takes the place of the old."""

    def __init__(self, most: int = 40_000) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[Hashable, list[Strip]]] = OrderedDict()
        self.lines = 0
        """Lines that are kept now."""
        self.painted = 0
        """Entries that were painted in all: what the cache saves shows in it."""

    def get(self, key: Hashable, look: Hashable, paint: Callable[[], list[Strip]]) -> list[Strip]:
        """The lines for `key` as `look` has it; painted where they aren't kept."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] == look:
            self._kept.move_to_end(key)
            return kept[1]
        lines = paint()
        self.painted += 1
        if kept is not None:
            self.lines -= len(kept[1])
        self._kept[key] = (look, lines)
        self._kept.move_to_end(key)
        self.lines += len(lines)
        while self.lines > self._most and len(self._kept) > 1:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.lines -= len(dropped)
        return lines
