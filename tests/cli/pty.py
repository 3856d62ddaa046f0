"""A person at a terminal: a pseudo-terminal that is the controlling terminal of a real process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from tests.cli.support import SRC


class Person:
    """Types at a command line and reads the screen's raw bytes."""

    def __init__(self, *arguments: str, stdout: int | None = None, env: dict[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

        def own_terminal() -> None:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, "-m", "counterfoil", *arguments],
            env=os.environ | {"PYTHONPATH": str(SRC), "TERM": "xterm"} | (env or {}),
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=own_terminal,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        self.screen = ""
        self._read = 0

    def sees(self, text: str, seconds: float = 30.0) -> str:
        """Wait until `text` comes after what was seen before; returns all up to it."""
        end = time.monotonic() + seconds
        while (at := self.screen.find(text, self._read)) < 0:
            assert time.monotonic() < end, f"{text!r} is not in {self.screen[self._read :]!r}"
            self._take(0.1)
        seen = self.screen[self._read : at + len(text)]
        self._read = at + len(text)
        return seen

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def leaves(self, seconds: float = 30.0) -> int:
        """Wait for the end; returns the exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, self.screen
            self._take(0.05)
        while self._take(0.05):
            pass
        os.close(self._ours)
        return self.process.returncode

    def _take(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], seconds)
        if not ready:
            return False
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(self._ours, 65536)
        self.screen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
