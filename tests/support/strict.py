"""What the real APIs demand of a request, as checks that share no code with the adapters.

Each check raises `Refused` with a reason. They are as strict as the strictest server that a request may meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
Json = dict[str, Any]


class Refused(Exception):
    """The request is not valid; the text says why."""


def demand(condition: object, reason: str) -> None:
    """Raise `Refused` unless `condition` holds."""
    if not condition:
        raise Refused(reason)


def _objects(value: Any, where: str) -> list[Json]:
    demand(isinstance(value, list) and all(isinstance(v, dict) for v in value), f"{where}: must be a list of objects")
    objects: list[Json] = value
    return objects


# ---- Chat Completions -------------------------------------------------------------------------------------


def check_chat(body: Json) -> None:
    """Each call is answered by a tool message right after it, before anything else."""
    demand(isinstance(body.get("model"), str) and body["model"], "model: required")
    messages = _objects(body.get("messages"), "messages")
    demand(messages, "messages: must not be empty")
    demand("stream_options" not in body or body.get("stream"), "stream_options: only with stream")
    for tool in _objects(body.get("tools", []), "tools"):
        demand(tool.get("type") == "function", "tools: type must be function")
        _tool(tool.get("function"), "parameters")
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        where, role = f"messages[{place}]", message.get("role")
        if role == "tool":
            answer = message.get("tool_call_id")
            demand(
                answer in open_ids, f"{where}: tool message doesn't answer a call of the preceding assistant message"
            )
            open_ids.remove(str(answer))
            demand(isinstance(message.get("content"), str | list), f"{where}: tool content required")
            continue
        demand(not open_ids, f"{where}: calls of the preceding assistant message are not all answered")
        demand(role in ("system", "developer", "user", "assistant"), f"{where}: unknown role {role!r}")
        if role == "assistant":
            open_ids = _chat_calls(message, where)
        else:
            demand(message.get("content"), f"{where}: content required")
    demand(not open_ids, "messages: the last calls are not all answered")


def _chat_calls(message: Json, where: str) -> list[str]:
    calls = _objects(message.get("tool_calls", []), f"{where}.tool_calls")
    demand("tool_calls" not in message or calls, f"{where}: tool_calls must not be empty")
    demand(calls or isinstance(message.get("content"), str | list), f"{where}: content or tool_calls required")
    ids = []
    for call in calls:
        function = call.get("function")
        demand(call.get("type") == "function" and isinstance(function, dict), f"{where}: a call must be a function")
        assert isinstance(function, dict)
        demand(isinstance(function.get("arguments"), str), f"{where}: arguments must be text")
        demand(isinstance(function.get("name"), str) and function["name"], f"{where}: name required")
        demand(isinstance(call.get("id"), str) and call["id"], f"{where}: id required")
        ids.append(call["id"])
    demand(len(set(ids)) == len(ids), f"{where}: ids of the calls must be unique")
    return ids


def _tool(tool: Any, schema: str) -> None:
    demand(isinstance(tool, dict) and NAME.match(str(tool.get("name"))), "tools: bad name")
    demand(isinstance(tool.get(schema), dict) and tool[schema].get("type") == "object", f"tools: bad {schema}")


# ---- Messages ---------------------------------------------------------------------------------------------


def check_messages(body: Json) -> None:
    """Roles, block rules, results first and complete, thinking signed and never last."""
    demand(isinstance(body.get("model"), str) and body["model"], "model: required")
    demand(isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0, "max_tokens: required")
    system = body.get("system", [])
    for block in [] if isinstance(system, str) else _objects(system, "system"):
        _text_block(block, "system")
    for tool in _objects(body.get("tools", []), "tools"):
        _tool(tool, "input_schema")
    marks = sum(1 for found in _dicts(body) if "cache_control" in found)
    demand(marks <= 4, "cache_control: at most 4 blocks")
    merged = merged_messages(body)
    demand(merged and merged[0][0] == "user", "messages: the first message must use the user role")
    demand(merged[-1][0] == "user", "messages: prefilling the answer is not supported")
    open_ids: list[str] = []
    for place, (role, blocks) in enumerate(merged):
        where = f"messages.{place}"
        if role == "assistant":
            open_ids = _assistant_blocks(blocks, where)
        else:
            _user_blocks(blocks, open_ids, where)
            open_ids = []
    _check_thinking(body, merged)


def merged_messages(body: Json) -> list[tuple[str, list[Json]]]:
    """Roles and blocks, with consecutive messages of one role as one."""
    merged: list[tuple[str, list[Json]]] = []
    for place, message in enumerate(_objects(body.get("messages"), "messages")):
        role, content = message.get("role"), message.get("content")
        demand(role in ("user", "assistant"), f"messages.{place}: unknown role {role!r}")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content, "content")
        demand(blocks, f"messages.{place}: content must not be empty")
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        else:
            merged.append((str(role), list(blocks)))
    return merged


def _text_block(block: Json, where: str) -> None:
    demand(block.get("type") == "text", f"{where}: a text block was expected")
    demand(isinstance(block.get("text"), str), f"{where}: text required")
    demand(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")


def _assistant_blocks(blocks: list[Json], where: str) -> list[str]:
    ids: list[str] = []
    for block in blocks:
        kind = block.get("type")
        demand(kind not in ("tool_result", "image"), f"{where}: {kind} blocks can't be in assistant messages")
        if kind == "text":
            _text_block(block, where)
        elif kind == "tool_use":
            demand(NAME.match(str(block.get("id"))), f"{where}: tool_use.id has a bad form")
            demand(isinstance(block.get("input"), dict), f"{where}: tool_use.input must be an object")
            demand(block.get("name"), f"{where}: tool_use.name required")
            ids.append(block["id"])
        elif kind == "thinking":
            demand(block.get("signature"), f"{where}: thinking.signature required")
            demand(isinstance(block.get("thinking"), str), f"{where}: thinking required")
            demand("cache_control" not in block, f"{where}: thinking blocks can't be marked")
        elif kind == "redacted_thinking":
            demand(block.get("data"), f"{where}: redacted_thinking.data required")
    demand(len(set(ids)) == len(ids), f"{where}: tool_use ids must be unique")
    demand(not str(blocks[-1].get("type")).endswith("thinking"), f"{where}: the final block cannot be thinking")
    return ids


def _user_blocks(blocks: list[Json], open_ids: list[str], where: str) -> None:
    answered: list[str] = []
    other = False
    for block in blocks:
        kind = block.get("type")
        if kind != "tool_result":
            demand(kind in ("text", "image", "document"), f"{where}: unexpected block {kind!r}")
            if kind == "text":
                _text_block(block, where)
            other = True
            continue
        demand(not other, f"{where}: tool_result blocks must come first")
        answered.append(str(block.get("tool_use_id")))
        content = block.get("content", [])
        for part in [] if isinstance(content, str) else _objects(content, where):
            if part.get("type") == "text":
                _text_block(part, where)
    demand(sorted(answered) == sorted(open_ids), f"{where}: tool_result blocks must answer each tool_use right before")


def _check_thinking(body: Json, merged: list[tuple[str, list[Json]]]) -> None:
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking.get("type") == "disabled":
        return
    demand(body.get("temperature", 1) == 1, "temperature: must be 1 with thinking")
    if thinking.get("type") == "adaptive":
        return
    budget = thinking.get("budget_tokens")
    demand(isinstance(budget, int) and 1024 <= budget < body["max_tokens"], "thinking.budget_tokens: out of bounds")
    if merged[-1][1][0].get("type") == "tool_result":
        first = str(merged[-2][1][0].get("type"))
        demand(first.endswith("thinking"), "a final assistant message must start with a thinking block")


def _dicts(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _dicts(item)


# ---- Responses --------------------------------------------------------------------------------------------


def check_responses(body: Json) -> None:
    """Calls and outputs in pairs, each reasoning item with the item that it led to."""
    demand(isinstance(body.get("model"), str) and body["model"], "model: required")
    for tool in _objects(body.get("tools", []), "tools"):
        demand(tool.get("type") == "function", "tools: type must be function")
        _tool(tool, "parameters")
    given = body.get("input")
    if isinstance(given, str):
        demand(given, "input: must not be empty")
        return
    items = _objects(given, "input")
    demand(items, "input: must not be empty")
    open_ids: list[str] = []
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else {}
        _response_item(item, following, open_ids, f"input[{place}]", stored=body.get("store", True))
    demand(not open_ids, "input: no tool output found for a function call")


def _response_item(item: Json, following: Json, open_ids: list[str], where: str, *, stored: bool) -> None:
    kind = item.get("type", "message")
    if kind == "function_call":
        demand(isinstance(item.get("call_id"), str) and item["call_id"], f"{where}: call_id required")
        demand(item["call_id"] not in open_ids, f"{where}: call_id is open already")
        demand(isinstance(item.get("arguments"), str), f"{where}: arguments must be text")
        demand(item.get("name"), f"{where}: name required")
        open_ids.append(item["call_id"])
    elif kind == "function_call_output":
        demand(item.get("call_id") in open_ids, f"{where}: no function call with this call_id")
        open_ids.remove(item["call_id"])
        demand(isinstance(item.get("output"), str | list), f"{where}: output required")
    elif kind == "reasoning":
        demand(isinstance(item.get("summary"), list), f"{where}: summary required")
        demand(stored or item.get("encrypted_content"), f"{where}: encrypted_content required when nothing is stored")
        follows = following.get("type", "message")
        mine = follows in ("function_call", "reasoning") or following.get("role") == "assistant"
        demand(mine, f"{where}: reasoning item without its required following item")
    elif kind == "message":
        role = item.get("role")
        demand(role in ("system", "developer", "user", "assistant"), f"{where}: unknown role {role!r}")
        demand(item.get("content"), f"{where}: content required")
        demand(role != "user" or not open_ids, f"{where}: calls before it have no output")


CHECKS = {"chat": check_chat, "messages": check_messages, "responses": check_responses}
