"""Chat Completions: OpenAI's, and that of every compatible server by its base URL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from counterfoil.events import ImagePart, Part, TextPart, TurnStop, Usage, text_of
from counterfoil.events.codec import clean_text
from counterfoil.ports import ModelRequest, ModelSettings, ModelTurn, ReasoningChunk, TextChunk, ToolSpec
from counterfoil.providers import faults
from counterfoil.providers.chat_calls import CallSlots
from counterfoil.providers.http import Chunk, HttpProvider, assemble_with
from counterfoil.providers.wire import count, data_url, encode_json, entries, fields, raw, string, summary_text
from counterfoil.state.history import EncodedHistory, History, HistoryCall, HistoryItem, PromptItem, TurnItem

_FINISH: dict[str, TurnStop] = {
    "stop": "end_turn",
    "tool_calls": "end_turn",
    "function_call": "end_turn",
    "eos": "end_turn",
    "end_turn": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
_BROKEN_FINISH = {"error", "insufficient_system_resource", "network_error"}
_REASONING_TEXT = ("reasoning_content", "reasoning")
_PAIRING_BOUND = 40
_MERGED = ("text", "summary", "data")


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
    """The body of one request. Messages that `memo` knows are not encoded again."""
    told = (memo or EncodedHistory()).messages(history, lambda item: encode_item(item, origin))
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [raw({"role": "system", "content": system}), *told] if system else list(told),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if settings.max_tokens:
        official = origin.endswith("://api.openai.com")
        body["max_completion_tokens" if official else "max_tokens"] = settings.max_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.effort:
        body["reasoning_effort"] = settings.effort
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def encode_item(item: HistoryItem, origin: str) -> list[msgspec.Raw]:
    """The messages of one history item, for the server at `origin`."""
    if isinstance(item, PromptItem):
        return [raw({"role": "user", "content": _content(item.parts)})]
    if isinstance(item, TurnItem):
        return _turn(item, origin)
    return [raw({"role": "user", "content": summary_text(item.text)})]


def _content(parts: tuple[Part, ...]) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, ImagePart) for part in parts):
        return text_of(parts)
    return [_image(p) if isinstance(p, ImagePart) else {"type": "text", "text": text_of((p,))} for p in parts]


def _image(part: ImagePart) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def _turn(item: TurnItem, origin: str) -> list[msgspec.Raw]:
    """The assistant's message, all results in the order of the calls, then images, which no result can hold."""
    replay = item.replay
    ours = replay is not None and replay.origin == origin
    ours = ours and all(c.replay is not None and c.replay.origin == origin for c in item.calls)
    messages = []
    if ours and replay is not None:
        messages.append(replay.wire)
    elif item.text or item.calls:
        messages.append(_rebuilt(item))
    results = {result.tool_call_id: result for result in item.results}
    images: list[dict[str, Any]] = []
    for call in item.calls:
        result = results.get(call.tool_call_id)
        parts: tuple[Part, ...] = result.parts if result is not None else (TextPart(text="(no result)"),)
        text = text_of(parts) or "(no output)"
        messages.append(raw({"role": "tool", "tool_call_id": _pairing(call, ours), "content": text}))
        images += _labelled_images(call, parts)
    if images:
        messages.append(raw({"role": "user", "content": images}))
    return messages


def _labelled_images(call: HistoryCall, parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ImagePart):
            label = f"Image from the result of {call.tool}: {part.name or part.media_type}"
            content += [{"type": "text", "text": label}, _image(part)]
    return content


def _pairing(call: HistoryCall, ours: bool) -> str:
    """The id that pairs a result with its call: the server's own, or, for another server's call, ours."""
    if ours and call.replay is not None:
        return call.replay.pairing_id
    return call.tool_call_id[-_PAIRING_BOUND:]


