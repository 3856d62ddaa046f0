"""OpenAPI of the HTTP door, made from the contract's descriptors and the table of routes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from counterfoil import __version__
from counterfoil.api.routes import ROUTES, Route
from counterfoil.api.v1 import services_pb2 as pb

_FIELD = re.compile(r"\{(\w+)\}")
_SCALARS: dict[int, dict[str, Any]] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "format": "byte"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
}


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    paths["/v1/sessions/{session_id}/events"] = {"get": _stream("Events.Watch", schemas, ["session_id"])}
    paths["/v1/asks/events"] = {"get": _stream("Events.WatchAll", schemas, [])}
    _collect(pb.ErrorDetail.DESCRIPTOR, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Counterfoil", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _method(rpc: str) -> Any:
    service, method = rpc.split(".")
    return pb.DESCRIPTOR.services_by_name[service].methods_by_name[method]


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    method = _method(route.rpc)
    in_path = _FIELD.findall(route.path)
    rest = [field for field in method.input_type.fields if field.name not in in_path]
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^A-Za-z]', '', route.path.title())}",
        "tags": [route.rpc.split(".")[0]],
        "parameters": [],
    }
    found["parameters"] += [_parameter(name, "path", {"type": "string"}) for name in in_path]
    if route.method in ("GET", "DELETE"):
        found["parameters"] += [_parameter(f.json_name, "query", _type(f, schemas)) for f in rest]
    elif rest:
        body = {"type": "object", "properties": {f.json_name: _type(f, schemas) for f in rest}}
        found["requestBody"] = {"content": {"application/json": {"schema": body}}}
    found["responses"] = {"200": _json(_reference(method.output_type, schemas)), **_errors()}
    return found


def _stream(rpc: str, schemas: dict[str, Any], in_path: list[str]) -> dict[str, Any]:
    method = _method(rpc)
    _reference(method.output_type, schemas)
    told = {"description": "server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    after = [_parameter("after_offset", "query", {"type": "string"})] if in_path else []
    return {
        "operationId": f"stream{rpc.replace('.', '')}",
        "parameters": [*(_parameter(name, "path", {"type": "string"}) for name in in_path), *after],
        "responses": {"200": told, **_errors()},
    }


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _errors() -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ErrorDetail"}}}
    return {code: {"description": "an error", "content": problem} for code in _CODES}


_CODES = ("400", "401", "403", "404", "405", "408", "409", "413", "429", "502", "503")


def _reference(message: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    _collect(message, schemas)
    return {"$ref": f"#/components/schemas/{message.name}"}


def _collect(message: Any, schemas: dict[str, Any]) -> None:
    if message.name in schemas:
        return
    schemas[message.name] = {}
    properties = {field.json_name: _type(field, schemas) for field in message.fields}
    schemas[message.name] = {"type": "object", "properties": properties}


def _type(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    one = _reference(field.message_type, schemas) if field.message_type is not None else _SCALARS[field.type]
    return {"type": "array", "items": one} if field.is_repeated else one
