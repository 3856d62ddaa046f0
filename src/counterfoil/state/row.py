"""What the fold reads of a row, and what most of its steps look up first."""

from __future__ import annotations

from typing import Any

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.events.codec import decode_private, event_of
from counterfoil.state.session import OpenCall, RunState, SessionState


class Row:
    """What the fold reads of one stored row."""

    __slots__ = ("event", "offset", "private", "recorded_at", "run_id", "seq", "session_id")

    def __init__(self, stored: ev.StoredEvent, entry: ev.Entry | None = None) -> None:
        """`entry` is what `stored` was made from, where it is at hand: then nothing is decoded again."""
        self.event = event_of(stored) if entry is None else entry.event
        self.private = decode_private(stored.private) if entry is None else entry.private
        self.session_id = stored.session_id
        self.offset = stored.offset
        self.run_id = stored.run_id
        self.seq = stored.seq
        self.recorded_at = stored.recorded_at


def run_of(s: SessionState, row: Row) -> RunState:
    """The open run, which the row must belong to. Raises `FoldError`."""
    if s.run is None or row.run_id != s.run.run_id:
        raise FoldError(f"{type(row.event).__name__} at offset {row.offset} is outside the open run")
    return s.run


def open_call(s: SessionState, tool_call_id: Any, row: Row) -> OpenCall:
    """The call of this id, which must not be finished. Raises `FoldError`."""
    call = s.call(tool_call_id)
    if call is None or call.phase == "finished":
        raise FoldError(f"{type(row.event).__name__} at offset {row.offset} is about {tool_call_id}, which isn't open")
    return call