def _rebuilt(item: TurnItem) -> msgspec.Raw:
    """The assistant's message from what is public, for a server that it did not come from."""
    message: dict[str, Any] = {"role": "assistant", "content": item.text or None}
    if item.calls:
        message["tool_calls"] = [
            {
                "id": _pairing(call, False),
                "type": "function",
                "function": {"name": call.tool, "arguments": encode_json(call.arguments).decode()},
            }
            for call in item.calls
        ]
    return raw(message)


# ---- answer -------------------------------------------------------------------------------------------------


class Assembler:
    """Makes one turn of the chunks of one stream, or of one whole answer."""

    def __init__(self) -> None:
        self.done = False
        self._finish = ""
        self._model = ""
        self._content: list[str] | None = None
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._kept: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._extra: dict[str, Any] = {}
        self._calls = CallSlots()
        self._usage: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the model said that it had finished."""
        return self.done or bool(self._finish)

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Take the next chunk of the stream."""
        choices = event.get("choices")
        if not choices:
            self._aside(event)
            return []
        if event.get("error"):
            raise faults.provider_error(faults.failure_of(event))
        if not self._model:
            self._model = string(event.get("model"))
        chunks: list[Chunk] = []
        for choice in entries(choices):
            if choice.get("index") in (0, None):
                chunks += self._choice(choice)
        self._count(event)
        return chunks

    def _aside(self, event: dict[str, Any]) -> None:
        """An event without choices: the end, an error, usage, or something to pass over."""
        kind = event.get("type")
        if kind == "[DONE]":
            self.done = True
        elif event.get("error") or kind == "error" or event.get("object") == "error":
            raise faults.provider_error(faults.failure_of(event))
        else:
            self._count(event)

    def _choice(self, choice: dict[str, Any]) -> list[Chunk]:
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            if finish in _BROKEN_FINISH:
                failure = fields(choice.get("error")) or {"message": f"the model's answer ended with {finish!r}"}
                raise faults.provider_error(faults.failure_of(failure))
            self._finish = finish
        if isinstance(choice.get("usage"), dict):
            self._usage = choice["usage"]
        delta, streamed = choice.get("delta"), True
        if not isinstance(delta, dict):
            delta, streamed = choice.get("message"), False
        return self._delta(delta, streamed) if isinstance(delta, dict) else []

    def _delta(self, delta: dict[str, Any], streamed: bool) -> list[Chunk]:
        chunks: list[Chunk] = self._reasoned(delta)
        content = delta.get("content")
        if content is not None:
            chunks += self._said(content)
        if delta.get("refusal"):
            refusal = clean_text(string(delta["refusal"]))
            self._refusal.append(refusal)
            chunks.append(TextChunk(text=refusal))
        if delta.get("tool_calls"):
            chunks += self._calls.take(delta["tool_calls"], streamed=streamed)
        if isinstance(delta.get("extra_content"), dict):
            self._extra.update(delta["extra_content"])
        return chunks

    def _said(self, content: Any) -> list[Chunk]:
        """Text, as a string or, by some servers, as parts."""
        if self._content is None:
            self._content = []
        chunks: list[Chunk] = []
        for part in [content] if isinstance(content, str) else entries(content):
            if isinstance(part, str):
                text = clean_text(part)
            elif part.get("type") == "thinking":
                thought = "".join(string(p.get("text")) for p in entries(part.get("thinking")))
                chunks += self._thought(clean_text(thought))
                continue
            else:
                text = clean_text(string(part.get("text")))
            if text:
                self._content.append(text)
                chunks.append(TextChunk(text=text))
        return chunks

    def _reasoned(self, delta: dict[str, Any]) -> list[Chunk]:
        """Reasoning, shown once, and kept in every form that the server may want back."""
        shown = ""
        for field in _REASONING_TEXT:
            text = delta.get(field)
            if isinstance(text, str):
                text = clean_text(text)
                self._kept.setdefault(field, []).append(text)
                shown = shown or text
        details = delta.get("reasoning_details")
        if details:
            for detail in entries(details):
                text = string(detail.get("text")) or string(detail.get("summary"))
                shown = shown or clean_text(text)
                _merge_detail(self._details, detail)
        return self._thought(shown)

    def _thought(self, text: str) -> list[Chunk]:
        if not text:
            return []
        self._reasoning.append(text)
        return [ReasoningChunk(text=text)]

    def _count(self, event: dict[str, Any]) -> None:
        usage = event.get("usage") or fields(event.get("x_groq")).get("usage")
        if isinstance(usage, dict):
            self._usage = usage

    def finish(self) -> ModelTurn:
        """The whole turn. Raises `ProviderError` of kind `stream_cut` where its end is missing."""
        finished = self._calls.finish()
        calls = tuple(call for call, _ in finished)
        if not self.complete:
            raise faults.stream_cut("the stream ended early")
        if not self._finish and any(call.arguments is None for call in calls):
            raise faults.stream_cut("the stream ended within a call")
        wire_calls = [wire for _, wire in finished]
        text = clean_text("".join(self._content or []))
        refusal = clean_text("".join(self._refusal))
        return ModelTurn(
            text=text + refusal,
            reasoning=clean_text("".join(self._reasoning)),
            calls=calls,
            wire=raw(self._message(text, refusal, wire_calls)),
            usage=_usage(self._usage),
            stop_reason=self._stop(bool(calls)),
            model=self._model,
        )

    def _stop(self, calls: bool) -> TurnStop:
        """Why the model stopped. What it did counts for more than what the server says of it."""
        said: TurnStop = _FINISH.get(self._finish, "other") if self._finish else "end_turn"
        if self._refusal:
            return "refusal"
        return "tool_use" if calls and said in ("end_turn", "other") else said

    def _message(self, text: str, refusal: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """The assistant's message as the server must get it back."""
        content = None if self._content is None and (calls or refusal) else text
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if refusal:
            message["refusal"] = refusal
        for field, pieces in self._kept.items():
            if field == "reasoning_content" or not self._details:
                message[field] = clean_text("".join(pieces))
        if self._details:
            message["reasoning_details"] = self._details
        if self._extra:
            message["extra_content"] = self._extra
        if calls:
            message["tool_calls"] = calls
        return message


def _merge_detail(details: list[dict[str, Any]], detail: dict[str, Any]) -> None:
    """Add a fragment of reasoning to the one that it continues: same type and index, right after it."""
    last = details[-1] if details else {}
    other = any(last.get(k) != detail.get(k) for k in ("type", "index"))
    other = other or bool(last.get("id") and detail.get("id") and last["id"] != detail["id"])
    if other or not last or ("data" in detail and detail.get("index") is None):
        details.append(dict(detail))
        return
    for key, value in detail.items():
        old = last.get(key)
        if key in _MERGED and isinstance(old, str) and isinstance(value, str):
            last[key] = old + value
        elif value is not None:
            last[key] = value


def _usage(usage: dict[str, Any]) -> Usage:
    prompt, output = fields(usage.get("prompt_tokens_details")), fields(usage.get("completion_tokens_details"))
    cached = prompt.get("cached_tokens") or usage.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cache_read_tokens=count(cached),
        reasoning_tokens=count(output.get("reasoning_tokens")),
        requests=1,
    )


def assemble(events: Iterable[dict[str, Any]]) -> ModelTurn:
    """The turn that the decoded events of one stream make. Raises `ProviderError`."""
    return assemble_with(Assembler(), events)


class OpenAIChat(HttpProvider):
    """A model behind a Chat Completions API."""

    wire = "openai_chat"
    path = "/chat/completions"
    key_variable = "OPENAI_API_KEY"
    default_base_url = "https://api.openai.com/v1"

    def body(self, asked: ModelRequest, /) -> dict[str, Any]:
        """The request's JSON body."""
        return request(
            asked.history,
            asked.tools,
            asked.settings,
            system=asked.system,
            memo=asked.memo,
            origin=self.origin,
        )

    def assembler(self) -> Assembler:
        """A new assembler for one stream."""
        return Assembler()


__all__ = ["Assembler", "OpenAIChat", "assemble", "encode_item", "request"]
