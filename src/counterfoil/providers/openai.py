"""OpenAI's Responses API, without state at the server: every output item goes back as it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from counterfoil.events import ImagePart, Part, TextPart, TurnStop, Usage, text_of
from counterfoil.events.codec import clean_text
from counterfoil.ports import (
    CallChunk,
    ModelRequest,
    ModelSettings,
    ModelTurn,
    ProposedCall,
    ReasoningChunk,
    TextChunk,
    ToolSpec,
)
from counterfoil.providers import faults
from counterfoil.providers.http import Chunk, HttpProvider, assemble_with
from counterfoil.providers.wire import (
    NAMELESS,
    NAMELESS_PROBLEM,
    count,
    data_url,
    encode_json,
    entries,
    fields,
    made_pairing_id,
    parse_arguments,
    raw,
    string,
    summary_text,
)
from counterfoil.state.history import EncodedHistory, History, HistoryCall, HistoryItem, PromptItem, TurnItem

_WITHOUT_REASONING = ("gpt-3.5", "gpt-4", "chatgpt-4o")
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


# ---- request ------------------------------------------------------------------------------------------------


def request(
    history: History,
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    *,
    system: str = "",
    memo: EncodedHistory | None = None,
    origin: str = "",
) -> dict[str, Any]:
    """The body of one request. Items that `memo` knows are not encoded again."""
    body: dict[str, Any] = {
        "model": settings.model,
        "input": (memo or EncodedHistory()).messages(history, lambda item: encode_item(item, origin)),
        "store": False,
        "stream": True,
    }
    if not settings.model.startswith(_WITHOUT_REASONING):
        body["include"] = ["reasoning.encrypted_content"]
    if system:
        body["instructions"] = system
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if settings.max_tokens:
        body["max_output_tokens"] = settings.max_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.effort:
        body["reasoning"] = {"effort": settings.effort, "summary": "auto"}
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def encode_item(item: HistoryItem, origin: str) -> list[msgspec.Raw]:
    """The input items of one history item, for the server at `origin`."""
    if isinstance(item, PromptItem):
        return [_user(_content(item.parts))]
    if isinstance(item, TurnItem):
        return _turn(item, origin)
    return [_user(summary_text(item.text))]


def _user(content: str | list[dict[str, Any]]) -> msgspec.Raw:
    return raw({"type": "message", "role": "user", "content": content})


def _content(parts: tuple[Part, ...]) -> str | list[dict[str, Any]]:
    """Text as a string; as typed content where there are images."""
    if not any(isinstance(part, ImagePart) for part in parts):
        return text_of(parts)
    return [
        {"type": "input_image", "image_url": data_url(part)}
        if isinstance(part, ImagePart)
        else {"type": "input_text", "text": text_of((part,))}
        for part in parts
    ]


def _turn(item: TurnItem, origin: str) -> list[msgspec.Raw]:
    """The model's own items, then all results in the order of the calls."""
    replay = item.replay
    ours = replay is not None and replay.origin == origin
    ours = ours and all(c.replay is not None and c.replay.origin == origin for c in item.calls)
    items = _raw_list.decode(replay.wire) if ours and replay is not None else _rebuilt(item)
    results = {result.tool_call_id: result for result in item.results}
    for call in item.calls:
        result = results.get(call.tool_call_id)
        parts: tuple[Part, ...] = result.parts if result is not None else (TextPart(text="(no result)"),)
        output = _content(parts) or "(no output)"
        items.append(raw({"type": "function_call_output", "call_id": _pairing(call, ours), "output": output}))
    return items


def _pairing(call: HistoryCall, ours: bool) -> str:
    """The id that pairs a result with its call: the server's own, or, for another server's call, ours."""
    return call.replay.pairing_id if ours and call.replay is not None else call.tool_call_id


def _rebuilt(item: TurnItem) -> list[msgspec.Raw]:
    """The turn from what is public, for a server that it did not come from."""
    items = []
    if item.text:
        items.append(raw({"type": "message", "role": "assistant", "content": item.text}))
    for call in item.calls:
        arguments = encode_json(call.arguments).decode()
        pairing = _pairing(call, False)
        items.append(raw({"type": "function_call", "call_id": pairing, "name": call.tool, "arguments": arguments}))
    return items


# ---- answer -------------------------------------------------------------------------------------------------


