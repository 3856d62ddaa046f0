"""A model that says what the test decides, turn by turn, and a store that can die in the middle of an append."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.errors import ProviderError
from counterfoil.events import StoredEvent, Usage
from counterfoil.identity import Offset
from counterfoil.ports import (
    EventStore,
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
from counterfoil.stores.sqlite import SqliteStore

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
        await asyncio.sleep(0)
        if step == "cut":
            raise ProviderError("stream_cut", "the stream ended early", permanent=False)
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
            pairing_id=pairing or f"made-{position}",
            made=not pairing,
            tool=tool,
            arguments=arguments if isinstance(arguments, dict) else None,
            problem=None if isinstance(arguments, dict) else "not an object",
        )
        for position, (tool, pairing, arguments) in enumerate(calls)
    )
    usage = Usage(input_tokens=3, output_tokens=2, requests=1)
    return ModelTurn(text="So: calls.", calls=proposed, usage=usage, stop_reason="tool_use")


class Died(BaseException):
    """The process is gone, as far as the session can tell."""


class Fuse:
    """Burns down with each append: the process dies at the last one, before it is written, or after and untold."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False
        self.lease: Lease | None = None

    async def burn(self, lease: Lease, append: Callable[[], Awaitable[list[StoredEvent]]]) -> list[StoredEvent]:
        """Do `append`, if the process lives. Others get their turn before and after."""
        self.lease = lease
        if self.left is not None:
            self.left -= 1
        dies = self.left is not None and self.left <= 0
        await asyncio.sleep(0)
        if dies and not self.after:
            raise Died
        stored = await append()
        await asyncio.sleep(0)
        if dies:
            raise Died
        return stored

    async def bury(self, store: EventStore) -> None:
        """The dead holder's lease is free again."""
        self.left = None
        assert self.lease is not None
        await store.release(self.lease)


class DyingMemory(MemoryStore):
    """A memory store with a fuse."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        go = super().append
        return await self._fuse.burn(lease, lambda: go(lease, expected, batch, summary))


class DyingDatabase(SqliteStore):
    """A database with a fuse."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        go = super().append
        return await self._fuse.burn(lease, lambda: go(lease, expected, batch, summary))
