"""A process that uses the store, for tests that kill it or race it. Arguments: STATE_DIR COMMAND [SESSION].

`append`: appends without end, and prints the offset of each append after it is acknowledged.
`hold`: takes the session, prints its fence, and waits to be killed. `hold-with-child`: starts a program first.
`race`: waits for a line on standard input, tries to take the session, prints `held` or the fence; when it has it,
appends one row and waits for a line before it gives it back.
`open`: waits for a line, opens the store, appends to a session of its own, prints how many tables there are.
`limited`: lets no file grow beyond 200 KB, appends until that fails, prints the error, then what is still there.
`unprivileged`: as somebody who may not write there, tries everything and prints the errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

from counterfoil.errors import SessionHeld, StoreError
from counterfoil.identity import START, SessionID
from counterfoil.ports import Holder
from counterfoil.stores import SqliteStore, open_store
from counterfoil.stores.rows import verify
from tests.stores.made import new_id, note, summary_of

NOBODY = 65534


def me() -> Holder:
    return Holder(pid=os.getpid(), host="test-host", program="child")


async def append(store: SqliteStore, session: SessionID) -> None:
    lease = await store.acquire(session, me())
    end = START
    while True:
        batch = [note(f"{end} {n}" + "x" * 300, pairing="p") for n in range(3)]
        end = (await store.append(lease, end, batch, summary_of(session)))[-1].offset
        print(end, flush=True)


async def hold(store: SqliteStore, session: SessionID, *, child: bool = False) -> None:
    lease = await store.acquire(session, me())
    if child:
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], close_fds=False)
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
    print(lease.fence, flush=True)
    sys.stdin.read()


async def race(store: SqliteStore, session: SessionID) -> None:
    with contextlib.suppress(StoreError):
        await store.head(session)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        lease = await store.acquire(session, me())
    except SessionHeld as fault:
        print(f"held: {fault.message}", flush=True)
        return
    await store.append(lease, START, [note(str(os.getpid()))])
    print(f"fence {lease.fence}", flush=True)
    sys.stdin.readline()
    await store.release(lease)


async def open_first(store: SqliteStore) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    lease = await store.acquire(new_id(), me())
    await store.append(lease, START, [note("first")], summary_of(lease.session_id))
    assert verify(await store.read(lease.session_id)) is None
    with sqlite3.connect(store.file) as db:
        print(db.execute("select count(*) from sqlite_master where type = 'table'").fetchone()[0], flush=True)


async def limited(store: SqliteStore, session: SessionID) -> None:
    lease = await store.acquire(session, me())
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    end = START
    try:
        while True:
            end = (await store.append(lease, end, [note("x" * 3000), note("y" * 3000)]))[-1].offset
    except StoreError as fault:
        print(type(fault).__name__, fault)
    rows = await store.read(session)
    print(end, len(rows), verify(rows))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    rows = await store.append(lease, end, [note("again")])
    print(rows[-1].offset, flush=True)


async def unprivileged(folder: Path, session: SessionID) -> None:
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = open_store(folder)
    for asked in (store.acquire(session, me()), store.read(session), store.sessions()):
        try:
            print("fine", await asked)
        except StoreError as fault:
            print(type(fault).__name__, fault)
    await store.close()


async def main(folder: Path, command: str, session: SessionID) -> None:
    if command == "unprivileged":
        return await unprivileged(folder, session)
    store = open_store(folder)
    if command == "append":
        await append(store, session)
    elif command == "race":
        await race(store, session)
    elif command == "open":
        await open_first(store)
    elif command == "limited":
        await limited(store, session)
    else:
        await hold(store, session, child=command == "hold-with-child")
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], SessionID(sys.argv[3] if len(sys.argv) > 3 else "")))
