"""The prompt: from the arguments, from standard input, or from both."""

from __future__ import annotations

import os
import select
import stat
import sys

from counterfoil.errors import UsageError
from counterfoil.events.codec import clean_text

MAX_BYTES = 32 * 1024 * 1024
PATIENCE = 3.0
"""Seconds to wait for the first byte where a prompt was given and standard input is a pipe that may be silent."""


def prompt_text(argument: str | None) -> str:
    """The prompt. `-`, or no argument, reads standard input; a piped standard input is appended to an argument.

    Raises `UsageError` where there is nothing.
    """
    if argument is None or argument == "-":
        if argument is None and (sys.stdin is None or sys.stdin.isatty()):
            raise UsageError("there is no prompt", hint='`counterfoil run "do this"`, or pipe it in')
        text = _read()
    else:
        piped = _read() if _has_input() else ""
        text = f"{argument}\n\n{piped}" if piped.strip() else argument
    if not text.strip():
        raise UsageError("the prompt is empty", hint="say what is to be done")
    return clean_text(text)


def _read() -> str:
    if sys.stdin is None:
        return ""
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"the prompt is larger than {MAX_BYTES} bytes", hint="name a file in the prompt instead")
    return data.decode("utf-8", "replace")


def _has_input() -> bool:
    """Whether standard input is a file or a pipe that says something, and not a terminal or an open, silent pipe."""
    try:
        fd = sys.stdin.fileno()
        mode = os.fstat(fd).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    ready, _, _ = select.select([fd], [], [], PATIENCE)
    return bool(ready)
