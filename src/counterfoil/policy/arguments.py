"""Are these arguments valid for this tool? Checked against its JSON Schema before anything else is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from counterfoil.ports import ToolSpec

MAX_PROBLEMS = 20
MAX_LENGTH = 300


def problems(spec: ToolSpec, arguments: Mapping[str, Any]) -> list[str]:
    """One line for each wrong field, with its path (`todos[2].status: …`). Empty: the arguments are valid."""
    validator = _validator(msgspec.json.encode(spec.parameters))
    if validator.is_valid(arguments):
        return []
    lines = [f"{_path(error.instance_path)}: {_bounded(error.message)}" for error in validator.iter_errors(arguments)]
    left_out = len(lines) - MAX_PROBLEMS
    return lines if left_out <= 0 else [*lines[:MAX_PROBLEMS], f"… and {left_out} more"]


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))


def _path(steps: list[str | int]) -> str:
    text = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
    return text.lstrip(".") or "arguments"


def _bounded(message: str) -> str:
    return message if len(message) <= MAX_LENGTH else message[:MAX_LENGTH] + "…"
