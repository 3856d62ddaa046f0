"""The Messages API: Anthropic's, and that of compatible servers by their base URL.

- Content blocks go back exactly as they came: thinking with its signature, redacted thinking, and kinds that
  aren't known here. Left out is what the API refuses to take back: blank text, and thinking at a turn's end
  (an answer that was cut off within it).
- All results of a turn are one user message, in call order. A prompt after them is a user message of its own: the
  API joins neighbours of one role, results come first then, and each message is encoded once in its life.
- Caches: the system block, the last tool and the last message are marked.
- Effort: models from 4.6 on think adaptively by that effort; older ones, and those of other makers, get a budget of
  tokens. A request that continues a turn without thinking is sent without a budget, for the API demands it so.
- `max_tokens` is required by the API: 32 000 where nothing is set, less for models that can't say as much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from counterfoil.events import ImagePart, Part, text_of
from counterfoil.ports import ModelRequest, ModelSettings, ToolSpec
from counterfoil.providers.anthropic_turn import Assembler, assemble
from counterfoil.providers.http import HttpProvider
from counterfoil.providers.wire import raw, string, summary_text
from counterfoil.state.history import (
    EncodedHistory,
    History,
    HistoryCall,
    HistoryItem,
    HistoryResult,
    PromptItem,
    TurnItem,
)

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 32_000

_MARK = {"type": "ephemeral"}
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_SMALL = (("claude-3-5", 8_192), ("claude-3-7", DEFAULT_MAX_TOKENS), ("claude-3", 4_096))
_BUDGETED = re.compile(r"claude-(?:3|instant|2)|claude-(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|[^\d-]|-\d{8})")
_BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 28_672}
_LEAST_BUDGET = 1_024
_LEAST_ANSWER = 1_024
_OFF = {"none", "off"}


class _Peek(msgspec.Struct):
    """What must be known of a block to send it back."""

    type: str = ""
    id: Any = None
    text: Any = None


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
    """The body of one request. Messages that `memo` knows are not encoded again; only the last one is marked anew."""
    told = (memo or EncodedHistory()).messages(history, lambda item: encode_item(item, origin))
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.max_tokens or _most_tokens(settings.model),
        "messages": _marked(told),
        "stream": True,
    }
    if system.strip():
        body["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
        body["tools"][-1]["cache_control"] = _MARK
    body |= _thinking(settings, body["max_tokens"], history, origin)
    if settings.temperature is not None and "thinking" not in body:
        body["temperature"] = settings.temperature
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _most_tokens(model: str) -> int:
    return next((most for name, most in _SMALL if model.startswith(name)), DEFAULT_MAX_TOKENS)


def _marked(told: Sequence[msgspec.Raw]) -> list[msgspec.Raw]:
    """The messages, the last one with a cache mark on its last block. The bytes in `told` stay as they are."""
    if not told:
        return []
    message = msgspec.json.decode(told[-1], type=dict[str, msgspec.Raw])
    if bytes(message["role"]) != b'"user"':
        return list(told)
    *blocks, last = msgspec.json.decode(message["content"], type=list[msgspec.Raw])
    marked = {**msgspec.json.decode(last, type=dict[str, msgspec.Raw]), "cache_control": _MARK}
    return [*told[:-1], raw({"role": "user", "content": [*blocks, marked]})]


def _thinking(settings: ModelSettings, max_tokens: int, history: History, origin: str) -> dict[str, Any]:
    """The fields that ask for thinking, none where no effort is set or the request can't have it."""
    effort = settings.effort
    if not effort or effort in _OFF:
        return {}
    if settings.model.startswith("claude") and not _BUDGETED.match(settings.model):
        effort = "low" if effort == "minimal" else effort
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens - _LEAST_ANSWER)
    if budget < _LEAST_BUDGET or _continues_without_thinking(history, origin):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _continues_without_thinking(history: History, origin: str) -> bool:
    """Whether the last message of the model, as it is sent, has calls and doesn't begin with thinking."""
    for item in reversed(history.items):
        if isinstance(item, TurnItem):
            blocks = _sendable(_own_blocks(item, origin) or [])
            if blocks or item.calls or item.text.strip():
                return bool(item.calls) and not (blocks and blocks[0][0].type.endswith("thinking"))
    return False


