"""Every adapter of the port `EventStore`, as fixtures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from counterfoil.ports import EventStore, Lease
from counterfoil.stores.memory import MemoryStore
from counterfoil.stores.sqlite import SqliteStore
from tests.stores.made import ME, new_id


class Adapter:
    """One kind of store: `store` is open, `reopen` closes it and opens it again where it outlives closing."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self.store: EventStore = self._open()

    def _open(self) -> EventStore:
        return SqliteStore(self._folder / "state") if self.name == "sqlite" else MemoryStore()

    async def reopen(self) -> EventStore:
        await self.store.close()
        if self.name == "sqlite":
            self.store = self._open()
        return self.store


@pytest.fixture(params=["memory", "sqlite"])
async def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Adapter]:
    made = Adapter(request.param, tmp_path)
    yield made
    await made.store.close()


@pytest.fixture
def store(adapter: Adapter) -> EventStore:
    return adapter.store


@pytest.fixture
async def lease(store: EventStore) -> Lease:
    """A held session with no events yet."""
    return await store.acquire(new_id(), ME)
