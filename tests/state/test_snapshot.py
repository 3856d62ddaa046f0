"""The stored form of a state."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import CodecError
from counterfoil.identity import bytes_digest
from counterfoil.state import SessionState, decode_snapshot, encode_snapshot, fold
from counterfoil.state.snapshot import FORMAT
from tests.support.sessions import Log, random_log, session_log
from tests.support.strategies import examples

SHAPE = {
    1: "blake2b:00b11a78aecb74781d7e9720851787aa",
    2: "blake2b:ea6ef5ed4add8c5250a90c281a0b010c",
    3: "blake2b:0497b4503a0bc6d6196dd1e12849296f",
    4: "blake2b:f3b5bdbf4ca5f0406e626d002435d14d",
    5: "blake2b:47c71c9d8c9ee91cf1d8d17b0b766ecf",
    6: "blake2b:bf9fd147f53035c3f9e3ec4267f186ac",
}
"""The digest of the state's shape in each format."""


def test_another_shape_of_the_state_has_another_format_number() -> None:
    """A snapshot of an older shape must not be read as one of this: raise `FORMAT` and add the digest here."""
    schema = _without_prose(msgspec.json.schema(SessionState))
    assert bytes_digest("shape", msgspec.json.encode(schema, order="sorted")) == SHAPE[FORMAT]


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_prose(value) for key, value in schema.items() if key != "description"}
    return [_without_prose(item) for item in schema] if isinstance(schema, list) else schema


@examples(40)
@given(session_log(max_runs=2))
def test_the_same_state_has_the_same_bytes(log: Log) -> None:
    state = fold(log.rows)
    data = encode_snapshot(state)
    assert decode_snapshot(data) == state
    assert encode_snapshot(decode_snapshot(data)) == data


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x02x", b"\x7b}", FORMAT.to_bytes(2, "big")])
def test_a_snapshot_of_another_format_is_not_read(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_snapshot(data)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"meta":', b'{"open_turn":{"calls":' + b"[" * 9_999])
def test_a_snapshot_with_other_content_is_not_read(content: bytes) -> None:
    with pytest.raises(CodecError):
        decode_snapshot(FORMAT.to_bytes(2, "big") + zlib.compress(content))


@examples(150)
@given(st.integers(0, 5_000), st.integers(0, 255), st.integers(0, 5_000))
def test_a_damaged_snapshot_is_refused_or_whole(at: int, byte: int, length: int) -> None:
    data = bytearray(GOOD)
    data[at % len(data)] = byte
    for damaged in (bytes(data), GOOD[: length % len(GOOD)]):
        try:
            state = decode_snapshot(damaged)
        except CodecError:
            continue
        assert state == decode_snapshot(GOOD), "the checksum lets no other content through"


GOOD = encode_snapshot(fold(random_log(7, runs=2).rows))
