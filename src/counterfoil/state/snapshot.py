"""The stored form of a state: compressed JSON with a format number. A cache, never the truth."""

from __future__ import annotations

import zlib

import msgspec

from counterfoil.errors import CodecError
from counterfoil.state.session import SessionState

FORMAT = 6
"""Raised whenever the state's shape changes; a snapshot of another format is not read."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SessionState)


def encode_snapshot(state: SessionState) -> bytes:
    """The bytes of a snapshot of `state`."""
    return FORMAT.to_bytes(2, "big") + zlib.compress(_encoder.encode(state), 1)


def decode_snapshot(data: bytes) -> SessionState:
    """The state in `data`. Raises `CodecError` where it has another format or is damaged."""
    if int.from_bytes(data[:2], "big") != FORMAT:
        raise CodecError("the snapshot has another format", hint="the log is folded from its start instead")
    try:
        return _decoder.decode(zlib.decompress(data[2:]))
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise CodecError("the snapshot is damaged", hint="the log is folded from its start instead") from fault


__all__ = ["FORMAT", "decode_snapshot", "encode_snapshot"]
