"""Whether private strings come back as they were sent: pairing ids, item ids, signatures, encrypted reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.strict import Refused, demand, merged_messages
from tests.support.wires import CANARY, Reply, chat_body, message_blocks, response_items

Json = dict[str, Any]
_KEYS = {"messages": ("id", "signature", "data"), "chat": ("id",), "responses": ("id", "call_id", "encrypted_content")}
_CALLS = ("tool_use", "function", "function_call")
_SECRETS = ("thinking", "redacted_thinking", "reasoning")


class Ledger:
    """All turns that a server has sent in full, by wire format."""

    def __init__(self) -> None:
        self._sent: dict[str, list[list[Json]]] = {wire: [] for wire in _KEYS}

    def remember(self, wire: str, reply: Reply) -> None:
        """A turn was sent in full."""
        self._sent[wire].append(_sent_items(wire, reply))

    def check(self, wire: str, body: Json) -> None:
        """Raise `Refused` where something in the request isn't as it was sent, or a part of a turn is missing."""
        for turn in _returned_turns(wire, body):
            for item in turn:
                self._check_item(wire, item)
            self._check_whole(wire, turn)

    def _check_item(self, wire: str, item: Json) -> None:
        for key in _KEYS[wire]:
            value = item.get(key)
            if not isinstance(value, str):
                continue
            known = [sent for turn in self._sent[wire] for sent in turn if sent.get(key) == value]
            same = any(all(item.get(k) == v for k, v in sent.items()) for sent in known)
            demand(
                not known or same, f"an item of type {item.get('type')} was modified: it must be sent back as it was"
            )
            demand(known or not value.startswith(CANARY), f"{key}: unknown private string {value!r}")

    def _check_whole(self, wire: str, turn: list[Json]) -> None:
        calls = [item for item in turn if item.get("type") in _CALLS]
        key = "call_id" if wire == "responses" else "id"
        ids = {call.get(key) for call in calls}
        known = [sent for sent in self._sent[wire] if ids & {s[key] for s in sent if s.get("type") in _CALLS}]
        if known and not any(all(_is_in(s, turn) for s in sent if s["type"] in _SECRETS) for sent in known):
            raise Refused("the reasoning that came before a call must be sent back with it")


def _is_in(sent: Json, turn: list[Json]) -> bool:
    return any(all(item.get(k) == v for k, v in sent.items()) for item in turn)


def _sent_items(wire: str, reply: Reply) -> list[Json]:
    """What must come back, without what may change: status, and arguments that were no JSON object."""
    if wire == "messages":
        items = message_blocks(reply)
    elif wire == "chat":
        items = chat_body(reply)["choices"][0]["message"].get("tool_calls", [])
    else:
        items = response_items(reply)
    calls = iter(reply.turn.calls)
    for item in items:
        item.pop("status", None)
        if item["type"] in _CALLS and isinstance(next(calls).arguments, str):
            for place in (item, item.get("function", {})):
                place.pop("input", None)
                place.pop("arguments", None)
            if item["type"] == "function":
                item.pop("function")
        if not all(item.get(key) != "" for key in _KEYS[wire]):
            item.clear()
    return [item for item in items if item]


def _returned_turns(wire: str, body: Json) -> Iterator[list[Json]]:
    """The model's own items in a request, turn by turn."""
    if wire == "messages":
        yield from (blocks for role, blocks in merged_messages(body) if role == "assistant")
    elif wire == "chat":
        yield from (m["tool_calls"] for m in body["messages"] if m.get("tool_calls"))
    elif isinstance(body.get("input"), list):
        turn: list[Json] = []
        for item in body["input"]:
            if item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant":
                turn.append(item)
            elif turn:
                yield turn
                turn = []
        yield turn
