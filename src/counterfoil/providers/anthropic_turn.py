"""From the events of one Messages API stream to one turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from counterfoil.events import TurnStop, Usage
from counterfoil.events.codec import clean_text
from counterfoil.ports import CallChunk, ModelTurn, ProposedCall, ReasoningChunk, TextChunk
from counterfoil.providers import faults
from counterfoil.providers.http import Chunk, assemble_with
from counterfoil.providers.wire import (
    NAMELESS,
    NAMELESS_PROBLEM,
    count,
    encode_json,
    entries,
    fields,
    made_pairing_id,
    parse_arguments,
    raw,
    string,
)

_STOPS: dict[str, TurnStop] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking"}
_CUT_OFF = "The call was cut off at the limit of output tokens. Send it again, with shorter arguments."
_PARAGRAPH = "\n\n"


class _Block:
    """One content block as it grows. `position` is the place among the turn's calls, for a call."""

    def __init__(self, start: dict[str, Any], position: int | None) -> None:
        self.kind = string(start.get("type"))
        self.position = position
        self._start = start
        self._texts: dict[str, list[str]] = {}
        self._input: list[str] = []

    def add(self, field: str, text: str) -> None:
        """More of a text field."""
        self._texts.setdefault(field, [string(self._start.get(field))]).append(text)

    def add_input(self, text: str) -> None:
        """More of the text of a tool's input."""
        self._input.append(text)

    def merge(self, delta: dict[str, Any]) -> None:
        """Take over a delta that has no meaning here: a citation, a signature, something new."""
        if delta.get("type") == "citations_delta":
            self._start["citations"] = [*entries(self._start.get("citations")), delta.get("citation")]
            return
        self._start.update({key: value for key, value in delta.items() if key != "type"})

    def begun(self, field: str) -> bool:
        """Whether there is anything in a text field."""
        return bool(self._start.get(field)) or any(self._texts.get(field, ()))

    def text(self, field: str) -> str:
        """The whole of a text field."""
        return "".join(self._texts.get(field, [string(self._start.get(field))]))

    @property
    def input_text(self) -> str:
        """The input as it was sent: as fragments of text, or whole at the start."""
        text = "".join(self._input)
        whole = self._start.get("input")
        return text if text.strip() or not whole else encode_json(whole).decode()

    def wire(self) -> dict[str, Any]:
        """The block as it must be sent back."""
        block = dict(self._start)
        for field in self._texts:
            block[field] = self.text(field)
        if "input" in block or self._input:
            block["input"] = _input(self.input_text)
        return block

    def call(self, *, cut: bool) -> tuple[ProposedCall, dict[str, Any]]:
        """The call that this block is, and the block with the id that was made where it had none."""
        given, tool = string(self._start.get("id")), string(self._start.get("name"))
        pairing = given or made_pairing_id()
        text = self.input_text
        arguments, problem = parse_arguments(text)
        if cut and (arguments is None or not text.strip()):
            arguments, problem = None, _CUT_OFF
        if not tool:
            arguments, problem = None, NAMELESS_PROBLEM
        call = ProposedCall(
            pairing_id=pairing, made=not given, tool=tool or NAMELESS, arguments=arguments, problem=problem
        )
        return call, {**self.wire(), "id": pairing, "name": tool or NAMELESS, "input": _input(text)}


def _input(text: str) -> Any:
    """A tool's input to send back: the model's own bytes where they are an object, else the text within one."""
    arguments, problem = parse_arguments(text)
    if problem is not None:
        return {"INVALID_JSON": text}
    if not text.strip():
        return {}
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return arguments
    return msgspec.Raw(text.encode())


