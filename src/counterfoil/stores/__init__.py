"""Stores: adapters of the port `EventStore`."""

from __future__ import annotations

from pathlib import Path

from counterfoil.stores.sqlite import SqliteStore


def open_store(state_dir: Path) -> SqliteStore:
    """The embedded store of a state directory. Its file is opened, and made where needed, at first use."""
    return SqliteStore(state_dir)


__all__ = ["SqliteStore", "open_store"]
