"""A model that says what the test decides, turn by turn, and a store that can die in the middle of an append."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from counterfoil.errors import ProviderError
from counterfoil.events import StoredEvent, Usage
from counterfoil.identity import Offset
from counterfoil.ports import (
    Lease,
    ModelRequest,
    ModelTurn,
    ProposedCall,
    SessionSummary,
    Stamped,
    StreamItem,
    TextChunk,
)
from counterfoil.providers.scripted import check_history
from counterfoil.stores.memory import MemoryStore

ORIGIN = "improvised@test"


class Improviser:
    """Plays `plan`, an item a request; then ends each run with a text. As strict about history as a real API."""

    def __init__(self) -> None:
        self.plan: list[Any] = []

    name = "improvised"
    origin = ORIGIN

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        check_history(request.history)
        if not request.tools:
            yield ModelTurn(text="A summary.")
            return
        step: Any = self.plan.pop(0) if self.plan else "text"
        yield TextChunk(text="So: ")
        if step == "error":
            raise ProviderError("overloaded", "too many requests", permanent=False, retry_after=0.0)
        if step == "fatal":
            raise ProviderError("auth", "no", permanent=True)
        if step == "empty":
            yield ModelTurn()
        elif step == "text":
            yield ModelTurn(text="So: done.", wire=msgspec.Raw(b'{"role":"assistant","content":"So: done."}'))
        else:
            yield _turn(step)

    async def close(self) -> None:
        """Nothing to give up."""


def _turn(calls: Sequence[tuple[str, str, Any]]) -> ModelTurn:
    proposed = tuple(
        ProposedCall(
            pairing_id=pairing,
            tool=tool,
            arguments=arguments if isinstance(arguments, dict) else None,
            problem=None if isinstance(arguments, dict) else "not an object",
        )
        for tool, pairing, arguments in calls
    )
    usage = Usage(input_tokens=3, output_tokens=2, requests=1)
    return ModelTurn(text="So: calls.", calls=proposed, usage=usage, stop_reason="tool_use")


class Died(BaseException):
    """The process is gone, as far as the session can tell."""


class DyingStore(MemoryStore):
    """Dies at an append that is `fuse` appends away: before it is written, or after and without telling."""

    def __init__(self) -> None:
        super().__init__()
        self.fuse: int | None = None
        self.after = False
        self.lease: Lease | None = None

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        self.lease = lease
        if self.fuse is not None:
            self.fuse -= 1
        dies = self.fuse is not None and self.fuse <= 0
        if dies and not self.after:
            raise Died
        stored = await super().append(lease, expected, batch, summary)
        if dies:
            raise Died
        return stored

    async def bury(self) -> None:
        """The dead holder's lease is free again."""
        self.fuse = None
        assert self.lease is not None
        await self.release(self.lease)
