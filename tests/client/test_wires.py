"""What a wire can do to a client: nobody there, somebody else there, a stream that breaks off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from counterfoil.client import grpc, http
from counterfoil.client.interface import Client
from counterfoil.errors import CodecError, CounterfoilError, SessionNotFound, Unreachable
from counterfoil.identity import SessionID

SESSION = SessionID("ses_x")


def closed_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@contextlib.asynccontextmanager
async def answering(response: bytes) -> AsyncIterator[str]:
    """A server that answers everything with these bytes and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def head(kind: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def chunk(text: str) -> bytes:
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


@pytest.mark.parametrize("wire", ["http", "grpc"])
async def test_nobody_there_is_said_in_one_line(wire: str) -> None:
    port = closed_port()
    client: Client = http.connect(f"http://127.0.0.1:{port}") if wire == "http" else grpc.connect(f"127.0.0.1:{port}")
    async with client:
        with pytest.raises(Unreachable, match=str(port)):
            await client.get_info()
        with pytest.raises(Unreachable):
            async for _ in client.watch(SESSION):
                pass


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (head("text/html", "502 Bad Gateway") + chunk("<h1>bad</h1>") + b"0\r\n\r\n", CounterfoilError),
        (head("application/json") + chunk("[1, 2") + b"0\r\n\r\n", CodecError),
        (head("application/json") + chunk('{"version": 3}') + b"0\r\n\r\n", CodecError),
        (head("application/json") + chunk("[" * 100_000) + b"0\r\n\r\n", CodecError),
        (head("application/json") + b"zzz\r\n", Unreachable),
        (b"SSH-2.0-x\r\n", Unreachable),
        (b"", Unreachable),
    ],
)
async def test_something_else_there_is_a_typed_error(response: bytes, kind: type[CounterfoilError]) -> None:
    async with answering(response) as url, http.connect(url) as client:
        with pytest.raises(kind):
            await client.get_info()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", Unreachable),
        ('event: caught_up\ndata: {"offset": "3"}\n\n', Unreachable),
        ('event: event\ndata: {"sessionId": 3}\n\n', CodecError),
        ("event: event\ndata: {}\n\n", CodecError),
        ('event: error\ndata: {"code": "session_not_found", "message": "gone"}\n\n', SessionNotFound),
    ],
)
async def test_a_stream_that_breaks_off_is_never_taken_for_its_end(said: str, kind: type[CounterfoilError]) -> None:
    response = head("text/event-stream") + (chunk(said) if said else b"")
    async with answering(response) as url, http.connect(url) as client:
        with pytest.raises(kind):
            async for _ in client.watch(SESSION):
                pass
