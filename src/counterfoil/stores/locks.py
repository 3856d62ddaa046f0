"""Who drives a session, on one machine: a lock file for each session, held by an open descriptor.

The kernel gives the lock up when its process dies, however it dies. The fence in the database is what makes a
late write harmless; the lock only tells at once whether a holder lives. The descriptors are closed in whatever the
process runs (O_CLOEXEC) and in its forks, so that a child that outlives its parent keeps no session.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
import weakref
from pathlib import Path

import msgspec

from counterfoil.identity import SessionID, derive
from counterfoil.ports import Holder

LOOKS = 100
"""How many times, a millisecond apart, the lock is tried where its holder hasn't written its name yet, or has died:
the kernel may take a moment to give up what a dead process had."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Lock:
    """One lock that we have. Given back by `close`, or by the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _ours.add(self)

    def close(self) -> None:
        """Remove the file and give the lock back. Doing so twice is no matter."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                if _is_at(descriptor, self._path):
                    self._path.unlink(missing_ok=True)
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Close our copy of the descriptor: the lock stays with the process that took it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_ours: weakref.WeakSet[Lock] = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_ours):
        lock.forget()


os.register_at_fork(after_in_child=_forget_all)


def take(folder: Path, session: SessionID, holder: Holder) -> Lock | Holder | None:
    """Take the lock of `session`. Else the live holder who has it, or None while that one is just taking it.

    Raises `OSError`.
    """
    name = session if _PLAIN.fullmatch(session) else derive("counterfoil/lock/v1", session)
    path = folder / f"{name}.lock"
    got: Lock | Holder | None = None
    for _ in range(LOOKS):
        got = _try(path, holder)
        if isinstance(got, Lock) or (got is not None and _lives(got.pid)):
            return got
        time.sleep(0.001)
    return got


def _lives(pid: int) -> bool:
    """Whether this machine has the process. One of another machine may seem dead: it is only waited for."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _try(path: Path, holder: Holder) -> Lock | Holder | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(descriptor, path):
                os.close(descriptor)
                continue
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(holder), 0)
        except BlockingIOError:
            other = _read(descriptor)
            os.close(descriptor)
            return other
        except BaseException:
            os.close(descriptor)
            raise
        return Lock(path, descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file that was locked is still the one at `path`: it may have been removed meanwhile."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _read(descriptor: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Holder)
    except msgspec.DecodeError:
        return None
