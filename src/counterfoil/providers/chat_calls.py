"""Which call a fragment belongs to: Chat Completions servers agree on little but the field names.

The index, the id and the name may each be missing, repeated, shared or late. One call is never split, two are
never joined where the stream lets them be told apart, and a repeated id is left for the engine to judge.
"""

from __future__ import annotations

from typing import Any

from counterfoil.events.codec import clean_text
from counterfoil.ports import CallChunk, ProposedCall
from counterfoil.providers.wire import (
    NAMELESS,
    NAMELESS_PROBLEM,
    encode_json,
    entries,
    fields,
    made_pairing_id,
    parse_arguments,
)


class CallSlot:
    """One call as it grows."""

    __slots__ = ("extra", "fragments", "id", "index", "name", "position")

    def __init__(self, position: int, index: int | None) -> None:
        self.position = position
        self.index = index
        self.id = ""
        self.name = ""
        self.fragments: list[str] = []
        self.extra: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The argument text so far."""
        return clean_text("".join(self.fragments))

    @property
    def whole(self) -> bool:
        """Whether the argument text is a JSON object already, so that nothing can follow it."""
        text = self.text
        return bool(text) and not text.isspace() and parse_arguments(text)[0] is not None

    @property
    def empty(self) -> bool:
        """Whether nothing at all was said of this call."""
        return not (self.id or self.name or self.fragments)


class _Fragment:
    """One entry of a delta's `tool_calls`, read without trust."""

    __slots__ = ("arguments", "extra", "id", "index", "name")

    def __init__(self, entry: dict[str, Any], place: int | None) -> None:
        function = fields(entry.get("function"))
        index, call_id = entry.get("index"), entry.get("id")
        self.index: int | None = index if isinstance(index, int) else place
        self.id = call_id if isinstance(call_id, str) else str(call_id) if isinstance(call_id, int) else ""
        name = function.get("name")
        self.name = clean_text(name) if isinstance(name, str) else ""
        self.arguments = _argument_text(function.get("arguments"))
        self.extra = {k: v for k, v in entry.items() if k not in _KNOWN and v is not None}


_KNOWN = {"index", "id", "type", "function"}


def _argument_text(value: Any) -> str:
    """A fragment of arguments as text. Some servers send a whole object where the API has a string."""
    if isinstance(value, str):
        return clean_text(value)
    return encode_json(value).decode() if value else ""


class CallSlots:
    """The calls of one turn, in the order in which they appeared."""

    __slots__ = ("_last", "slots")

    def __init__(self) -> None:
        self.slots: list[CallSlot] = []
        self._last: CallSlot | None = None

    def take(self, tool_calls: Any, *, streamed: bool) -> list[CallChunk]:
        """Take the `tool_calls` of a delta, or of a whole message, where the place stands for the index."""
        chunks = []
        for place, entry in enumerate(entries(tool_calls)):
            fragment = _Fragment(entry, None if streamed else place)
            slot = self._slot(fragment)
            self._last = slot
            chunk = _add(slot, fragment)
            if chunk is not None:
                chunks.append(chunk)
        return chunks

    def _slot(self, fragment: _Fragment) -> CallSlot:
        slot = self._known(fragment)
        if slot is None or _starts_another(slot, fragment):
            slot = CallSlot(len(self.slots), fragment.index)
            self.slots.append(slot)
        return slot

    def _known(self, fragment: _Fragment) -> CallSlot | None:
        """The slot that a fragment would go on with."""
        if fragment.index is None:
            return self._without_index(fragment)
        same_index = [s for s in reversed(self.slots) if s.index == fragment.index]
        if not fragment.id or not same_index:
            return same_index[0] if same_index else None
        for slot in same_index:
            if slot.id == fragment.id:
                return slot
        return same_index[0] if not same_index[0].id else None

    def _without_index(self, fragment: _Fragment) -> CallSlot | None:
        if not fragment.id:
            return self._last
        for slot in reversed(self.slots):
            if slot.id == fragment.id:
                return slot
        last = self._last
        late = last is not None and not last.id and not (last.name and fragment.name)
        return last if late else None

    def finish(self) -> list[tuple[ProposedCall, dict[str, Any]]]:
        """Each call with its private wire form."""
        return [_finished(slot) for slot in self.slots if not slot.empty]


def _starts_another(slot: CallSlot, fragment: _Fragment) -> bool:
    """Whether a fragment that has a name begins a call of its own, though index and id don't say so."""
    if not fragment.name or not slot.fragments:
        return False
    begins = fragment.arguments.lstrip().startswith("{")
    if slot.id and slot.id == fragment.id:
        return begins and slot.whole
    other = fragment.name != slot.name and bool(slot.name)
    if other and fragment.index is None and not fragment.id:
        return True
    return (begins or other) and slot.whole


def _add(slot: CallSlot, fragment: _Fragment) -> CallChunk | None:
    """Add a fragment to its slot; what watchers see of it, if anything."""
    if fragment.id and not slot.id:
        slot.id = fragment.id
    before = slot.name
    if fragment.name and fragment.name != slot.name:
        cumulative = slot.name and fragment.name.startswith(slot.name)
        slot.name = fragment.name if cumulative else slot.name + fragment.name
    if fragment.arguments:
        slot.fragments.append(fragment.arguments)
    if fragment.extra:
        slot.extra.update(fragment.extra)
    name = slot.name if slot.name != before else ""
    if not name and not fragment.arguments:
        return None
    return CallChunk(position=slot.position, tool=name, arguments_text=fragment.arguments)


def _finished(slot: CallSlot) -> tuple[ProposedCall, dict[str, Any]]:
    text = slot.text
    arguments, problem = parse_arguments(text)
    if not slot.name:
        arguments, problem = None, NAMELESS_PROBLEM
    call = ProposedCall(
        pairing_id=slot.id or made_pairing_id(),
        made=not slot.id,
        tool=slot.name or NAMELESS,
        arguments=arguments,
        problem=problem,
    )
    function = {"name": call.tool, "arguments": _replayed(text)}
    return call, {"id": call.pairing_id, "type": "function", "function": function, **slot.extra}


def _replayed(text: str) -> str:
    """The argument text as it goes back: exactly as it came, so long as it is an object.

    Compatible servers parse it, and refuse every later request of the session where they can't; so anything
    else goes back inside an object.
    """
    if not text or text.isspace():
        return "{}"
    if parse_arguments(text)[0] is not None:
        return text
    return encode_json({"invalid_arguments": text}).decode()
