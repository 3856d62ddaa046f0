"""Small files with fixed names: read without waiting and within a bound; changed whole, under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def read_small(path: Path, limit: int) -> bytes:
    """At most `limit` bytes of the regular file at `path`. Raises `OSError`, also for a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data: bytes | None = file.read(limit)
    if data is None:
        raise BlockingIOError(errno.EAGAIN, "has nothing to read now", str(path))
    return data


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock beside `path`, which other processes respect; makes its folder, for the owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def swap_in(path: Path, data: bytes) -> None:
    """Replace the file at `path` by one with `data`, whole and durably, readable by its owner alone."""
    partial = path.with_suffix(".new")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
