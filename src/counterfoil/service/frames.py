"""What a watcher is sent: events with their place, and what it has to know about the stream itself."""

from __future__ import annotations

from counterfoil.events import Ask, Envelope
from counterfoil.events.base import Value
from counterfoil.identity import AskID, Offset, SessionID


class CaughtUp(Value, frozen=True, kw_only=True):
    """Everything that was logged up to `offset` is told; what follows is live. Sent once."""

    offset: Offset


class Gap(Value, frozen=True, kw_only=True):
    """This watcher was too slow and events are missing: watch again from `last_offset`. The last frame."""

    last_offset: Offset


class HeartBeat(Value, frozen=True, kw_only=True):
    """Nothing happened for a while, and the stream lives."""


Frame = Envelope | CaughtUp | Gap | HeartBeat


class OpenAsk(Value, frozen=True, kw_only=True):
    """An ask that waits for an answer. `opened_at`: µs since the epoch, UTC.

    `untrusted_preview`: the beginning of the held result that it is about, where one who may answer asked for it.
    """

    ask: Ask
    opened_at: int
    session_id: SessionID
    session_title: str = ""
    untrusted_preview: str = ""


class AskEnded(Value, frozen=True, kw_only=True):
    """An ask that isn't open any more."""

    ask_id: AskID
    session_id: SessionID


InboxFrame = OpenAsk | AskEnded | HeartBeat
