"""Reading a file whose name is fixed and whose content somebody else chose: never waits, never without a bound."""

from __future__ import annotations

import errno
import os
import stat
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
