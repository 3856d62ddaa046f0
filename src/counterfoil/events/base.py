"""What all events share: the tagged base type, the private base type, the entry and the envelope."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.identity import Offset, RunID, SessionID


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of the immutable values that events carry. Unset optional fields take no bytes on the wire."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of the closed union of public events: all that any client may ever see.

    A subclass names its kind by `tag=` and says when it is published. Fields that hold anything private
    to a provider may not exist here: those go into a `PrivateHalf` beside the event.
    """


class PrivateHalf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="half", gc=False):
    """Base of what is stored beside an event for exact replay to a provider, and shown to nobody."""

    def __repr__(self) -> str:
        """Names the type and nothing of its content: a repr ends in logs and error texts."""
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing, for the same reason."""
        return []


class Entry(msgspec.Struct, frozen=True):
    """One event to append, with its private half where it has one."""

    event: Event
    private: PrivateHalf | None = None


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of a session's log, as stored.

    `public` is the exact wire shape of the event: whatever passes an event on passes these bytes on, so
    fields that this version doesn't know are kept. `recorded_at` is in microseconds since the epoch, UTC.
    """

    session_id: SessionID
    offset: Offset
    run_id: RunID | None
    seq: int | None
    kind: str
    public: bytes
    private: bytes | None
    digest: bytes
    recorded_at: int

    def __repr__(self) -> str:
        """Names the row and nothing of its content, of which one half is private."""
        return f"<StoredEvent {self.session_id} {self.offset} {self.kind}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same."""
        return [("session_id", self.session_id), ("offset", self.offset), ("kind", self.kind)]


class Envelope(Value, frozen=True, kw_only=True):
    """An event as watchers get it: with its source identity, and its offset where it is durable.

    `session_id` is the origin of whatever the event says about a call. `seq` orders one run's stream,
    transient events included. `recorded_at` is in microseconds since the epoch, UTC.
    """

    session_id: SessionID
    run_id: RunID | None = None
    seq: int | None = None
    offset: Offset | None = None
    recorded_at: int = 0
    event: Event
