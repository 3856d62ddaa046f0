"""What became of a process."""

from __future__ import annotations

import subprocess


def runs(pid: int) -> bool:
    """Whether a process still runs: one that is dead and not yet reaped doesn't."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state = done.stdout.strip()
    return bool(state) and not state.startswith("Z")
