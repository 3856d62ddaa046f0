"""What holds for every test."""

from __future__ import annotations

import signal

# A job in the background of a shell ignores Ctrl+C, and so would the programs that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
