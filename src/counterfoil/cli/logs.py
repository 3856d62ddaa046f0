"""What the program logs of itself: kept in a file, and never among what a person reads."""

from __future__ import annotations

import contextlib
import logging
import os

from counterfoil.cli import compose, faults

MOST = 20
"""Faults that are kept of one process: one that repeats itself mustn't fill the disk."""


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._left = MOST

    def emit(self, record: logging.LogRecord) -> None:
        if self._left > 0:
            self._left -= 1
            with contextlib.suppress(Exception):
                faults.keep(self.format(record) + "\n", compose.last_state_dir())


def set_up() -> None:
    """Keep faults in the folder of crash files. With `COUNTERFOIL_DEBUG=1` they are shown on stderr instead."""
    root = logging.getLogger()
    if os.environ.get("COUNTERFOIL_DEBUG") != "1" and not any(isinstance(h, _Kept) for h in root.handlers):
        root.addHandler(_Kept())