def encode_item(item: HistoryItem, origin: str) -> list[msgspec.Raw]:
    """The messages of one history item, for the server at `origin`."""
    if isinstance(item, PromptItem):
        return [_message("user", _content(item.parts) or [_text("(empty)")])]
    if not isinstance(item, TurnItem):
        return [_message("user", [_text(summary_text(item.text))])]
    own = _own_blocks(item, origin)
    content: list[Any] = _rebuilt(item) if own is None else [block for _, block in _sendable(own)]
    messages = [_message("assistant", content)] if content else []
    if item.calls:
        results = {result.tool_call_id: result for result in item.results}
        blocks = [_result(_pairing(c, own is not None), results.get(c.tool_call_id)) for c in item.calls]
        messages.append(_message("user", blocks))
    return messages


def _message(role: str, content: list[Any]) -> msgspec.Raw:
    return raw({"role": role, "content": content})


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _own_blocks(item: TurnItem, origin: str) -> list[tuple[_Peek, msgspec.Raw]] | None:
    """The blocks of a turn that came from this origin, with its calls' pairing ids; None for any other turn."""
    if item.replay is None or item.replay.origin != origin:
        return None
    blocks = msgspec.json.decode(item.replay.wire, type=list[msgspec.Raw])
    own = [(msgspec.json.decode(block, type=_Peek), block) for block in blocks]
    ids = [peek.id for peek, _ in own if peek.type == "tool_use"]
    known = [c.replay.pairing_id if c.replay and c.replay.origin == origin else None for c in item.calls]
    return own if ids == known else None


def _sendable(own: list[tuple[_Peek, msgspec.Raw]]) -> list[tuple[_Peek, msgspec.Raw]]:
    """The blocks without what the API refuses to take back."""
    kept = [(peek, block) for peek, block in own if peek.type != "text" or string(peek.text).strip()]
    while kept and kept[-1][0].type.endswith("thinking"):
        kept.pop()
    return kept


def _rebuilt(item: TurnItem) -> list[Any]:
    """The blocks of a turn of another origin, from what is public."""
    blocks = [_text(item.text)] if item.text.strip() else []
    for call in item.calls:
        block = {"type": "tool_use", "id": _pairing(call, own=False), "name": call.tool, "input": call.arguments}
        blocks.append(block)
    return blocks


def _pairing(call: HistoryCall, own: bool) -> str:
    """The id that pairs a result with its call: the server's own, or, for another server's call, ours."""
    return call.replay.pairing_id if own and call.replay is not None else call.tool_call_id


def _result(pairing: str, result: HistoryResult | None) -> dict[str, Any]:
    """One result. The API takes images in good results only."""
    if result is None:
        return {"type": "tool_result", "tool_use_id": pairing, "is_error": True, "content": [_text("(no result)")]}
    content = _content(result.parts, images=not result.is_error) or [_text("(no output)")]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": pairing, "content": content}
    if result.is_error:
        block["is_error"] = True
    return block


def _content(parts: Sequence[Part], *, images: bool = True) -> list[dict[str, Any]]:
    """Blocks for `parts`. Blank text, which the API refuses, is left out."""
    blocks = []
    for part in parts:
        if images and isinstance(part, ImagePart) and part.media_type in _IMAGES:
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            blocks.append({"type": "image", "source": source})
        elif (text := text_of((part,))).strip():
            blocks.append(_text(text))
    return blocks


# ---- provider -----------------------------------------------------------------------------------------------


class Anthropic(HttpProvider):
    """A model behind the Messages API. The base URL may end in `/v1` or not."""

    wire = "anthropic"
    path = "/v1/messages"
    key_variable = "ANTHROPIC_API_KEY"
    default_base_url = "https://api.anthropic.com"

    def __init__(
        self,
        *,
        name: str = "",
        base_url: str = "",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
    ) -> None:
        place = base_url.rstrip("/").removesuffix("/v1")
        super().__init__(name=name, base_url=place, api_key=api_key, headers=headers, timeout=timeout)

    def auth_headers(self) -> dict[str, str]:
        """The key, and the version of the API that is spoken."""
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": self._api_key} if self._api_key else version

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


__all__ = ["Anthropic", "Assembler", "assemble", "encode_item", "request"]
