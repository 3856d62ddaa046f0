"""What became of a process."""

from __future__ import annotations

import os
import select
import subprocess
import time


def runs(pid: int, *, dying: float = 5.0) -> bool:
    """Whether a process still runs `dying` seconds from now at the latest: a kill takes effect in its own time."""
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            ended, _, _ = select.select([descriptor], [], [], dying)
        finally:
            os.close(descriptor)
        return not ended
    until = time.monotonic() + dying
    while (alive := _listed(pid)) and time.monotonic() < until:
        continue
    return alive


def _listed(pid: int) -> bool:
    """Whether the system lists it as more than dead and unreaped."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state = done.stdout.strip()
    return bool(state) and not state.startswith("Z")
