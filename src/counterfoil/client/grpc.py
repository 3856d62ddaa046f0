"""The client over gRPC."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import grpc
from google.protobuf.message import Message

from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.client.transport import error_of, response_type
from counterfoil.client.wire import WireClient
from counterfoil.errors import CounterfoilError, Unreachable

_DETAIL = "counterfoil-error-bin"
_OPTIONS = [("grpc.max_receive_message_length", 64_000_000), ("grpc.enable_http_proxy", 0)]
TIMEOUT = 60.0
"""Seconds for an rpc with one response."""
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class GrpcTransport:
    """`Transport` over gRPC. `target`: `host:port`, or `unix:path`.

    `roots`: over TLS, with these authorities (PEM; empty for the library's). None: in the clear, so for loopback.
    `own`: key and certificate chain (PEM) that are shown to the server.
    """

    def __init__(
        self,
        target: str,
        token: str | None = None,
        *,
        roots: bytes | None = None,
        own: tuple[bytes, bytes] | None = None,
    ) -> None:
        self._target = target
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        if roots is None:
            self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        else:
            trusted = grpc.ssl_channel_credentials(roots or None, *(own or (None, None)))
            self._channel = grpc.aio.secure_channel(target, trusted, options=_OPTIONS)

    async def call(self, rpc: str, request: Message) -> Any:
        method = self._channel.unary_unary(
            _method(rpc),
            request_serializer=type(request).SerializeToString,
            response_deserializer=response_type(rpc).FromString,
        )
        try:
            return await method(request, metadata=self._metadata, timeout=TIMEOUT)
        except grpc.aio.AioRpcError as fault:
            raise self._error(fault) from fault

    async def stream(self, rpc: str, request: Message) -> AsyncGenerator[Any, None]:
        method = self._channel.unary_stream(
            _method(rpc),
            request_serializer=type(request).SerializeToString,
            response_deserializer=response_type(rpc).FromString,
        )
        running = method(request, metadata=self._metadata)
        try:
            async for message in running:
                yield message
        except grpc.aio.AioRpcError as fault:
            raise self._error(fault) from fault
        finally:
            running.cancel()

    def _error(self, fault: grpc.aio.AioRpcError) -> CounterfoilError:
        for key, value in fault.trailing_metadata() or ():
            if key == _DETAIL and isinstance(value, bytes):
                return error_of(pb.ErrorDetail.FromString(value))
        if fault.code() in _GONE:
            why = fault.details() or fault.code().name
            return Unreachable(f"{self._target} can't be reached: {why}", hint="is `counterfoil serve` running there?")
        return CounterfoilError(f"the server answered {fault.code().name}: {fault.details()}")

    async def close(self) -> None:
        await self._channel.close()


def _method(rpc: str) -> str:
    service, _, method = rpc.partition(".")
    return f"/{pb.DESCRIPTOR.services_by_name[service].full_name}/{method}"


def connect(
    target: str, token: str | None = None, *, roots: bytes | None = None, own: tuple[bytes, bytes] | None = None
) -> WireClient:
    """A client of the server at `target`; `roots` and `own` as `GrpcTransport` has them."""
    return WireClient(GrpcTransport(target, token, roots=roots, own=own))
