"""Commands inside bubblewrap: the system read-only, the workspace writable, the network on or off."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import ToolFailure


def sandboxed(argv: Sequence[str], *, roots: Sequence[Path], network: bool) -> list[str]:
    """`argv` to be run inside the sandbox. Raises `ToolFailure` where there is no `bwrap`: never silently outside."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise ToolFailure(
            "the sandbox is switched on and bwrap is not installed", executed="no", hint="install bubblewrap"
        )
    line = [bwrap, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/"]
    line += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    for root in roots:
        line += ["--bind", str(root), str(root)]
    if not network:
        line.append("--unshare-net")
    return [*line, "--chdir", str(roots[0]), "--", *argv]


__all__ = ["sandboxed"]
