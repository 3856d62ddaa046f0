"""Bytes and events. The wire shape of an event is JSON with its `kind`; unknown kinds and fields are kept."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from counterfoil.errors import CodecError
from counterfoil.events.base import Entry, Envelope, Event, PrivateHalf, StoredEvent
from counterfoil.events.kinds import DURABLE, TRANSIENT, UnknownEvent
from counterfoil.events.private import AnyPrivate

_encoder = msgspec.json.Encoder()


def _tag(kind: type[Event]) -> str:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


KINDS: dict[str, type[Event]] = {_tag(t): t for t in (*DURABLE, *sorted(TRANSIENT, key=_tag))}
"""Every kind that this version knows, by its name on the wire."""

_decoders: dict[str, msgspec.json.Decoder[Any]] = {}
_private_decoder: msgspec.json.Decoder[AnyPrivate] = msgspec.json.Decoder(AnyPrivate)


def kind_of(event: Event) -> str:
    """The event's kind as on the wire."""
    return event.original_kind if isinstance(event, UnknownEvent) else _tag(type(event))


def encode_event(event: Event) -> bytes:
    """The wire shape of `event`. An unknown event gives back the bytes that it came as."""
    if isinstance(event, UnknownEvent):
        return bytes(event.body)
    return _encoder.encode(event)


def decode_event(kind: str, public: bytes) -> Event:
    """The event in `public`. A kind or a content that this version doesn't know gives an `UnknownEvent`."""
    decoder = _decoders.get(kind)
    if decoder is None:
        known = KINDS.get(kind)
        if known is None:
            return UnknownEvent(original_kind=kind, body=msgspec.Raw(public))
        decoder = _decoders[kind] = msgspec.json.Decoder(known)
    try:
        event: Event = decoder.decode(public)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UnknownEvent(original_kind=kind, body=msgspec.Raw(public))
    return event


def event_of(stored: StoredEvent) -> Event:
    """The public event of a stored row."""
    return decode_event(stored.kind, stored.public)


def encode_private(private: PrivateHalf | None) -> bytes | None:
    """The stored form of a private half."""
    return None if private is None else _encoder.encode(private)


def decode_private(data: bytes | None) -> AnyPrivate | None:
    """The private half in `data`. Raises `CodecError` where it is not one: replay would not be exact."""
    if data is None:
        return None
    try:
        return _private_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise CodecError("a private half can't be read", hint="run `counterfoil verify`") from fault


def envelope_of(stored: StoredEvent) -> Envelope:
    """What a watcher gets for a stored row."""
    return Envelope(
        session_id=stored.session_id,
        run_id=stored.run_id,
        seq=stored.seq,
        offset=stored.offset,
        recorded_at=stored.recorded_at,
        event=event_of(stored),
    )


class _WireEnvelope(msgspec.Struct, omit_defaults=True):
    session_id: str
    run_id: str | None = None
    seq: int | None = None
    offset: int | None = None
    recorded_at: int = 0
    event: msgspec.Raw = msgspec.Raw(b"null")


def encode_envelope(envelope: Envelope, public: bytes | None = None) -> bytes:
    """One line of JSON for a watcher. `public`: the stored bytes, where there are any, are passed on as they are.

    Only bytes that would break the line (no JSON object, or with line ends) are passed on in another form.
    """
    event = public if public is not None else encode_event(envelope.event)
    if isinstance(envelope.event, UnknownEvent) or b"\n" in event or b"\r" in event:
        event = _one_line(kind_of(envelope.event), event)
    return _encoder.encode(
        _WireEnvelope(
            session_id=envelope.session_id,
            run_id=envelope.run_id,
            seq=envelope.seq,
            offset=envelope.offset,
            recorded_at=envelope.recorded_at,
            event=msgspec.Raw(event),
        )
    )


def _one_line(kind: str, body: bytes) -> bytes:
    """`body` where it is one line with a JSON object; the same object in one line; or its text under `unreadable`."""
    try:
        msgspec.json.decode(body, type=dict[str, Any])
        return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _encoder.encode({"kind": kind, "unreadable": body.decode("utf-8", "replace")})


def loads(text: str | bytes) -> Any:
    """JSON from an untrusted source: also `NaN`, and lone surrogates, which come out as U+FFFD.

    Raises `ValueError` where it is not JSON.
    """
    try:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return _clean(json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace")))
    except RecursionError as fault:
        raise ValueError("JSON is nested too deeply") from fault


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if isinstance(value, dict):
        return {clean_text(k): _clean(v) for k, v in value.items()}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def clean_text(text: str) -> str:
    """Valid Unicode: lone surrogates become U+FFFD, surrogate pairs become their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


__all__ = [
    "KINDS",
    "Entry",
    "clean_text",
    "decode_event",
    "decode_private",
    "encode_envelope",
    "encode_event",
    "encode_private",
    "envelope_of",
    "event_of",
    "kind_of",
    "loads",
]
