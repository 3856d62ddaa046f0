"""How errors end a command: one line on stderr, never a traceback, and a crash file for what nobody foresaw."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from counterfoil.cli import exits

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


def say(text: str) -> None:
    """One line on stderr, with everything that a terminal would act on made visible."""
    from counterfoil.scrollback.visible import visible_line

    print(f"counterfoil: {visible_line(text)}", file=sys.stderr, flush=True)


def report(error: BaseException, state_dir: Path | None = None) -> int:
    """Say what went wrong and return the exit code."""
    from counterfoil.errors import CounterfoilError

    if isinstance(error, CounterfoilError):
        if os.environ.get("COUNTERFOIL_DEBUG") == "1":
            traceback.print_exception(error)
        say(str(error))
        return exits.of_error(error)
    if isinstance(error, OSError) and error.errno is not None and (error.filename or error.strerror):
        say(f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror))
        return exits.FAILED
    return _crash(error, state_dir)


def _crash(error: BaseException, state_dir: Path | None) -> int:
    if os.environ.get("COUNTERFOIL_DEBUG") == "1":
        traceback.print_exception(error)
    text = "".join(traceback.format_exception(error))
    where = keep(text, state_dir)
    kept = f"the details are in {where}" if where else "set COUNTERFOIL_DEBUG=1 to see the details"
    say(f"an unexpected fault: {type(error).__name__} ({kept})")
    return exits.FAILED


def keep(text: str, state_dir: Path | None) -> Path | None:
    """Write `text` to this process's crash file, and return which one it is, or None where there can be none."""
    return _write(text, state_dir) or _write(text, Path(tempfile.gettempdir()) / f"counterfoil-{os.getuid()}")


def _write(text: str, folder: Path | None) -> Path | None:
    if folder is None:
        return None
    try:
        crashes = folder / "crashes"
        crashes.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = crashes / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, _FLAGS, 0o600), "a", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return None
    return path
