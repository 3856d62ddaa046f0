"""What holds between real processes: kills, races for a session, and starts on one fresh directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.errors import SessionHeld
from counterfoil.identity import Offset, SessionID
from counterfoil.ports import Holder
from counterfoil.stores import locks, open_store
from counterfoil.stores.rows import verify
from tests.stores.made import ME, YOU, new_id, note

pytestmark = pytest.mark.crash

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Start child.py on the state directory. Whatever is left at the end is killed."""
    children: list[subprocess.Popen[str]] = []

    def start(command: str, session: SessionID) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.child", str(tmp_path / "state"), command, session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        kill_group(child)
        assert child.stdin is not None and child.stdout is not None
        child.stdin.close()
        child.stdout.close()


def kill_group(child: subprocess.Popen[str]) -> None:
    """Kill the child with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


async def test_what_was_acknowledged_is_there_after_a_kill_and_the_chain_holds(spawn: Spawn, tmp_path: Path) -> None:
    session = new_id()
    for appends in (1, 7, 40):
        session = new_id()
        child = spawn("append", session)
        acknowledged = [int(line(child)) for _ in range(appends)]
        child.send_signal(signal.SIGKILL)
        assert child.stdout is not None
        acknowledged += [int(text) for text in child.stdout.read().split()]
        child.wait()
        store = open_store(tmp_path / "state")
        rows = await store.read(session, limit=100_000)
        assert len(rows) >= acknowledged[-1]
        assert len(rows) % 3 == 0  # a batch is there as a whole or not at all
        assert verify(rows) is None
        lease = await store.acquire(session, ME)
        more = await store.append(lease, rows[-1].offset, [note("on")])
        assert verify(rows + more) is None
        await store.close()


@pytest.mark.parametrize("how", ["hold", "hold-with-child"])
async def test_s6_a_killed_holder_has_lost_the_session_at_once(spawn: Spawn, tmp_path: Path, how: str) -> None:
    session = new_id()
    child = spawn(how, session)
    fence = int(line(child))
    store = open_store(tmp_path / "state")
    with pytest.raises(SessionHeld) as caught:
        await store.acquire(session, ME)
    assert f"child (process {child.pid} on test-host)" in caught.value.message
    child.send_signal(signal.SIGKILL)  # alone: what it started lives on
    child.wait()
    lease = await store.acquire(session, ME)
    assert lease.fence > fence
    await store.close()


async def test_s6_one_of_two_processes_gets_a_session_and_nothing_interleaves(spawn: Spawn, tmp_path: Path) -> None:
    session = new_id()
    children = [spawn("race", session) for _ in range(2)]
    assert [line(child) for child in children] == ["ready", "ready"]
    for child in children:
        tell(child)
    said = {child.pid: line(child) for child in children}
    (winner,) = [child for child in children if said[child.pid].startswith("fence ")]
    (loser,) = [child for child in children if child is not winner]
    assert f"process {winner.pid} on test-host" in said[loser.pid]
    store = open_store(tmp_path / "state")
    (row,) = await store.read(session)
    assert str(winner.pid).encode() in row.public
    tell(winner)
    assert winner.wait() == 0
    lease = await store.acquire(session, ME)
    assert len(await store.append(lease, Offset(1), [note("mine")])) == 1
    await store.close()


async def test_processes_that_start_at_once_on_a_fresh_directory_all_work(spawn: Spawn, tmp_path: Path) -> None:
    children = [spawn("open", SessionID("")) for _ in range(4)]
    assert {line(child) for child in children} == {"ready"}
    for child in children:
        tell(child)
    assert len({line(child) for child in children} - {""}) == 1
    assert [child.wait() for child in children] == [0] * 4
    store = open_store(tmp_path / "state")
    assert len(await store.sessions()) == 4
    await store.close()


async def test_two_stores_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    one, two = open_store(tmp_path), open_store(tmp_path)
    session = new_id()
    lease = await one.acquire(session, ME)
    with pytest.raises(SessionHeld, match="attic"):
        await two.acquire(session, YOU)
    await one.append(lease, Offset(0), [note("a")])
    await one.release(lease)
    again = await two.acquire(session, YOU)
    assert len(await two.append(again, Offset(1), [note("b")])) == 1
    assert len(await one.read(session)) == 2
    await asyncio.gather(one.close(), two.close())


def test_a_lock_of_a_dead_process_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    late = locks.take(tmp_path, new_id(), Holder(pid=int(dead.stdout), host="attic", program="gone"))
    assert isinstance(late, locks.Lock)
    path = next(tmp_path.iterdir())
    waited: list[float] = []

    def kernel(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            late.close()

    monkeypatch.setattr("counterfoil.stores.locks.time.sleep", kernel)
    got = locks.take(tmp_path, SessionID(path.stem), ME)
    assert isinstance(got, locks.Lock)
    assert len(waited) == 3
    got.close()
