"""Standard output and error: what they are, and how to write to them safely."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import IO, Any


def prepare() -> None:
    """Make the standard streams take any text. One that is closed is opened on nothing: no file may get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
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


def plain(value: Any) -> Any:
    """`value` as plain JSON values: structs with all of their fields, also those that have their default."""
    import msgspec

    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field is not None else {}
        return tag | {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return msgspec.to_builtins(value)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=indent) + "\n")
    sys.stdout.flush()
