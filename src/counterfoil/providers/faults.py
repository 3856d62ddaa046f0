"""From a provider's failure to one typed `ProviderError`: what kind, whether to ask again, what to do."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from counterfoil.errors import ProviderError
from counterfoil.events.codec import clean_text, loads
from counterfoil.state.history import History, TurnItem

MESSAGE_BOUND = 500
"""Characters of a provider's own words that an error message may carry."""

_LENGTH_CODES = {"context_length_exceeded", "context_window_exceeded", "string_above_max_length", "request_too_large"}
_LENGTH_TEXT = re.compile(
    r"prompt is too long|input is too long|maximum context length|context[_ ]length|context window"
    r"|context size|exceeds? the (?:available )?context|too many (?:input )?tokens"
    r"|input length and `?max_tokens`? exceed|maximum (?:prompt|input|token) (?:length|count)|reduce the length of",
    re.IGNORECASE,
)
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_error", "insufficient_balance"}
_QUOTA_TEXT = re.compile(r"insufficient[_ ](?:quota|balance|credit)|credit balance is too low", re.IGNORECASE)
_AUTH_CODES = {"invalid_api_key", "authentication_error", "permission_error", "unauthorized"}
_AUTH_TEXT = re.compile(r"api key not valid|invalid api key|incorrect api key", re.IGNORECASE)
_MODEL_CODES = {"model_not_found", "not_found_error", "model_not_available"}
_RATE_CODES = {"rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests", "tokens", "requests"}
_REQUEST_CODES = {"invalid_request_error", "invalid_prompt", "bad_request", "invalid_value"}
_SECRET = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)-[\w*.\-]{4,}|\bAIza[\w\-*]{8,}|\bBearer\s+\S+")
_ITEM_ID = re.compile(
    r"\b(?:call|toolu|srvtoolu|fc|rs|msg|resp|chatcmpl|ws|item)[_-](?=[\w\-]*\d)[\w\-]{6,}|\bcf_[0-9a-f]{24}\b"
)
_SHORT_ID = 8


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said about its failure. `status` is None for an error inside a stream that began well."""

    status: int | None = None
    code: str = ""
    type: str = ""
    message: str = ""
    retry_after: float | None = None


def failure_of(body: Any, status: int | None = None, wish: float | None = None) -> Failure:
    """Read the `error` of a decoded body, in whichever of the usual shapes it is."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(status=status, message=error if isinstance(error, str) else "", retry_after=wish)
    code, kind = error.get("code"), error.get("type")
    if status is None and isinstance(code, int) and 400 <= code < 600:
        status = code
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    return Failure(
        status=status,
        code=code if isinstance(code, str) else "",
        type=kind if isinstance(kind, str) else "",
        message=message if isinstance(message, str) else msgspec.json.encode(message).decode(),
        retry_after=wish,
    )


def failure_from_bytes(status: int, body: bytes, wish: float | None) -> Failure:
    """Read an error response; a body that is not JSON is taken as text, HTML not at all."""
    try:
        return failure_of(loads(body), status, wish)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        return Failure(status=status, message="" if text.startswith("<") else text, retry_after=wish)


def classify(failure: Failure) -> tuple[str, bool]:
    """Kind and permanence of a failure."""
    codes = {failure.code.lower(), failure.type.lower()}
    status, text = failure.status, failure.message
    if codes & _LENGTH_CODES or status == 413 or (_LENGTH_TEXT.search(text) and status in (None, 400, 422, 500)):
        return "context_length", True
    if codes & _QUOTA_CODES or status == 402 or _QUOTA_TEXT.search(text):
        return "rate_limited", True
    if status in (401, 403) or codes & _AUTH_CODES or _AUTH_TEXT.search(text):
        return "auth", True
    if status == 404 or codes & _MODEL_CODES:
        return "not_found", True
    if status == 429 or codes & _RATE_CODES:
        return "rate_limited", False
    if status == 408:
        return "timeout", False
    if status in (409, 425) or (status is not None and status >= 500):
        return "overloaded", status in (501, 505)
    if status is not None or codes & _REQUEST_CODES:
        return "bad_request", True
    return "overloaded", False


def provider_error(failure: Failure, *, name: str = "", key_variable: str = "") -> ProviderError:
    """The error to raise. Its message is not scrubbed yet: see `scrub`."""
    kind, permanent = classify(failure)
    who = name or "the provider"
    said = f"{who} answered HTTP {failure.status}" if failure.status is not None else f"{who} reported an error"
    words = " ".join((failure.message or failure.code or failure.type).split())
    message = f"{said}: {words}" if words else said
    hint = _hint(kind, permanent, key_variable)
    return ProviderError(kind, message, permanent=permanent, retry_after=failure.retry_after, hint=hint)


def _hint(kind: str, permanent: bool, key_variable: str) -> str:
    if kind == "auth":
        return f"set {key_variable} to a valid key" if key_variable else "check the provider's key"
    if kind == "not_found":
        return "check the model name and the base URL"
    if kind == "context_length":
        return "compact the session or choose a model with a larger window"
    if kind == "rate_limited":
        return "check the account's plan and billing" if permanent else "wait, or lower the rate of requests"
    if kind == "overloaded":
        return "" if permanent else "try again in a while"
    return ""


def stream_cut(why: str) -> ProviderError:
    """The stream ended, or broke, before the model was done."""
    return ProviderError("stream_cut", f"the model's answer was cut off: {why}", permanent=False)


def malformed(why: str, hint: str = "") -> ProviderError:
    """The provider's answer is nothing that this wire format knows."""
    return ProviderError("malformed", why, permanent=True, hint=hint)


def scrub(text: str, secrets: Iterable[str], pairing_ids: Iterable[str]) -> str:
    """`text` in one line, bounded, without any of `secrets` and `pairing_ids` and whatever looks like one."""
    text = " ".join(clean_text(text).split())
    for secret in sorted({s for s in secrets if s}, key=len, reverse=True):
        text = text.replace(secret, "[key]")
    for private in sorted({" ".join(p.split()) for p in pairing_ids} - {""}, key=len, reverse=True):
        if len(private) >= _SHORT_ID:
            text = text.replace(private, "[id]")
        else:
            text = re.sub(rf"(?<!\w){re.escape(private)}(?!\w)", "[id]", text)
    text = _ITEM_ID.sub("[id]", _SECRET.sub("[key]", text))
    return text if len(text) <= MESSAGE_BOUND else text[: MESSAGE_BOUND - 1] + "…"


_PRIVATE_FIELDS = frozenset(
    {"id", "call_id", "item_id", "tool_call_id", "tool_use_id", "signature", "thought_signature", "data"}
    | {"encrypted_content"}
)
"""Fields of the replay data whose texts are a provider's own: ids, signatures, sealed reasoning."""


def private_strings(history: History) -> Iterator[str]:
    """Every id, signature and sealed text in the replay data of `history`: what an error text must not show."""
    for item in history.items:
        if not isinstance(item, TurnItem):
            continue
        for call in item.calls:
            if call.replay is not None:
                yield call.replay.pairing_id
        if item.replay is not None:
            yield from _private(msgspec.json.decode(item.replay.wire))


def _private(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _private(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name in _PRIVATE_FIELDS:
                yield inner
            else:
                yield from _private(inner)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The provider's wish in seconds, from `retry-after-ms` or `retry-after` (seconds or an HTTP date)."""
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        when = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, when - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
