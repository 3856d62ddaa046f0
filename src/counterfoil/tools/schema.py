"""From Python type hints to the JSON Schema that a model is told."""

from __future__ import annotations

from typing import Any

import msgspec

_NOISE = frozenset({"title", "$defs"})


def parameters_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of `kind` in one piece: no references, no titles, no fields beyond the named ones."""
    schema = msgspec.json.schema(kind)
    definitions: dict[str, Any] = schema.get("$defs", {})
    flat = _inline(schema, definitions, 0)
    return {
        "type": "object",
        "properties": flat.get("properties", {}),
        "required": flat.get("required", []),
        "additionalProperties": False,
    }


def _inline(node: Any, definitions: dict[str, Any], depth: int) -> Any:
    if depth > 32:
        raise TypeError("the parameters of a tool may not be recursive types")
    if isinstance(node, list):
        return [_inline(item, definitions, depth) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        target = definitions[reference.rsplit("/", 1)[-1]]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _inline({**target, **beside}, definitions, depth + 1)
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NOISE:
            continue
        if key == "properties":
            out[key] = {name: _inline(inner, definitions, depth + 1) for name, inner in value.items()}
        elif key in ("default", "enum", "const"):
            out[key] = value
        else:
            out[key] = _inline(value, definitions, depth + 1)
    return _simpler(out)


def _simpler(schema: dict[str, Any]) -> dict[str, Any]:
    """`X or null, default null` is an optional X: models write shorter and better arguments for it."""
    options = schema.get("anyOf")
    if options and "default" in schema and schema["default"] is None:
        real = [option for option in options if option != {"type": "null"}]
        if len(real) == 1 and len(options) == 2:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
            return {**real[0], **rest}
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema
