"""Standard output and error: what they are, and how to write to them safely."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import IO, Any


def prepare() -> None:
    """Make the standard streams take any text, and start the program with all three of them open."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person may read `stream` as it is written."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def coloured(stream: IO[str]) -> bool:
    """Whether `stream` may be coloured: a terminal that can, and nobody said no."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def width() -> int:
    """Columns to fill: the terminal's, or 80."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def print_line(text: str = "") -> None:
    """One line on stdout, with control characters made visible where a terminal would act on them."""
    from counterfoil.scrollback.visible import visible

    print(visible(text) if is_terminal(sys.stdout) else text, flush=True)


def print_json(value: Any) -> None:
    """One JSON value on stdout."""
    import msgspec

    plain = msgspec.to_builtins(value)
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()