class Assembler:
    """Makes one turn of the events of one stream, or of one whole message."""

    def __init__(self) -> None:
        self.done = False
        self._blocks: list[_Block] = []
        self._by_index: dict[str, _Block] = {}
        self._calls = 0
        self._stop = ""
        self._model = ""
        self._usage = dict.fromkeys(_COUNTS, 0)

    @property
    def complete(self) -> bool:
        """Whether the model said that it had finished."""
        return self.done or bool(self._stop)

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Take the next event. Raises `ProviderError` where it reports one. Unknown events are passed over."""
        kind = event.get("type")
        if kind == "error" or event.get("error"):
            raise faults.provider_error(faults.failure_of(event))
        if kind == "content_block_start":
            return self._start_block(fields(event.get("content_block")), event.get("index"))
        if kind == "content_block_delta":
            return self._delta(fields(event.get("delta")), event.get("index"))
        if kind == "message_start":
            self._head(fields(event.get("message")))
        elif kind == "message_delta":
            self._stop = string(fields(event.get("delta")).get("stop_reason")) or self._stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        elif kind == "message":
            return self._whole(event)
        return []

    def _whole(self, message: dict[str, Any]) -> list[Chunk]:
        """A message that was not streamed."""
        self._head(message)
        chunks: list[Chunk] = []
        for index, block in enumerate(entries(message.get("content"))):
            chunks += self._start_block(block, index)
        self._stop, self.done = string(message.get("stop_reason")), True
        return chunks

    def _head(self, message: dict[str, Any]) -> None:
        self._model = string(message.get("model"))
        self._count(message.get("usage"))

    def _count(self, usage: Any) -> None:
        """Counts are cumulative: the last one that was given holds."""
        for field in _COUNTS:
            self._usage[field] = count(fields(usage).get(field)) or self._usage[field]

    def _start_block(self, start: dict[str, Any], index: Any) -> list[Chunk]:
        call = start.get("type") == "tool_use"
        block = _Block(dict(start), self._calls if call else None)
        self._blocks.append(block)
        self._by_index[repr(index)] = block
        if call:
            self._calls += 1
            tool = string(start.get("name"))
            chunks: list[Chunk] = [CallChunk(position=self._calls - 1, tool=tool)]
            if start.get("input"):
                chunks.append(CallChunk(position=self._calls - 1, arguments_text=block.input_text))
            return chunks
        if block.kind == "thinking":
            return self._thought(block.text("thinking"), first=True)
        text = clean_text(block.text("text")) if block.kind == "text" else ""
        return [TextChunk(text=text)] if text else []

    def _delta(self, delta: dict[str, Any], index: Any) -> list[Chunk]:
        kind = string(delta.get("type"))
        block = self._by_index.get(repr(index)) or (self._blocks[-1] if index is None and self._blocks else None)
        if block is None:
            raise faults.stream_cut("a part of a block came without the block's beginning")
        if kind == "input_json_delta":
            text = string(delta.get("partial_json"))
            block.add_input(text)
            shown = block.position is not None and text
            return [CallChunk(position=block.position or 0, arguments_text=clean_text(text))] if shown else []
        if kind not in _TEXTS:
            block.merge(delta)
            return []
        field = _TEXTS[kind]
        text = string(delta.get(field))
        first = not block.begun(field)
        block.add(field, text)
        if field == "thinking":
            return self._thought(text, first=first)
        return [TextChunk(text=clean_text(text))] if text else []

    def _thought(self, text: str, *, first: bool) -> list[Chunk]:
        """Thinking to show; each further block of it is a paragraph of its own."""
        if not text:
            return []
        apart = first and any(b.begun("thinking") for b in self._blocks[:-1] if b.kind == "thinking")
        return [ReasoningChunk(text=(_PARAGRAPH if apart else "") + clean_text(text))]

    def finish(self) -> ModelTurn:
        """The whole turn. Raises `ProviderError` of kind `stream_cut` where its end is missing."""
        if not self.complete:
            raise faults.stream_cut("the stream ended early")
        stop: TurnStop = _STOPS.get(self._stop, "other") if self._stop else "end_turn"
        calls, wire = self._content(stop)
        if calls and stop in ("end_turn", "other"):
            stop = "tool_use"
        elif stop == "tool_use" and not calls:
            stop = "end_turn"
        thoughts = [b.text("thinking") for b in self._blocks if b.kind == "thinking"]
        return ModelTurn(
            text=clean_text("".join(b.text("text") for b in self._blocks if b.kind == "text")),
            reasoning=clean_text(_PARAGRAPH.join(t for t in thoughts if t)),
            calls=tuple(calls),
            wire=raw(wire),
            usage=self._counted(),
            stop_reason=stop,
            model=self._model,
        )

    def _content(self, stop: TurnStop) -> tuple[list[ProposedCall], list[dict[str, Any]]]:
        """The calls, and all blocks to send back. What a refusal broke off is no call."""
        calls, wire = [], []
        for block in self._blocks:
            if block.position is None:
                wire.append(block.wire())
            elif stop != "refusal":
                cut = stop == "max_tokens" and block is self._blocks[-1]
                call, sent = block.call(cut=cut)
                calls.append(call)
                wire.append(sent)
        return calls, wire

    def _counted(self) -> Usage:
        """Usage with cached tokens counted as input, as everywhere here; the API counts them apart."""
        fresh, output, read, written = (self._usage[field] for field in _COUNTS)
        return Usage(
            input_tokens=fresh + read + written,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
            requests=1,
        )


def assemble(events: Iterable[dict[str, Any]]) -> ModelTurn:
    """The turn that the decoded events of one stream make. Raises `ProviderError`."""
    return assemble_with(Assembler(), events)
