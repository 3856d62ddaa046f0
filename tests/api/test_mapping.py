"""The contract carries every public type whole, and nothing besides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.api import mapping
from counterfoil.api.v1 import events_pb2, records_pb2, services_pb2
from counterfoil.events import codec
from counterfoil.identity import Offset, RunID, SessionID
from tests.support.strategies import example_of, examples, values_of

ROOT = Path(__file__).parents[2]
KINDS = sorted(codec.KINDS)


def placed(event: ev.Event) -> ev.Envelope:
    return ev.Envelope(
        session_id=SessionID("ses_1"),
        run_id=RunID("run_1"),
        seq=7,
        offset=Offset(9),
        recorded_at=1_700_000_000_000_000,
        event=event,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("full", [True, False])
def test_each_kind_comes_back_as_it_was(kind: str, full: bool) -> None:
    envelope = placed(example_of(codec.KINDS[kind], full=full))
    wire = mapping.to_event(envelope).SerializeToString()
    assert mapping.from_event(events_pb2.Event.FromString(wire)) == envelope


@examples(300)
@given(st.sampled_from(KINDS).flatmap(lambda kind: values_of(codec.KINDS[kind])))
def test_any_event_comes_back_as_it_was_as_bytes_and_as_canonical_json(event: Any) -> None:
    envelope = placed(event)
    message = mapping.to_event(envelope)
    again = events_pb2.Event.FromString(message.SerializeToString())
    assert mapping.from_event(again) == envelope
    told = json_format.Parse(json_format.MessageToJson(message), events_pb2.Event())
    assert mapping.from_event(told) == envelope


def test_an_event_of_an_unknown_kind_keeps_its_exact_text() -> None:
    body = b'{ "kind": "future.kind", "x": [1,  2.50], "text": "\\u00e9" }'
    envelope = placed(ev.UnknownEvent(original_kind="future.kind", body=msgspec.Raw(body)))
    again = mapping.from_event(mapping.to_event(envelope))
    assert isinstance(again.event, ev.UnknownEvent)
    assert (again.event.original_kind, bytes(again.event.body)) == ("future.kind", body)


@pytest.mark.parametrize("kind", KINDS)
def test_the_contract_has_the_fields_of_each_type_and_no_other(kind: str) -> None:
    _compare(codec.KINDS[kind], set())


def _compare(cls: type[msgspec.Struct], seen: set[str]) -> None:
    pool = {**events_pb2.DESCRIPTOR.message_types_by_name, **records_pb2.DESCRIPTOR.message_types_by_name}
    if cls.__name__ in seen:
        return
    seen.add(cls.__name__)
    fields = mapping._fields(cls)
    assert {f.wire for f in fields} == {f.name for f in pool[cls.__name__].fields}, cls.__name__
    for field in fields:
        if field.nested:
            _compare(field.of, seen)


def test_no_message_has_a_field_for_what_is_private_to_a_provider() -> None:
    words = ("pairing", "item_id", "replay", "opaque", "wire", "private")
    for file in (events_pb2, records_pb2, services_pb2):
        for message in file.DESCRIPTOR.message_types_by_name.values():
            for field in message.fields:
                assert not any(word in field.name for word in words), f"{message.name}.{field.name}"


def test_what_is_generated_is_what_the_contract_makes() -> None:
    script = ROOT / "scripts" / "generate_proto.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "message",
    [
        events_pb2.Event(),
        events_pb2.Event(call_accepted=events_pb2.CallAccepted(arguments_json="{")),
        events_pb2.Event(call_accepted=events_pb2.CallAccepted(arguments_json="[1]")),
        events_pb2.Event(user_prompt=events_pb2.UserPrompt(parts=[records_pb2.Part()])),
        events_pb2.Event(call_finished=events_pb2.CallFinished(status="done")),
    ],
)
def test_what_isnt_an_event_is_a_typed_error(message: events_pb2.Event) -> None:
    with pytest.raises(msgspec.ValidationError):
        mapping.from_event(message)
