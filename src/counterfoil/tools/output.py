"""A command's output in bounded memory: head and tail here, the whole in a file when it gets long."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from counterfoil.tools.text import Bounded, bound, clean, head_of, tail_of

KEPT = 200_000
SPILL_CAP = 50 * 1024 * 1024


class Collector:
    """Takes chunks; keeps `kept` bytes of them. What is longer goes to `spill`, up to `cap` bytes."""

    def __init__(self, spill: Path, *, kept: int = KEPT, cap: int = SPILL_CAP) -> None:
        self.total = 0
        self._spill_path, self._kept, self._cap = spill, kept, cap
        self._head = bytearray()
        self._tail = bytearray()
        self._file: BinaryIO | None = None
        self._spilled = 0
        self._fault = ""

    @property
    def long(self) -> bool:
        """Must the next chunk go to a file?"""
        return self._file is not None

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk. Writes to a file once there is more than is kept."""
        self.total += len(chunk)
        if self.total <= self._kept:
            self._head += chunk
            return
        if self._file is None and not self._fault:
            self._open()
        self._write(chunk)
        self._tail += chunk
        half = self._kept // 2
        if len(self._tail) > 2 * half:
            del self._tail[:-half]

    def close(self) -> None:
        """No more chunks come."""
        if self._file is not None:
            self._file.close()

    def text(self) -> Bounded:
        """The output as clean text; where it was cut, the cut names the file with the whole."""
        if self.total <= self._kept:
            return bound(clean(bytes(self._head)))
        half = self._kept // 2
        whole = bytes(self._head + self._tail)
        head, tail = head_of(whole, half), tail_of(whole, half)
        omitted = self.total - len(head) - len(tail)
        note = f"\n[… {omitted} bytes left out; {self._whereabouts()} …]\n"
        kept = bound(clean(head) + note + clean(tail))
        return Bounded(text=kept.text, omitted=omitted + kept.omitted)

    def _open(self) -> None:
        try:
            self._spill_path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._spill_path.open("xb")
        except OSError as fault:
            self._fault = f"the rest could not be kept: {fault.strerror}"
        self._write(bytes(self._head))
        half = self._kept // 2
        self._tail = self._head[half:]
        del self._head[half:]

    def _write(self, chunk: bytes) -> None:
        room = self._cap - self._spilled
        if self._file is None or self._fault or room <= 0:
            return
        try:
            self._file.write(chunk[:room])
            self._spilled += min(len(chunk), room)
        except OSError as fault:
            self._fault = f"the rest could not be kept: {fault.strerror}"

    def _whereabouts(self) -> str:
        if self._fault:
            return self._fault
        if self._spilled < self.total:
            return f"the first {self._spilled} bytes are in {self._spill_path}"
        return f"the whole is in {self._spill_path}"


__all__ = ["KEPT", "SPILL_CAP", "Collector"]
