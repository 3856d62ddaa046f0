"""Small things that all wire formats share: raw JSON, arguments, private pairing ids, labels."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from counterfoil.events import ImagePart
from counterfoil.events.codec import clean_text, loads

_encoder = msgspec.json.Encoder()
_WHY_BOUND = 200

NAMELESS = "unknown_tool"
"""What a call without a name is called."""
NAMELESS_PROBLEM = "The call names no tool. Call one of the tools by its name."


def encode_json(value: Any) -> bytes:
    """JSON bytes of `value`. Lone surrogates become U+FFFD; nothing else changes."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_cleaned(value))


def raw(value: Any) -> msgspec.Raw:
    """`value` as JSON that later encoders copy as it is."""
    return msgspec.Raw(encode_json(value))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, (list, tuple)):
        return [_cleaned(v) for v in value]
    if isinstance(value, dict):
        return {_cleaned(k): _cleaned(v) for k, v in value.items()}
    return value


def made_pairing_id() -> str:
    """A private pairing id for a call that came without one. Chance alone keeps it apart from all others."""
    return "cf_" + secrets.token_hex(12)


def parse_arguments(text: str) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments in `text`, or None and a sentence that tells the model what was wrong. Blank text is `{}`."""
    if not text or text.isspace():
        return {}, None
    try:
        value = loads(text)
    except (ValueError, RecursionError) as fault:
        why = clean_text(str(fault))[:_WHY_BOUND]
        return None, f"The arguments are not valid JSON ({why}). Send one complete JSON object."
    if isinstance(value, dict):
        return value, None
    return None, f"The arguments must be one JSON object, and were {_json_kind(value)}."


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    return "a string" if isinstance(value, str) else "an array"


def data_url(image: ImagePart) -> str:
    """The image as a `data:` URL."""
    return f"data:{image.media_type};base64,{image.data}"


def summary_text(text: str) -> str:
    """How a compaction's summary is told to the model."""
    return f"Summary of the conversation before this point (earlier messages were compacted):\n\n{text}"


def count(value: Any) -> int:
    """A token count from untrusted JSON: anything but a positive whole number counts as none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def fields(value: Any) -> dict[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str:
    """`value` where it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def entries(value: Any) -> list[dict[str, Any]]:
    """The objects in `value` where it is an array, else none."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
