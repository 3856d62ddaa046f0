"""Who drives a session, on one machine: a lock file for each session, held by an open descriptor.

The kernel gives the lock up when its process dies, however it dies. The fence in the database is what makes a
late write harmless; the lock only tells at once whether a holder lives.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from counterfoil.ports import Holder


class Locks:
    """The locks of one process in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, name: str, holder: Holder) -> Holder | None:
        """Take the lock `name`. None: it is ours now; else the live holder who has it. Raises `OSError`."""
        path = self._folder / f"{name}.lock"
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                other = _read(descriptor)
                os.close(descriptor)
                return other
            if _is_at(descriptor, path):
                break
            os.close(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(holder), 0)
        self._held[name] = descriptor
        return None

    def give_back(self, name: str, *, remove: bool = False) -> None:
        """Give the lock back, if we have it. `remove`: the file isn't needed any more."""
        descriptor = self._held.pop(name, None)
        if descriptor is None:
            return
        if remove:
            (self._folder / f"{name}.lock").unlink(missing_ok=True)
        os.close(descriptor)

    def give_all_back(self) -> None:
        """Give every lock back."""
        for name in list(self._held):
            self.give_back(name)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file that was locked is still the one at `path`: it may have been removed meanwhile."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _read(descriptor: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Holder)
    except msgspec.DecodeError:
        return Holder(pid=0, host="unknown")
