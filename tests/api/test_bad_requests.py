"""Requests that are too large, cut off, too slow or no requests at all: typed errors, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import grpc
import httpx
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.api import body
from counterfoil.api.v1 import services_pb2 as pb
from tests.api.conftest import Served
from tests.support.server import Server

pytestmark = [pytest.mark.slow]
EXAMPLES = 5_000 if os.environ.get("COUNTERFOIL_SOAK") else 300
RPCS = [
    (f"{service.full_name}/{method.name}", method)
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
TYPED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
}
TEXT = st.text(max_size=30) | st.sampled_from(["ses_", "ask_x", "default", "allow", "../../etc", "\x00", "a" * 5_000])
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: TEXT,
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=30),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 5),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 5),
    FieldDescriptor.TYPE_DOUBLE: st.floats(),
}


def messages(kind: Descriptor, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Values for any of the fields of a message."""
    fields = {}
    for field in kind.fields:
        if field.message_type is not None:
            if depth > 3:
                continue
            one: st.SearchStrategy[Any] = messages(field.message_type, depth + 1)
        else:
            one = SCALARS[field.type]
        fields[field.name] = st.lists(one, max_size=3) if field.is_repeated else one
    return st.fixed_dictionaries({}, optional=fields)


def build(kind: Any, values: dict[str, Any]) -> Message:
    made = kind()
    for name, value in values.items():
        field = kind.DESCRIPTOR.fields_by_name[name]
        if field.message_type is not None:
            nested = message_factory.GetMessageClass(field.message_type)
            if field.is_repeated:
                getattr(made, name).extend(build(nested, one) for one in value)
            else:
                getattr(made, name).CopyFrom(build(nested, value))
        elif field.is_repeated:
            getattr(made, name).extend(value)
        else:
            setattr(made, name, value)
    return cast("Message", made)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("fuzz"), {"turns": [{"text": "done"}]})
    yield made
    made.end()
    assert not any("Traceback" in line for line in made.said), made.said


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc) as made:
        yield made


def outcome(channel: grpc.Channel, name: str, method: Any, data: bytes) -> grpc.StatusCode | None:
    """The status of a call with these bytes; None where it went well, or streams."""
    raw: dict[str, Callable[[bytes], bytes]] = {"request_serializer": bytes, "response_deserializer": bytes}
    try:
        if name.endswith("Runs/Converse"):
            next(channel.stream_stream(f"/{name}", **raw)(iter([data]), timeout=5), None)
        elif method.server_streaming:
            stream = channel.unary_stream(f"/{name}", **raw)(data, timeout=5)
            next(stream, None) if "WatchAll" not in name else None
            stream.cancel()
        else:
            channel.unary_unary(f"/{name}", **raw)(data, timeout=20)
    except grpc.RpcError as error:
        fault = cast("Any", error)
        detail = dict(fault.trailing_metadata() or ()).get("counterfoil-error-bin")
        code: grpc.StatusCode = fault.code()
        if code is not grpc.StatusCode.UNIMPLEMENTED:
            assert detail is not None, (name, code, fault.details())
            assert pb.ErrorDetail.FromString(detail).code not in ("", "internal"), (name, fault)
        return code
    return None


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_message_gets_an_answer_or_a_typed_error(channel: grpc.Channel, data: st.DataObject) -> None:
    name, method = data.draw(st.sampled_from(RPCS))
    kind = message_factory.GetMessageClass(method.input_type)
    given_message = build(kind, data.draw(messages(method.input_type)))
    assert outcome(channel, name, method, given_message.SerializeToString()) in TYPED | {None}


@given(rpc=st.sampled_from(RPCS), data=st.binary(min_size=1, max_size=200))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_get_an_answer_or_a_typed_error(channel: grpc.Channel, rpc: Any, data: bytes) -> None:
    assert outcome(channel, rpc[0], rpc[1], data) in TYPED | {None}


def test_a_message_that_is_too_large(channel: grpc.Channel) -> None:
    request = pb.SteerRequest(session_id="ses_x", text="x" * 5_000_000)
    call: Any = channel.unary_unary("/counterfoil.v1.Runs/Steer", request_serializer=lambda m: m.SerializeToString())
    with pytest.raises(grpc.RpcError) as refused:
        call(request, timeout=20)
    assert cast("Any", refused.value).code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"x" * 4_000_001, 413, "too_much"),
        (b"{", 400, "usage"),
        (b"[]", 400, "usage"),
        (b"\xff\xfe", 400, "usage"),
        (b"[" * 100_000, 400, "usage"),
        (b'{"nothing": 1}', 400, "usage"),
        (b'{"title": 1}', 400, "usage"),
        (b'{"title": "\\ud800"}', 400, "usage"),
        (b'{"limits": {"maxTurns": 1e99}}', 400, "usage"),
        (json.dumps({"title": "x" * 3_000_000}).encode(), 400, "usage"),
    ],
)
def test_a_bad_body_over_http(server: Server, content: bytes, status: int, code: str) -> None:
    with httpx.Client(base_url=server.url) as client:
        answer = client.post("/v1/sessions", content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text[:300]
        assert answer.headers["content-type"] == "application/problem+json"
        assert client.get("/healthz").status_code == 200


def exchange(server: Server, sent: bytes) -> bytes:
    """What comes back for raw bytes, to the end of the connection."""
    import socket

    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        wire.sendall(sent)
        wire.shutdown(socket.SHUT_WR)
        got = b""
        while data := wire.recv(65536):
            got += data
        return got


def test_what_is_no_http_or_ends_in_the_middle(server: Server) -> None:
    host = server.url.removeprefix("http://").encode()
    head = b"POST /v1/sessions HTTP/1.1\r\nHost: " + host + b"\r\n"
    for sent in (
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
        b"GET / HTTP/9.9\r\n\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ):
        assert exchange(server, sent).split(b"\r\n", 1)[0].split(b" ")[1:2] in ([b"400"], [b"404"], []), sent[:60]
    exchange(server, head + b"Content-Length: 1000\r\n\r\n{")
    cut_off = exchange(server, head + b"X: " + b"y" * 100_000 + b"\r\n\r\n")  # it may be closed before all is sent
    assert cut_off.split(b"\r\n", 1)[0].split(b" ")[1:2] in ([b"400"], [b"431"], [])
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/sessions", params={"pageSize": 1000}).status_code == 200


async def test_a_body_that_comes_too_slowly(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "BODY_TIME", 0.2)
    host, port = served.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    bearer = served.bearers["ada"]
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {bearer}\r\n"
    writer.write(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    async with asyncio.timeout(20):
        answer = await reader.readuntil(b"}")
    assert b" 408 " in answer.split(b"\r\n", 1)[0] and b'"too_slow"' in answer
    writer.close()
