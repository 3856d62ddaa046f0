"""What the tests of the Messages API share: turns of recorded streams, and bodies that are checked."""

from __future__ import annotations

import json
from typing import Any

from counterfoil.events import ImagePart
from counterfoil.ports import ModelSettings, ModelTurn
from counterfoil.providers.anthropic import assemble, request
from counterfoil.state.history import (
    History,
    HistoryItem,
)
from tests.providers.wirekit import READ, accepted, events, plain, prompt
from tests.support.strict import check_messages

ORIGIN = "anthropic@https://api.anthropic.com"
MODEL = ModelSettings(model="claude-sonnet-4-5")
IMAGE = ImagePart(media_type="image/png", data="aGk=")


def turn_of(name: str) -> ModelTurn:
    """The turn of a recorded stream."""
    return assemble(events(f"anthropic_{name}"))


def arguments(turn: ModelTurn) -> list[dict[str, Any] | None]:
    """The arguments of the calls."""
    return [call.arguments for call in turn.calls]


def wire(turn: ModelTurn) -> list[dict[str, Any]]:
    """The blocks to send back."""
    assert turn.wire is not None
    blocks: list[dict[str, Any]] = json.loads(bytes(turn.wire))
    return blocks


def body_of(*items: HistoryItem, model: ModelSettings = MODEL) -> dict[str, Any]:
    """The valid body of a request for what follows these items, as the standard library reads it."""
    body: dict[str, Any] = plain(request(History(list(items)), [READ], model, system="Be brief.", origin=ORIGIN))
    check_messages(body)
    return body


def replayed(turn: ModelTurn) -> list[dict[str, Any]]:
    """The messages that tell of `turn` in the next request, after the first prompt."""
    messages: list[dict[str, Any]] = body_of(prompt("go"), accepted(turn, ORIGIN, 2), prompt("on", 9))["messages"]
    return messages[1:-1]
