"""Providers: a model behind an API, what it is asked and what it answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

from counterfoil.events import TurnStop, Usage
from counterfoil.events.base import Value
from counterfoil.ports.tool import ToolSpec
from counterfoil.state.history import EncodedHistory, History


class ModelSettings(Value, frozen=True, kw_only=True):
    """What is asked of the model. `effort`: reasoning effort where the API has one. `max_tokens`: 0 = its default."""

    model: str
    max_tokens: int = 0
    temperature: float | None = None
    effort: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `memo` keeps the wire bytes of what was encoded for this session and provider before.

    `about`: a history that isn't sent, and whose private data no error may show either: a server may remember it.
    """

    history: History
    about: History | None = None
    system: str
    tools: tuple[ToolSpec, ...]
    settings: ModelSettings
    memo: EncodedHistory


class ProposedCall(Value, frozen=True, kw_only=True):
    """A call as the model wrote it. `pairing_id` is private and never empty: the adapter made one (`made`) where
    the wire had none. `arguments` is None where the text wasn't a JSON object; `problem` says why.
    """

    pairing_id: str
    made: bool = False
    tool: str
    arguments: dict[str, Any] | None
    problem: str | None = None

    def __repr__(self) -> str:
        """Without the pairing id: a repr ends in logs and error texts."""
        return f"<ProposedCall {self.tool}>"


class ModelTurn(Value, frozen=True, kw_only=True):
    """One whole turn of the model. `wire` is what the provider must get back, as private JSON (or None)."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ProposedCall, ...] = ()
    wire: msgspec.Raw | None = None
    usage: Usage = Usage()
    stop_reason: TurnStop = "end_turn"
    model: str = ""

    def __repr__(self) -> str:
        """Without what is private to the provider."""
        return f"<ModelTurn {self.stop_reason}, {len(self.calls)} calls>"


class TextChunk(Value, frozen=True, kw_only=True):
    """More text of the message."""

    text: str


class ReasoningChunk(Value, frozen=True, kw_only=True):
    """More text of the public reasoning."""

    text: str


class CallChunk(Value, frozen=True, kw_only=True):
    """More of the call at `position` (0, 1, …): its name, or a fragment of its arguments."""

    position: int
    tool: str = ""
    arguments_text: str = ""


StreamItem = TextChunk | ReasoningChunk | CallChunk | ModelTurn


class Provider(Protocol):
    """A model behind an API."""

    @property
    def name(self) -> str:
        """The configured name, public."""
        ...

    @property
    def origin(self) -> str:
        """Wire format and host: private replay data goes back only to the origin that it came from."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Ask once. Yields chunks and, last, the one whole `ModelTurn`.

        Raises `ProviderError`; then nothing of the turn may be accepted. Does not retry.
        """
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...
