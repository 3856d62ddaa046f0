"""State directories that the tests of the SQLite store look at from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.errors import StoreError
from counterfoil.identity import START, SessionID
from counterfoil.stores import open_store
from tests.stores.made import ME, new_id, note, summary_of


def child(folder: Path, command: str, session: SessionID) -> list[str]:
    """Run child.py to its end and give the lines that it prints."""
    command_line = [sys.executable, "-m", "tests.stores.child", str(folder), command, session]
    root = Path(__file__).parents[2]
    return subprocess.run(command_line, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()


async def one_session(folder: Path, *texts: str) -> SessionID:
    """A closed store with one session of these notices."""
    store, session = open_store(folder), new_id()
    lease = await store.acquire(session, ME)
    await store.append(lease, START, [note(text) for text in texts], summary_of(session))
    await store.release(lease)
    await store.close()
    return session


async def fault_of(folder: Path) -> StoreError:
    """What opening a store there says."""
    store = open_store(folder)
    with pytest.raises(StoreError) as caught:
        await store.acquire(new_id(), ME)
    with pytest.raises(StoreError) as read:
        await store.sessions()
    assert str(read.value) == str(caught.value)
    await store.close()
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value
