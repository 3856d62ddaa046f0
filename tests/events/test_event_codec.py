"""Bytes and events: what goes round, what is kept, what can't crash."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.errors import CodecError
from counterfoil.events import codec
from counterfoil.events.base import PrivateHalf
from counterfoil.events.visible import visible
from counterfoil.identity import Offset, RunID, SessionID
from tests.support.strategies import example_of, examples, json_values, values_of

PRIVATE: tuple[type[PrivateHalf], ...] = (
    ev.AssistantReplay,
    ev.CallReplay,
    ev.HeldResult,
    ev.ReviewDetail,
    ev.ToolOriginal,
)
KNOWN = sorted(codec.KINDS)


@pytest.mark.parametrize("kind", KNOWN)
def test_every_kind_comes_back_as_it_went(kind: str) -> None:
    @examples(25)
    @given(values_of(codec.KINDS[kind]))
    def check(event: ev.Event) -> None:
        data = codec.encode_event(event)
        assert json.loads(data)["kind"] == kind == codec.kind_of(event)
        assert codec.decode_event(kind, data) == event
        assert codec.encode_event(codec.decode_event(kind, data)) == data

    check()


@pytest.mark.parametrize("half", PRIVATE)
def test_private_halves_come_back_exactly(half: type[PrivateHalf]) -> None:
    @examples(25)
    @given(values_of(half))
    def check(private: PrivateHalf) -> None:
        data = codec.encode_private(private)
        assert codec.decode_private(data) == private
        assert codec.encode_private(codec.decode_private(data)) == data

    check()


def test_the_provider_gets_its_own_bytes_back_with_their_blanks_escapes_and_big_numbers() -> None:
    wire = b'{ "id":\t"call_0",\n "sig" : "\\u00e9\\/\\ud83c\\udfab", "n": 12345678901234567890123, "f": 1.10 }'
    stored = codec.encode_private(ev.AssistantReplay(origin="o", wire=msgspec.Raw(wire)))
    back = codec.decode_private(stored)
    assert isinstance(back, ev.AssistantReplay)
    assert bytes(back.wire) == wire


@examples(50)
@given(st.text())
def test_a_pairing_id_may_be_any_text(pairing_id: str) -> None:
    private = ev.CallReplay(origin="o", pairing_id=pairing_id)
    assert codec.decode_private(codec.encode_private(private)) == private


def test_no_private_half_is_none() -> None:
    assert codec.encode_private(None) is None
    assert codec.decode_private(None) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"half":"new"}', b'{"half":"held","parts":' + b"[" * 9_999])
def test_a_private_half_that_cannot_be_read_is_a_typed_error_that_names_nothing_of_it(data: bytes) -> None:
    with pytest.raises(CodecError) as fault:
        codec.decode_private(data)
    assert "new" not in str(fault.value)


@examples(60)
@given(st.text(max_size=20).filter(lambda kind: kind not in codec.KINDS), st.binary(max_size=60))
def test_an_unknown_kind_keeps_its_bytes(kind: str, body: bytes) -> None:
    event = codec.decode_event(kind, body)
    assert isinstance(event, ev.UnknownEvent)
    assert codec.kind_of(event) == kind
    assert codec.encode_event(event) == body


def test_the_kind_named_unknown_is_unknown() -> None:
    event = codec.decode_event("unknown", b'{"kind":"unknown"}')
    assert isinstance(event, ev.UnknownEvent)
    assert event.original_kind == "unknown"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("call.finished", b'{"kind":"call.finished","tool_call_id":"c","status":"paused","executed":"no"}'),
        ("notice", b'{"kind":"notice","severity":"loud","code":"c","text":"t"}'),
        ("session.updated", b'{"kind":"session.updated","mode":"yolo"}'),
        ("user.prompt", b'{"kind":"user.prompt","parts":[{"type":"video","url":"u"}]}'),
        ("run.started", b'{"kind":"run.finished","run_id":"r"}'),
        ("run.started", b'{"kind":"run.started"}'),
    ],
)
def test_a_known_kind_with_content_of_another_version_is_unknown_and_keeps_its_bytes(kind: str, body: bytes) -> None:
    event = codec.decode_event(kind, body)
    assert isinstance(event, ev.UnknownEvent)
    assert (event.original_kind, bytes(event.body)) == (kind, body)
    assert codec.kind_of(event) == kind


def test_a_session_kind_of_another_version_restores_as_unknown() -> None:
    event = codec.decode_event("delegation.started", _delegation(b"swarm"))
    assert isinstance(event, ev.DelegationStarted)
    assert event.session_kind is ev.SessionKind.UNKNOWN


def _delegation(session_kind: bytes) -> bytes:
    ids = b'"tool_call_id":"c","child_session_id":"s"'
    return b'{"kind":"delegation.started",' + ids + b',"session_kind":"' + session_kind + b'"}'


@examples(300)
@given(st.sampled_from(KNOWN), st.binary(max_size=80) | json_values().map(msgspec.json.encode))
def test_no_bytes_crash_the_decoder_of_events(kind: str, body: bytes) -> None:
    event = codec.decode_event(kind, body)
    if isinstance(event, ev.UnknownEvent):
        assert bytes(event.body) == body


@examples(150)
@given(st.data())
def test_no_damage_to_a_good_event_crashes_the_decoder(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KNOWN))
    body = bytearray(codec.encode_event(example_of(codec.KINDS[kind])))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    codec.decode_event(kind, bytes(body))


def test_nesting_without_end_is_unknown_content_and_no_crash() -> None:
    body = b'{"kind":"call.accepted","arguments":{"a":' + b"[" * 100_000
    assert isinstance(codec.decode_event("call.accepted", body), ev.UnknownEvent)


def _stored(event: ev.Event, public: bytes) -> ev.StoredEvent:
    return ev.StoredEvent(
        session_id=SessionID("ses_1"),
        offset=Offset(4),
        run_id=RunID("run_1"),
        seq=2,
        kind=codec.kind_of(event),
        public=public,
        private=codec.encode_private(ev.CallReplay(origin="o", pairing_id="CANARY")),
        digest=b"d",
        recorded_at=9,
    )


def test_an_envelope_passes_stored_bytes_on_as_they_are() -> None:
    public = b'{"kind":"notice", "severity":"benign","code":"c","text":"\\u00e9","added_later":{"x": [1,  2]}}'
    stored = _stored(codec.decode_event("notice", public), public)
    data = codec.encode_envelope(codec.envelope_of(stored), stored.public)
    assert b'"event":' + public in data
    assert json.loads(data) == {
        "session_id": "ses_1",
        "run_id": "run_1",
        "seq": 2,
        "offset": 4,
        "recorded_at": 9,
        "event": json.loads(public),
    }


@pytest.mark.parametrize("kind", KNOWN)
def test_an_envelope_is_the_same_live_and_replayed(kind: str) -> None:
    event = example_of(codec.KINDS[kind])
    stored = _stored(event, codec.encode_event(event))
    envelope = codec.envelope_of(stored)
    assert envelope.event == event
    assert codec.encode_envelope(envelope) == codec.encode_envelope(envelope, stored.public)


def test_an_envelope_of_an_unknown_kind_carries_its_bytes() -> None:
    event = ev.UnknownEvent(original_kind="new", body=msgspec.Raw(b'{"kind":"new", "x":1}'))
    data = codec.encode_envelope(ev.Envelope(session_id=SessionID("s"), event=event))
    assert data == b'{"session_id":"s","event":{"kind":"new", "x":1}}'


@pytest.mark.parametrize("body", [b"", b'{"kind":"new"', b"\xff\xfe", b'{"kind":\n"new"}\r', b"1 2"])
def test_an_envelope_is_one_line_of_json_whatever_was_stored(body: bytes) -> None:
    stored = _stored(ev.UnknownEvent(original_kind="new", body=msgspec.Raw(body)), body)
    data = codec.encode_envelope(codec.envelope_of(stored), stored.public)
    assert not {10, 13} & set(data)
    assert json.loads(data)["event"]["kind"] == "new"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NaN", None),
        ('{"a": -Infinity, "b": [Infinity]}', {"a": None, "b": [None]}),
        ("1e999", None),
        ('"\\ud83c"', "\ufffd"),
        ('"\\ud83cx"', "\ufffdx"),
        ('"\\ud83c\\udfab"', "🎫"),
        ('"\ud83c"', "\ufffd"),
        ('{"\\udc00": 1}', {"\ufffd": 1}),
        (b'"\xff"', "\ufffd"),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (str(2**70), 2**70),
        ('"a\\u0000b\u2028"', "a\x00b\u2028"),
    ],
)
def test_json_of_an_untrusted_source_becomes_values_that_we_can_store(text: str | bytes, value: Any) -> None:
    assert codec.loads(text) == value
    assert msgspec.json.decode(msgspec.json.encode(codec.loads(text))) == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "1 2", "9" * 5_000, "[" * 100_000, "[" * 5_000 + "]" * 5_000, "[NaN," * 5_000, b"\x00\xff"],
    ids=lambda text: f"{text[:6]!r} of {len(text)}",
)
def test_what_is_not_json_or_has_no_bounds_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        codec.loads(text)


@examples(200)
@given(st.binary(max_size=60) | st.text(alphabet=st.sampled_from('{}[]",:0e-\\uNad8\ud83c'), max_size=30))
def test_no_text_does_more_than_be_refused(text: str | bytes) -> None:
    try:
        value = codec.loads(text)
    except ValueError:
        return
    msgspec.json.encode(value)


@examples(200)
@given(st.text(alphabet=st.sampled_from("aé🎫\ud83c\udfab\udc00\ud800\x00\u2028"), max_size=12))
def test_clean_text_is_valid_and_stays_as_it_is(text: str) -> None:
    clean = codec.clean_text(text)
    clean.encode("utf-8")
    assert codec.clean_text(clean) == clean


@examples(100)
@given(st.text(max_size=20))
def test_clean_text_leaves_valid_text_alone(text: str) -> None:
    assert codec.clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("r\u200dm x", "r<U+200D>m x"),
        ("\u200crm", "<U+200C>rm"),
        ("rm\u200d", "rm<U+200D>"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("👩\u200d; rm x", "👩<U+200D>; rm x"),
    ],
)
def test_joiners_are_shown_where_they_join_nothing(text: str, shown: str) -> None:
    assert visible(text) == shown
