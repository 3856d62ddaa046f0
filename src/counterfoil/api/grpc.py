"""The gRPC door: the contract's services over the same handlers as HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from counterfoil.api.door import Door
from counterfoil.api.faults import Fault, fault_of
from counterfoil.api.handlers import HANDLERS, STREAMS
from counterfoil.api.observing import Observer
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.errors import CounterfoilError, UsageError
from counterfoil.service.access import Caller
from counterfoil.service.application import Application

log = logging.getLogger("counterfoil.api")

MAX_MESSAGE = 4_000_000
"""Bytes of one message, in."""
_OPTIONS = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_metadata_size", 16_384)]
_DETAIL = "counterfoil-error-bin"
"""Trailing metadata that carries the `ErrorDetail`."""


class GrpcDoor:
    """A gRPC server over an application. `start` binds it, `stop` ends it after a grace."""

    def __init__(self, app: Application, door: Door, observer: Observer | None = None) -> None:
        self._app = app
        self._observer = observer or Observer(app)
        self._door = door
        self.server = grpc.aio.server(options=_OPTIONS)
        for service in pb.DESCRIPTOR.services_by_name.values():
            handlers = {
                method.name: self._handler(f"{service.name}.{method.name}", method) for method in service.methods
            }
            generic = grpc.method_handlers_generic_handler(service.full_name, handlers)
            self.server.add_generic_rpc_handlers((generic,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)
        names = [service.full_name for service in pb.DESCRIPTOR.services_by_name.values()]
        reflection.enable_server_reflection([*names, reflection.SERVICE_NAME], self.server)

    async def start(
        self, address: str, *, tls: tuple[bytes, bytes] | None = None, client_ca: bytes | None = None
    ) -> int:
        """Bind and serve. Returns the port. `tls`: key and certificate chain (PEM); `client_ca`: that of clients."""
        if tls is None:
            port = self.server.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials(
                [tls], root_certificates=client_ca, require_client_auth=client_ca is not None
            )
            port = self.server.add_secure_port(address, credentials)
        await self.server.start()
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self, grace: float) -> None:
        """Say that it drains, take no more, end what is left after `grace` seconds."""
        await self._health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        await self.server.stop(grace)

    def _handler(self, rpc: str, method: Any) -> grpc.RpcMethodHandler[Any, Any]:
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        codec = {"request_deserializer": _parser(request), "response_serializer": response.SerializeToString}
        if rpc == "Runs.Converse":
            return grpc.stream_stream_rpc_method_handler(self._converse, **codec)  # type: ignore[arg-type]
        if rpc in STREAMS:
            return grpc.unary_stream_rpc_method_handler(self._stream(rpc), **codec)  # type: ignore[arg-type]
        return grpc.unary_unary_rpc_method_handler(self._unary(rpc), **codec)  # type: ignore[arg-type]

    def _unary(self, rpc: str) -> Any:
        handler = HANDLERS.get(rpc)

        async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            if handler is None:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{rpc} isn't offered yet")
            try:
                with self._observer.request("grpc", rpc, _peer(context)) as seen:
                    seen.of(request)
                    seen.caller = await self._caller(context)
                    _require_read(request)
                    return await handler(self._app, seen.caller, request)
            except Exception as error:
                await _abort(context, error)

        return call

    def _stream(self, rpc: str) -> Any:
        async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            try:
                with self._observer.request("grpc", rpc, _peer(context)) as seen:
                    seen.of(request)
                    seen.streams()
                    seen.caller = await self._caller(context)
                    _require_read(request)
                    frames = STREAMS[rpc](self._app, seen.caller, request)
                    async with contextlib.aclosing(frames):  # type: ignore[type-var]
                        async for frame in frames:
                            yield frame
            except Exception as error:
                await _abort(context, error)

        return call

    async def _caller(self, context: grpc.aio.ServicerContext[Any, Any]) -> Caller:
        sent = dict(context.invocation_metadata() or ())
        value = sent.get("authorization")
        return await self._door.caller(value if isinstance(value, str) else None, _peer(context))

    async def _converse(
        self, requests: AsyncIterator[pb.ConverseRequest], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.ConverseResponse]:
        """What is said is done in order; what can't be is told, and the conversation goes on."""
        out: asyncio.Queue[pb.ConverseResponse | Exception | None] = asyncio.Queue(maxsize=100)
        own: list[asyncio.Task[None]] = []
        seen = self._observer.request("grpc", "Runs.Converse", _peer(context))
        seen.streams()
        failed: Exception | None = None
        try:
            caller = seen.caller = await self._caller(context)
            first = await anext(requests, None)
            if first is None or first.WhichOneof("say") != "begin":
                raise UsageError("the first message says which session: begin")
            own = [
                asyncio.create_task(self._told(caller, first.begin, out)),
                asyncio.create_task(self._heard(caller, requests, out)),
            ]
            while (frame := await out.get()) is not None:
                if isinstance(frame, Exception):
                    raise frame
                yield frame
        except Exception as error:
            failed = error
            await _abort(context, error)
        finally:
            seen.end(failed)
            for task in own:
                task.cancel()
            await asyncio.gather(*own, return_exceptions=True)

    async def _told(self, caller: Any, begin: pb.WatchRequest, out: asyncio.Queue[Any]) -> None:
        try:
            async for frame in STREAMS["Events.Watch"](self._app, caller, begin):
                await out.put(pb.ConverseResponse(watched=frame))
            await out.put(None)
        except Exception as error:  # told to the client by whoever reads the queue
            await out.put(error)

    async def _heard(self, caller: Any, requests: AsyncIterator[pb.ConverseRequest], out: asyncio.Queue[Any]) -> None:
        async for said in requests:
            if said is None:
                said = pb.ConverseRequest()
            if (fault := await self._say(caller, said)) is not None:
                await out.put(pb.ConverseResponse(refused=fault.detail))

    async def _say(self, caller: Any, said: pb.ConverseRequest) -> Fault | None:
        case = said.WhichOneof("say")
        rpc = {"prompt": "Runs.Prompt", "steer": "Runs.Steer", "answer": "Approvals.Answer", "cancel": "Runs.Cancel"}
        try:
            if case not in rpc:
                raise UsageError("a message says prompt, steer, answer or cancel")
            await HANDLERS[rpc[case]](self._app, caller, getattr(said, case))
        except CounterfoilError as error:
            return fault_of(error)
        return None


def _parser(kind: Any) -> Callable[[bytes], Any]:
    """Reads a message; `None` stands for what is none, so that it gets a typed error."""

    def parse(data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    return parse


def _require_read(request: Any) -> None:
    if request is None:
        raise UsageError("the request is no message of this rpc", hint="see proto/counterfoil/v1")


def _peer(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The address that a call comes from: gRPC says `ipv4:127.0.0.1:40000`, `ipv6:[::1]:40000`, `unix:`."""
    kind, _, rest = str(context.peer() or "").partition(":")
    return unquote(rest.rpartition(":")[0]).strip("[]") if kind in ("ipv4", "ipv6") else ""


async def _abort(context: grpc.aio.ServicerContext[Any, Any], error: BaseException) -> None:
    """End the call with the status and the detail of `error`."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    fault = fault_of(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
    if fault.http == 500:
        log.error("a call failed with %s", type(error).__name__, exc_info=error)
    context.set_trailing_metadata(((_DETAIL, fault.detail.SerializeToString()),))
    await context.abort(getattr(grpc.StatusCode, fault.grpc), fault.detail.message)


__all__ = ["GrpcDoor"]
