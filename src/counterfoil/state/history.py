"""What the model has been told: whole turns, each with all of its results, in order.

A turn enters history only when every one of its calls has a final result. So each history is valid for each
provider by construction: no result without its call, no call without its result, no text of the person between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from counterfoil.events import AssistantReplay, CallReplay, CallStatus, Part, PromptSource
from counterfoil.events.base import Value
from counterfoil.identity import Offset, ToolCallID


class HistoryCall(Value, frozen=True, kw_only=True):
    """One accepted call as its provider knows it (`replay`) and as we do."""

    tool_call_id: ToolCallID
    tool: str
    arguments: dict[str, Any]
    replay: CallReplay | None = None


class HistoryResult(Value, frozen=True, kw_only=True):
    """The final result of the call with this id, bounded for the model."""

    tool_call_id: ToolCallID
    status: CallStatus
    parts: tuple[Part, ...]

    @property
    def is_error(self) -> bool:
        """Whether the provider is told that the call failed."""
        return self.status != "ok"


class PromptItem(Value, frozen=True, kw_only=True, tag_field="item", tag="prompt"):
    """Input by the person or the harness."""

    offset: Offset
    parts: tuple[Part, ...]
    source: PromptSource = "human"


class TurnItem(Value, frozen=True, kw_only=True, tag_field="item", tag="turn"):
    """One accepted model turn. `results` stand in the order of `calls`, one for each."""

    offset: Offset
    text: str
    calls: tuple[HistoryCall, ...] = ()
    results: tuple[HistoryResult, ...] = ()
    replay: AssistantReplay | None = None


class SummaryItem(Value, frozen=True, kw_only=True, tag_field="item", tag="summary"):
    """What a compaction left of everything up to `offset`."""

    offset: Offset
    text: str


HistoryItem = PromptItem | TurnItem | SummaryItem


class History(msgspec.Struct):
    """The items in order. `generation` changes whenever something other than an append happened."""

    items: list[HistoryItem] = msgspec.field(default_factory=list)
    generation: int = 0

    def append(self, item: HistoryItem) -> None:
        """Add `item` at the end."""
        self.items.append(item)

    def compact(self, through: Offset, summary: str) -> None:
        """Replace the item of log offset `through`, and all that stand before it, by `summary`.

        Items are cut by their place: a steer that came while its turn was made stands behind that turn, and has
        a lower offset. Where no item has this offset, the leading items up to it are replaced. Raises
        `ValueError` where that is none.
        """
        offsets = [item.offset for item in self.items]
        if through in offsets:
            end = offsets.index(through) + 1
        else:
            end = next((at for at, offset in enumerate(offsets) if offset > through), len(offsets))
        if not end:
            raise ValueError("no item of history is in the range")
        self.items[:end] = [SummaryItem(offset=through, text=summary)]
        self.generation += 1


class EncodedHistory:
    """Remembers what each item is on one provider's wire, so that an item is encoded once in its life.

    Belongs to one session and one provider. The wire form of an item is a list of JSON values as raw bytes.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._done = 0
        self._wire: list[msgspec.Raw] = []

    def messages(self, history: History, encode: Callable[[HistoryItem], list[msgspec.Raw]]) -> list[msgspec.Raw]:
        """The wire form of all of `history`. The list is the memo's own: don't change it."""
        if history.generation != self._generation or len(history.items) < self._done:
            self._generation, self._done, self._wire = history.generation, 0, []
        for item in history.items[self._done :]:
            self._wire.extend(encode(item))
            self._done += 1
        return self._wire
