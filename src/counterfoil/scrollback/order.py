"""The places of a scrollback: what stands where, under which key, at which version, and what a step changed of it."""

from __future__ import annotations

from typing import Generic, TypeVar

from counterfoil.events.base import Value
from counterfoil.scrollback.views import EntryKey, Source

T = TypeVar("T")


class Change(Value, frozen=True, kw_only=True):
    """What one event changed: true where the event was new, false where it was applied before.

    A client paints anew the keys in `added` and `changed`, and what streams if `live`, and its head line if `head`.
    `removed`: evidence that stood alone until its card opened; the card has it now.
    """

    fresh: bool = True
    added: tuple[EntryKey, ...] = ()
    changed: tuple[EntryKey, ...] = ()
    removed: tuple[EntryKey, ...] = ()
    live: bool = False
    head: bool = False

    def __bool__(self) -> bool:
        return self.fresh


NOTHING = Change(fresh=False)
"""The event was applied before, or is none of this scrollback's."""


class Order(Generic[T]):
    """Places are only ever added, so that a position stays. Every operation costs the same however many there are."""

    def __init__(self) -> None:
        self._keys: list[EntryKey] = []
        self._items: list[T | None] = []
        self._versions: list[int] = []
        self._at: dict[EntryKey, int] = {}
        self._added: list[EntryKey] = []
        self._changed: list[EntryKey] = []
        self._removed: list[EntryKey] = []

    def __len__(self) -> int:
        return len(self._keys)

    def key_for(self, source: Source, suffix: str = "") -> EntryKey:
        """A key that no place has: of the event's identity, and of its place where it has no identity of its own."""
        if source.offset is not None:
            name = f"{source.session_id}/{source.offset}{suffix}"
        else:
            name = f"{source.session_id}/{source.run_id or ''}/{source.seq or ''}{suffix}"
        return EntryKey(name if name not in self._at else f"{name}~{len(self._keys)}")

    def put(self, key: EntryKey, item: T) -> None:
        """Add a place at the end."""
        self._at[key] = len(self._keys)
        self._keys.append(key)
        self._items.append(item)
        self._versions.append(0)
        self._added.append(key)

    def touch(self, key: EntryKey, item: T | None = None) -> None:
        """What stands at `key` is to be painted anew; where `item` is given, it stands there now."""
        at = self._at[key]
        self._versions[at] += 1
        if item is not None:
            self._items[at] = item
        if key not in self._changed and key not in self._added:
            self._changed.append(key)

    def remove(self, key: EntryKey) -> None:
        """Nothing stands at `key` any more. The place stays, empty."""
        at = self._at[key]
        self._items[at] = None
        self._versions[at] += 1
        self._removed.append(key)

    def taken(self, *, live: bool, head: bool) -> Change:
        """What changed since this was asked last."""
        if not (self._added or self._changed or self._removed):
            return _PLAIN[live, head]
        change = Change(
            added=tuple(self._added),
            changed=tuple(self._changed),
            removed=tuple(self._removed),
            live=live,
            head=head,
        )
        self._added.clear()
        self._changed.clear()
        self._removed.clear()
        return change

    def position(self, key: EntryKey) -> int | None:
        """Where `key` stands: the same for good."""
        return self._at.get(key)

    def key(self, position: int) -> EntryKey:
        """The key of the place at `position`."""
        return self._keys[position]

    def version(self, position: int) -> int:
        """Another number after each change."""
        return self._versions[position]

    def item(self, position: int) -> T | None:
        """What stands at `position`."""
        return self._items[position]

    def items(self) -> list[T]:
        """Everything that stands somewhere, in order."""
        return [item for item in self._items if item is not None]


_PLAIN = {(live, head): Change(live=live, head=head) for live in (False, True) for head in (False, True)}