class Assembler:
    """Makes one turn of the events of one stream, or of one whole response."""

    def __init__(self) -> None:
        self.done = False
        self._items: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._positions: dict[int, int] = {}
        self._parts: tuple[int, Any] | None = None
        self._response: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the response was closed by the server."""
        return self.done

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Take the next event of the stream."""
        kind = event.get("type")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return _text(event)
        if kind == "response.function_call_arguments.delta":
            return self._argument(event)
        if kind == "response.reasoning_summary_text.delta":
            return self._summary(event)
        if kind in ("response.output_item.added", "response.output_item.done"):
            return self._item(event)
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._close(fields(event.get("response")), str(kind).rpartition(".")[2])
        elif kind == "error" or event.get("error"):
            raise faults.provider_error(faults.failure_of(event if event.get("error") else {"error": event}))
        elif event.get("object") == "response" and kind is None:
            self._close(event, string(event.get("status")) or "completed")
        return []

    def _argument(self, event: dict[str, Any]) -> list[Chunk]:
        place = _place(event)
        text = clean_text(string(event.get("delta")))
        self._arguments.setdefault(place, []).append(text)
        position = self._positions.setdefault(place, len(self._positions))
        return [CallChunk(position=position, arguments_text=text)] if text else []

    def _summary(self, event: dict[str, Any]) -> list[Chunk]:
        """More of the summary; a new part of it begins with an empty line."""
        text = clean_text(string(event.get("delta")))
        part = (_place(event), event.get("summary_index"))
        if self._parts is not None and self._parts != part:
            text = "\n\n" + text
        self._parts = part
        return [ReasoningChunk(text=text)] if text else []

    def _item(self, event: dict[str, Any]) -> list[Chunk]:
        place, item = _place(event), fields(event.get("item"))
        known = place in self._items
        self._items[place] = item
        if event["type"] == "response.output_item.done":
            self._arguments.pop(place, None)
        if item.get("type") != "function_call":
            return []
        position = self._positions.setdefault(place, len(self._positions))
        if known:
            return []
        return [CallChunk(position=position, tool=clean_text(string(item.get("name"))))]

    def _close(self, response: dict[str, Any], status: str) -> None:
        if status in ("failed", "cancelled"):
            error = fields(response.get("error")) or {"message": f"the response was {status}"}
            raise faults.provider_error(faults.failure_of({"error": error}))
        if status not in ("completed", "incomplete"):
            return
        self._response = {**response, "status": status}
        self.done = True

    def finish(self) -> ModelTurn:
        """The whole turn. Raises `ProviderError` of kind `stream_cut` where its end is missing."""
        if not self.done:
            raise faults.stream_cut("the stream ended early")
        items = self._output()
        calls = tuple(_call(item) for item in items if item.get("type") == "function_call")
        kept = _replayed(items)
        refused = any(part.get("type") == "refusal" for item in items for part in _message_parts(item))
        return ModelTurn(
            text=clean_text("".join(_words(part) for item in items for part in _message_parts(item))),
            reasoning=clean_text("\n\n".join(_summaries(items))),
            calls=calls,
            wire=raw(kept) if kept else None,
            usage=_usage(fields(self._response.get("usage"))),
            stop_reason=self._stop(bool(calls), refused),
            model=string(self._response.get("model")),
        )

    def _output(self) -> list[dict[str, Any]]:
        """The output items: as the closing event lists them, or else as they came one by one."""
        listed = entries(self._response.get("output"))
        if len(listed) >= len(self._items):
            items = [dict(item) for item in listed]
        else:
            items = [dict(self._items[place]) for place in sorted(self._items)]
            for place, item in zip(sorted(self._items), items, strict=True):
                if place in self._arguments and not item.get("arguments"):
                    item["arguments"] = clean_text("".join(self._arguments[place]))
        return items

    def _stop(self, calls: bool, refused: bool) -> TurnStop:
        if self._response["status"] == "incomplete":
            reason = fields(self._response.get("incomplete_details")).get("reason")
            known: dict[Any, TurnStop] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
            return known.get(reason, "other")
        if refused:
            return "refusal"
        return "tool_use" if calls else "end_turn"


def _place(event: dict[str, Any]) -> int:
    place = event.get("output_index")
    return place if isinstance(place, int) else 0


def _text(event: dict[str, Any]) -> list[Chunk]:
    text = clean_text(string(event.get("delta")))
    return [TextChunk(text=text)] if text else []


def _message_parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    return entries(item.get("content")) if item.get("type") == "message" else []


def _words(part: dict[str, Any]) -> str:
    return string(part.get("text")) if part.get("type") == "output_text" else string(part.get("refusal"))


def _summaries(items: list[dict[str, Any]]) -> list[str]:
    """The public part of the reasoning: its summaries."""
    found = [s for item in items if item.get("type") == "reasoning" for s in entries(item.get("summary"))]
    return [string(s.get("text")) for s in found if s.get("text")]


def _call(item: dict[str, Any]) -> ProposedCall:
    """The call in `item`. What a compatible server left out of it (id, arguments, name) is filled in there too."""
    made = not string(item.get("call_id"))
    if made:
        item["call_id"] = made_pairing_id()
    arguments = item.get("arguments")
    if not isinstance(arguments, str) or not arguments or arguments.isspace():
        item["arguments"] = encode_json(fields(arguments)).decode()
    item["name"] = string(item.get("name")) or NAMELESS
    parsed, problem = parse_arguments(clean_text(item["arguments"]))
    if item["name"] == NAMELESS:
        parsed, problem = None, NAMELESS_PROBLEM
    return ProposedCall(
        pairing_id=clean_text(item["call_id"]),
        made=made,
        tool=clean_text(item["name"]),
        arguments=parsed,
        problem=problem,
    )


def _replayed(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items to send back. Reasoning that nothing follows is left out: the API refuses it alone."""
    kept = list(items)
    while kept and kept[-1].get("type") == "reasoning":
        kept.pop()
    return kept


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_tokens=count(fields(usage.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count(fields(usage.get("output_tokens_details")).get("reasoning_tokens")),
        requests=1,
    )


def assemble(events: Iterable[dict[str, Any]]) -> ModelTurn:
    """The turn that the decoded events of one stream make. Raises `ProviderError`."""
    return assemble_with(Assembler(), events)


class OpenAIResponses(HttpProvider):
    """A model behind the Responses API."""

    wire = "openai"
    path = "/responses"
    key_variable = "OPENAI_API_KEY"
    default_base_url = "https://api.openai.com/v1"

    def body(self, asked: ModelRequest, /) -> dict[str, Any]:
        """The request's JSON body."""
        return request(
            asked.history, asked.tools, asked.settings, system=asked.system, memo=asked.memo, origin=self.origin
        )

    def assembler(self) -> Assembler:
        """A new assembler for one stream."""
        return Assembler()
