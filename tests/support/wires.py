"""Scripted turns in the three wire formats: as stream events, as one body, and read back from requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counterfoil.events import Usage
from counterfoil.providers.script import Script, ScriptCall, ScriptTurn, pieces
from tests.support.strict import merged_messages

Json = dict[str, Any]
CANARY = "CANARY-"
"""What all private strings of the server begin with, but for pairing ids, which begin as the script says."""


class Cut:
    """Stands where the stream of a turn with `cut` ends."""


CUT = Cut()
Event = Json | Cut


@dataclass(frozen=True)
class Reply:
    """One turn to send: its script, its number in the session, and the model that was asked for."""

    script: Script
    turn: ScriptTurn
    number: int
    model: str
    serial: int

    @property
    def usage(self) -> Usage:
        """Tokens as written, or a few."""
        return self.turn.usage or Usage(input_tokens=10, output_tokens=5)

    def secret(self, kind: str, position: int = 0) -> str:
        """An unmistakable private string, unique in the life of the server."""
        return f"{CANARY}{kind}-{self.serial}-{position}"

    def pairing(self, position: int) -> str:
        """The pairing id of the call at `position`."""
        return self.script.pairing_id(self.turn.calls[position], self.number, position)


def arguments_text(call: ScriptCall) -> str:
    """The text of a call's arguments on the wire."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def arguments_value(call: ScriptCall) -> Any:
    """The arguments as an object, where they are one."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return {}


def _halves(reply: Reply, position: int) -> Iterator[str | Cut]:
    """Argument text in two fragments; the cut is in the middle of the last call's."""
    text = arguments_text(reply.turn.calls[position])
    yield text[: len(text) // 2]
    if position == len(reply.turn.calls) - 1:
        yield CUT
    yield text[len(text) // 2 :]


# ---- Chat Completions -------------------------------------------------------------------------------------

_FINISH = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "content_filter": "content_filter"}


def chat_events(reply: Reply) -> Iterator[Event]:
    """The chunks of a streamed chat completion; usage comes last, without choices."""
    head = {"id": reply.secret("completion"), "object": "chat.completion.chunk", "created": 0, "model": reply.model}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if reply.turn.reasoning:
        yield chunk({"reasoning_content": reply.turn.reasoning})
    for piece in pieces(reply.turn.text, reply.turn.chunks):
        yield chunk({"content": piece})
    for position, call in enumerate(reply.turn.calls):
        first = {"id": reply.pairing(position), "type": "function", "function": {"name": call.tool, "arguments": ""}}
        yield chunk({"tool_calls": [{"index": position, **first}]})
        for part in _halves(reply, position):
            fragment = {"index": position, "function": {"arguments": part}}
            yield part if isinstance(part, Cut) else chunk({"tool_calls": [fragment]})
    if not reply.turn.calls:
        yield CUT
    yield chunk({}, _FINISH.get(reply.turn.stop_reason, "stop"))
    yield {**head, "choices": [], "usage": _chat_usage(reply.usage)}


def chat_body(reply: Reply) -> Json:
    """The same as one body."""
    message: Json = {"role": "assistant", "content": reply.turn.text or None}
    if reply.turn.reasoning:
        message["reasoning_content"] = reply.turn.reasoning
    calls = [
        {"id": reply.pairing(n), "type": "function", "function": {"name": c.tool, "arguments": arguments_text(c)}}
        for n, c in enumerate(reply.turn.calls)
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _FINISH.get(reply.turn.stop_reason, "stop")}
    return {
        "id": reply.secret("completion"),
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [choice],
        "usage": _chat_usage(reply.usage),
    }


def _chat_usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


# ---- Messages ---------------------------------------------------------------------------------------------


def messages_events(reply: Reply) -> Iterator[Event]:
    """The events of a streamed message."""
    message = {**messages_body(reply), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(message_blocks(reply)):
        start, deltas = _block_deltas(reply, block, index)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield delta if isinstance(delta, Cut) else {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if not reply.turn.calls:
        yield CUT
    delta = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.usage.output_tokens}}
    yield {"type": "message_stop"}


def messages_body(reply: Reply) -> Json:
    """The same as one body."""
    usage = reply.usage
    fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    return {
        "id": reply.secret("message"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": message_blocks(reply),
        "stop_reason": _stop(reply),
        "stop_sequence": None,
        "usage": {
            "input_tokens": fresh,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def message_blocks(reply: Reply) -> list[Json]:
    """The content blocks of the turn; reasoning is a signed thinking block and a redacted one."""
    blocks: list[Json] = []
    if reply.turn.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.turn.reasoning, "signature": reply.secret("sig")})
        blocks.append({"type": "redacted_thinking", "data": reply.secret("redacted")})
    if reply.turn.text:
        blocks.append({"type": "text", "text": reply.turn.text})
    for n, call in enumerate(reply.turn.calls):
        blocks.append({"type": "tool_use", "id": reply.pairing(n), "name": call.tool, "input": arguments_value(call)})
    return blocks


def _block_deltas(reply: Reply, block: Json, index: int) -> tuple[Json, list[Json | Cut]]:
    """A block as it starts, and what fills it."""
    if block["type"] == "text":
        texts = pieces(block["text"], reply.turn.chunks)
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    if block["type"] == "thinking":
        thinking = {"type": "thinking_delta", "thinking": block["thinking"]}
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [thinking, signature]
    if block["type"] == "tool_use":
        position = index - len(message_blocks(reply)) + len(reply.turn.calls)
        parts = _halves(reply, position)
        deltas = [p if isinstance(p, Cut) else {"type": "input_json_delta", "partial_json": p} for p in parts]
        return {**block, "input": {}}, deltas
    return block, []


def _stop(reply: Reply) -> str:
    stop = reply.turn.stop_reason
    return "refusal" if stop == "content_filter" else "end_turn" if stop == "other" else stop


# ---- Responses --------------------------------------------------------------------------------------------


def response_items(reply: Reply) -> list[Json]:
    """The output items of the turn."""
    items: list[Json] = []
    if reply.turn.reasoning:
        summary = [{"type": "summary_text", "text": reply.turn.reasoning}]
        secret = {"id": reply.secret("item-rs"), "encrypted_content": reply.secret("enc")}
        items.append({"type": "reasoning", **secret, "summary": summary})
    if reply.turn.text:
        content = [{"type": "output_text", "text": reply.turn.text, "annotations": []}]
        head = {"type": "message", "id": reply.secret("item-msg"), "role": "assistant", "status": "completed"}
        items.append({**head, "content": content})
    for n, call in enumerate(reply.turn.calls):
        head = {"type": "function_call", "id": reply.secret("item-fc", n), "call_id": reply.pairing(n)}
        items.append({**head, "name": call.tool, "arguments": arguments_text(call), "status": "completed"})
    return items


def responses_body(reply: Reply) -> Json:
    """The whole response object."""
    usage, incomplete = reply.usage, reply.turn.stop_reason in ("max_tokens", "content_filter")
    reason = "max_output_tokens" if reply.turn.stop_reason == "max_tokens" else "content_filter"
    return {
        "id": reply.secret("response"),
        "object": "response",
        "model": reply.model,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": reason} if incomplete else None,
        "error": None,
        "output": response_items(reply),
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def responses_events(reply: Reply) -> Iterator[Event]:
    """The events of a streamed response, numbered."""
    for number, event in enumerate(_responses_events(reply)):
        yield event if isinstance(event, Cut) else {**event, "sequence_number": number}


def _responses_events(reply: Reply) -> Iterator[Event]:
    whole = responses_body(reply)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    calls = 0
    for index, item in enumerate(whole["output"]):
        place = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        if item["type"] == "reasoning":
            text = {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": reply.turn.reasoning}
            yield {**place, **text}
        elif item["type"] == "message":
            for piece in pieces(reply.turn.text, reply.turn.chunks):
                yield {**place, "type": "response.output_text.delta", "content_index": 0, "delta": piece}
            yield {**place, "type": "response.output_text.done", "content_index": 0, "text": reply.turn.text}
        else:
            for part in _halves(reply, calls):
                delta = {**place, "type": "response.function_call_arguments.delta", "delta": part}
                yield part if isinstance(part, Cut) else delta
            yield {**place, "type": "response.function_call_arguments.done", "arguments": item["arguments"]}
            calls += 1
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if not reply.turn.calls:
        yield CUT
    yield {"type": f"response.{whole['status']}", "response": whole}


def _begun(item: Json) -> Json:
    empty: Json = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}
    status = {} if item["type"] == "reasoning" else {"status": "in_progress"}
    return {**item, **empty[item["type"]], **status}


# ---- requests read back -----------------------------------------------------------------------------------


def turns_of(wire: str, body: Json) -> int:
    """How many turns of the model a request holds."""
    if wire == "messages":
        return sum(1 for role, _ in merged_messages(body) if role == "assistant")
    if wire == "chat":
        return sum(1 for m in body.get("messages", []) if m.get("role") == "assistant")
    items = body.get("input")
    turns, inside = 0, False
    for item in items if isinstance(items, list) else []:
        own = item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"
        turns += own and not inside
        inside = own
    return turns


def first_prompt(wire: str, body: Json) -> str:
    """The text of the first message of the person."""
    items = body.get("input") if wire == "responses" else body.get("messages")
    if isinstance(items, str):
        return items
    content = next((m.get("content") for m in items or [] if m.get("role") == "user"), "")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or [])


EVENTS = {"chat": chat_events, "messages": messages_events, "responses": responses_events}
BODIES = {"chat": chat_body, "messages": messages_body, "responses": responses_body}
