"""List entries as bytes. One that a newer version wrote is read as far as this one can."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.ports import SessionSummary

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SessionSummary)
_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode(summary: SessionSummary) -> bytes:
    """The stored form of `summary`."""
    return _encoder.encode(summary)


def decode(data: bytes) -> SessionSummary:
    """The entry in `data`; a field with a value that this version doesn't know is left at its default.

    Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `TypeError` where it is no entry at all.
    """
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return _as_far_as_known(_objects.decode(data))


def _as_far_as_known(body: dict[str, msgspec.Raw]) -> SessionSummary:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(SessionSummary):
        if field.encode_name in body:
            try:
                values[field.name] = msgspec.json.decode(body[field.encode_name], type=field.type)
            except msgspec.DecodeError:
                if field.required:
                    raise
    return SessionSummary(**values)
