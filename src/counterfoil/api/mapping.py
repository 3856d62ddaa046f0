"""Between the product's own types and the contract's messages: by name, both ways, with no decision in between.

A message has the fields of its type, by the same names. Two things differ: a union of events or parts is a `oneof`
whose case is the kind (dots become underscores), and a JSON value is its exact text in a field that ends in `_json`,
because numbers and key order would not survive `google.protobuf.Struct`.
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import Message

from counterfoil import events as ev
from counterfoil.api.v1 import events_pb2, records_pb2
from counterfoil.events.codec import KINDS, kind_of

S = TypeVar("S", bound=msgspec.Struct)

_PARTS: dict[str, type[msgspec.Struct]] = {"text": ev.TextPart, "image": ev.ImagePart, "file": ev.FilePart}
_CASES = {kind.replace(".", "_"): cls for kind, cls in KINDS.items()} | {"unknown": ev.UnknownEvent}


class _Field(msgspec.Struct, frozen=True):
    """How one field is carried: by which name, of which type, as a list, as JSON text, as a part, perhaps absent."""

    name: str
    wire: str
    of: Any
    many: bool = False
    json: bool = False
    part: bool = False
    optional: bool = False
    nested: bool = False


@functools.cache
def _fields(cls: type[msgspec.Struct]) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls)
    return tuple(_field(name, hints[name]) for name in cls.__struct_fields__)


def _field(name: str, hint: Any) -> _Field:
    optional = many = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        optional = len(args) < len(typing.get_args(hint))
        hint = args[0] if len(args) == 1 else hint
    if typing.get_origin(hint) in (tuple, list):
        many, hint = True, typing.get_args(hint)[0]
    if set(typing.get_args(hint)) == set(_PARTS.values()):
        return _Field(name, name, hint, many=many, part=True)
    if typing.get_origin(hint) is dict or hint is msgspec.Raw:
        return _Field(name, f"{name}_json", hint, json=True, optional=optional)
    nested = isinstance(hint, type) and issubclass(hint, msgspec.Struct)
    return _Field(name, name, hint, many=many, optional=optional, nested=nested)


def fill(message: Message, value: msgspec.Struct) -> None:
    """Set the fields of `message` to those of `value`. A field that is None stays absent."""
    for field in _fields(type(value)):
        found = getattr(value, field.name)
        if found is None:
            continue
        if field.json:
            text = bytes(found) if isinstance(found, msgspec.Raw) else msgspec.json.encode(found)
            setattr(message, field.wire, text.decode())
        elif field.many:
            _fill_many(getattr(message, field.wire), field, found)
        elif field.nested:
            target = getattr(message, field.wire)
            target.SetInParent()
            fill(target, found)
        else:
            setattr(message, field.wire, found)


def _fill_many(target: Any, field: _Field, values: typing.Iterable[Any]) -> None:
    for value in values:
        if field.part:
            fill_part(target.add(), value)
        elif field.nested:
            fill(target.add(), value)
        else:
            target.append(value)


def fill_part(message: records_pb2.Part, part: ev.Part) -> None:
    """Set the case of a part."""
    case = next(name for name, cls in _PARTS.items() if isinstance(part, cls))
    target = getattr(message, case)
    target.SetInParent()
    fill(target, part)


def read(message: Any, cls: type[S]) -> S:
    """The value that `message` carries. Raises `msgspec.ValidationError` where it isn't one of that type."""
    return msgspec.convert(_plain(message, cls), cls, strict=True)


def read_part(message: records_pb2.Part) -> ev.Part:
    """The part that `message` carries. Raises `msgspec.ValidationError`."""
    part: ev.Part = msgspec.convert(_plain_part(message), ev.Part, strict=True)
    return part


def _plain(message: Any, cls: type[msgspec.Struct]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in _fields(cls):
        if _absent(message, field):
            continue
        found = getattr(message, field.wire)
        if field.json:
            plain[field.name] = msgspec.Raw(found.encode()) if field.of is msgspec.Raw else _json(found)
        elif field.part:
            plain[field.name] = [_plain_part(part) for part in found]
        elif field.many:
            plain[field.name] = [_plain(one, field.of) for one in found] if field.nested else list(found)
        else:
            plain[field.name] = _plain(found, field.of) if field.nested else found
    return plain


def _absent(message: Any, field: _Field) -> bool:
    if field.many:
        return False
    return (field.optional or field.nested) and not message.HasField(field.wire)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise msgspec.ValidationError(f"not JSON: {fault}") from fault


def _plain_part(message: records_pb2.Part) -> dict[str, Any]:
    case = message.WhichOneof("part")
    if case is None:
        raise msgspec.ValidationError("a part has neither text, image nor file")
    return {"type": case, **_plain(getattr(message, case), _PARTS[case])}


def to_event(envelope: ev.Envelope) -> events_pb2.Event:
    """The message of one event with its place."""
    message = events_pb2.Event(session_id=envelope.session_id, recorded_at=envelope.recorded_at)
    for name in ("run_id", "seq", "offset"):
        value = getattr(envelope, name)
        if value is not None:
            setattr(message, name, value)
    target = getattr(message, kind_of(envelope.event).replace(".", "_"), None)
    if isinstance(envelope.event, ev.UnknownEvent) or target is None:
        target = message.unknown
    target.SetInParent()
    fill(target, envelope.event)
    return message


def from_event(message: events_pb2.Event) -> ev.Envelope:
    """The event with its place. One of a kind that this version doesn't know is read as `unknown`.

    Raises `msgspec.ValidationError` where it isn't an event.
    """
    case = message.WhichOneof("event")
    if case is None:
        raise msgspec.ValidationError("an event without a kind that is known here")
    cls = _CASES[case]
    body = getattr(message, case)
    event = (
        ev.UnknownEvent(original_kind=body.original_kind, body=msgspec.Raw(body.body_json.encode()))
        if cls is ev.UnknownEvent
        else msgspec.convert({"kind": cls.__struct_config__.tag, **_plain(body, cls)}, cls, strict=True)
    )
    return ev.Envelope(
        session_id=message.session_id,  # type: ignore[arg-type]
        run_id=message.run_id if message.HasField("run_id") else None,  # type: ignore[arg-type]
        seq=message.seq if message.HasField("seq") else None,
        offset=message.offset if message.HasField("offset") else None,  # type: ignore[arg-type]
        recorded_at=message.recorded_at,
        event=event,
    )
