"""Private halves: what exact replay to a provider needs, stored beside public events and shown to nobody."""

from __future__ import annotations

import msgspec

from counterfoil.events.base import PrivateHalf
from counterfoil.events.parts import Part
from counterfoil.events.values import CallStatus, Executed


class AssistantReplay(PrivateHalf, frozen=True, kw_only=True, tag="assistant"):
    """The assistant's turn as its provider must get it back.

    `origin` names wire format and host; the bytes go to no other. `wire` is the JSON of the adapter's own
    message shape: reasoning with signatures, item ids, pairing ids, phase markers, all as they came.
    """

    origin: str
    wire: msgspec.Raw


class CallReplay(PrivateHalf, frozen=True, kw_only=True, tag="call"):
    """The provider's pairing id of one call; `made` where the adapter had to make it."""

    origin: str
    pairing_id: str
    made: bool = False


class HeldResult(PrivateHalf, frozen=True, kw_only=True, tag="held"):
    """The exact result that is held back, as `call.finished` gets it when it is released."""

    status: CallStatus
    parts: tuple[Part, ...]
    executed: Executed
    duration_ms: int = 0


class ToolOriginal(PrivateHalf, frozen=True, kw_only=True, tag="original"):
    """The exact result that a hook replaced."""

    parts: tuple[Part, ...]


class ReviewDetail(PrivateHalf, frozen=True, kw_only=True, tag="review_detail"):
    """What a checker wrote: untrusted prose, bounded, for the verified owner and in a detail call alone."""

    concern: str = ""
    evidence: str = ""
    next_step: str = ""


AnyPrivate = AssistantReplay | CallReplay | HeldResult | ToolOriginal | ReviewDetail
