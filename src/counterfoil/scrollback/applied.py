"""Which events were applied: decided by the identity of their source, never by what they say."""

from __future__ import annotations

from counterfoil.events.base import Envelope
from counterfoil.identity import RunID, SessionID


class Offsets:
    """Which offsets of one log were applied: all up to a mark, and some beyond it."""

    __slots__ = ("_beyond", "through")

    def __init__(self) -> None:
        self.through = 0
        self._beyond: set[int] = set()

    def add(self, offset: int) -> bool:
        """Note `offset`. False where it was noted before."""
        if offset == self.through + 1 and not self._beyond:
            self.through = offset
            return True
        if offset <= self.through or offset in self._beyond:
            return False
        self._beyond.add(offset)
        while self.through + 1 in self._beyond:
            self.through += 1
            self._beyond.remove(self.through)
        return True


class Applied:
    """By session and offset; where an event has no offset, by session, run and `seq`.

    An event with neither can't be told from another one like it, so it is always taken: rather shown twice than lost.
    """

    def __init__(self) -> None:
        self._offsets: dict[SessionID, Offsets] = {}
        self._seqs: set[tuple[SessionID, RunID | None, int]] = set()

    def add(self, envelope: Envelope) -> bool:
        """Note one durable event. False where it was noted before."""
        if envelope.offset is not None:
            offsets = self._offsets.get(envelope.session_id)
            if offsets is None:
                offsets = self._offsets[envelope.session_id] = Offsets()
            return offsets.add(envelope.offset)
        if envelope.seq is None:
            return True
        mark = (envelope.session_id, envelope.run_id, envelope.seq)
        if mark in self._seqs:
            return False
        self._seqs.add(mark)
        return True

    def through(self, session: SessionID) -> int:
        """Every durable event of `session` up to this offset was applied."""
        offsets = self._offsets.get(session)
        return offsets.through if offsets is not None else 0
