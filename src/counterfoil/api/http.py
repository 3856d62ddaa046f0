"""The HTTP door: routes to rpcs, JSON as the contract's canonical mapping, watches as server-sent events."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from counterfoil.api.body import read_body
from counterfoil.api.door import Door, host_allowed, origin_allowed
from counterfoil.api.faults import Fault, fault_of
from counterfoil.api.handlers import HANDLERS, STREAMS, Handler, watch_many
from counterfoil.api.memo import Memo
from counterfoil.api.observing import Observer
from counterfoil.api.observing import Request as Observed
from counterfoil.api.openapi import document
from counterfoil.api.routes import ROUTES, Route
from counterfoil.api.ui import PAGE_HEADERS, docs_page, ui_routes
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.errors import CounterfoilError, Forbidden, UsageError
from counterfoil.service.access import Caller
from counterfoil.service.application import Application

log = logging.getLogger("counterfoil.api")

MAX_BODY = 4_000_000
"""Bytes of a request's body."""
RETRY = "retry: 1000\n\n"
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def http_app(app: Application, door: Door, *, bound: str = "127.0.0.1", observer: Observer | None = None) -> Starlette:
    """The ASGI application. `bound`: the address that it is served on, for the check of `Host`."""
    site = _Site(app, door, bound, observer or Observer(app))
    routes = [
        StarletteRoute("/v1/asks/events", site.watch_all, methods=["GET"]),
        *(StarletteRoute(r.path, site.unary(r), methods=[r.method]) for r in ROUTES),
        StarletteRoute("/v1/sessions/{session_id}/export", site.export, methods=["GET"]),
        StarletteRoute("/v1/sessions/{session_id}/events", site.watch, methods=["GET"]),
        StarletteRoute("/metrics", site.metrics, methods=["GET"]),
        StarletteRoute("/docs", site.docs, methods=["GET"]),
        *ui_routes(app, door, site.check, site.observer),
        StarletteRoute("/healthz", site.healthy, methods=["GET"]),
        StarletteRoute("/readyz", site.ready, methods=["GET"]),
        StarletteRoute("/openapi.json", site.openapi, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _unrouted})


class _Site:
    def __init__(self, app: Application, door: Door, bound: str, observer: Observer) -> None:
        self._app = app
        self.observer = observer
        self._door = door
        self._bound = bound

    # ---- rpcs with one response ---------------------------------------------------------------------------------

    def unary(self, route: Route) -> Callable[[Request], Awaitable[Response]]:
        handler: Handler = HANDLERS[route.rpc]
        kind = request_type(route.rpc)

        async def endpoint(request: Request) -> Response:
            try:
                with self.observer.request("http", route.rpc, peer_of(request)) as seen:
                    caller = await self._enter(request, seen)
                    message = await _message(request, kind)
                    seen.of(message)
                    answer = await handler(self._app, caller, message)
            except Exception as error:  # every error is told in the one model; what isn't typed goes to the log
                return _problem(_logged(error))
            return JSONResponse(json_format.MessageToDict(answer))

        return endpoint

    async def _enter(self, request: Request, seen: Observed) -> Caller:
        """Who makes the request. Raises `Forbidden`, `Unauthenticated`, `TooFast`."""
        self.check(request)
        seen.caller = await self._door.caller(request.headers.get("authorization"), peer_of(request))
        return seen.caller

    def check(self, request: Request) -> None:
        """Raise `Forbidden` for a name that a browser was led to here by, or a page of another origin."""
        host = request.headers.get("host")
        if not host_allowed(host, self._bound, local=self._door.is_local):
            raise Forbidden("this Host isn't served here", hint="use the address that the server printed")
        if not origin_allowed(request.headers.get("origin"), host):
            raise Forbidden("pages of another origin may not call this")

    # ---- streams ------------------------------------------------------------------------------------------------

    async def watch(self, request: Request) -> Response:
        """Events of one session. `id:` is the offset, `Last-Event-ID` resumes."""
        try:
            after = _offset(request.headers.get("last-event-id") or request.query_params.get("after_offset") or "0")
        except CounterfoilError as error:
            return _problem(fault_of(error))
        message = pb.WatchRequest(session_id=request.path_params["session_id"], after_offset=after)
        return await self._stream(request, "Events.Watch", message)

    async def watch_all(self, request: Request) -> Response:
        """What happens to asks in all sessions of the caller."""
        return await self._stream(request, "Events.WatchAll", pb.WatchAllRequest())

    async def _stream(self, request: Request, rpc: str, message: Message) -> Response:
        """The stream, once its first frame is there: until then an error is an ordinary one."""
        seen = self.observer.request("http", rpc, peer_of(request))
        seen.of(message)
        try:
            caller = await self._enter(request, seen)
            if isinstance(message, pb.WatchRequest):
                frames: AsyncIterator[list[Any]] = watch_many(self._app, caller, message)
                first = await anext(frames, None)
            else:
                frames = _each(STREAMS[rpc](self._app, caller, message))
                await HANDLERS["Server.GetInfo"](self._app, caller, pb.GetInfoRequest())
                first = None
        except Exception as error:
            seen.end(error)
            return _problem(_logged(error))
        return StreamingResponse(_sse(first, frames, seen), media_type="text/event-stream", headers=SSE_HEADERS)

    async def export(self, request: Request) -> Response:
        """The public log as JSON lines."""
        seen = self.observer.request("http", "Sessions.Export", peer_of(request))
        try:
            caller = await self._enter(request, seen)
            message = pb.ExportRequest(session_id=request.path_params["session_id"])
            seen.of(message)
            chunks = STREAMS["Sessions.Export"](self._app, caller, message)
            first = await anext(chunks, None)
        except Exception as error:
            seen.end(error)
            return _problem(_logged(error))
        return StreamingResponse(_bytes(first, chunks, seen), media_type="application/x-ndjson")

    # ---- the server itself --------------------------------------------------------------------------------------

    async def healthy(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        ready = not self._app.drivers.closing
        return JSONResponse({"status": "ok" if ready else "draining"}, status_code=200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Counts and times, in the text format of Prometheus, for whoever may come in."""
        try:
            with self.observer.request("http", "metrics", peer_of(request)) as seen:
                await self._enter(request, seen)
        except Exception as error:
            return _problem(_logged(error))
        return Response(self.observer.text(), media_type="text/plain; version=0.0.4")

    async def docs(self, request: Request) -> Response:
        """The routes, readable. Like `/openapi.json` it says what this version offers, and nothing of anybody."""
        return HTMLResponse(docs_page(document()), headers=PAGE_HEADERS)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(document())


def peer_of(request: Request) -> str:
    """The address that a request comes from; empty for a socket of this machine."""
    return request.client.host if request.client is not None else ""


def request_type(rpc: str) -> type[Message]:
    """The message that an rpc takes."""
    service, method = rpc.split(".")
    found = pb.DESCRIPTOR.services_by_name[service].methods_by_name[method]
    return message_factory.GetMessageClass(found.input_type)


async def _message(request: Request, kind: type[Message]) -> Message:
    """The request message: its body, its path and its query. Raises `UsageError`, `TooMuch`."""
    body = await read_body(request, MAX_BODY)
    fields: dict[str, Any] = {}
    if body:
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"the body is not JSON: {fault}") from fault
        if not isinstance(fields, dict):
            raise UsageError("the body is not a JSON object")
    fields |= dict(request.query_params) | request.path_params
    try:
        return json_format.ParseDict(fields, kind(), max_recursion_depth=50)
    except (json_format.ParseError, RecursionError, UnicodeError, ValueError, TypeError) as fault:
        raise UsageError(f"the request doesn't fit: {str(fault)[:500]}", hint="see /openapi.json") from fault


def _offset(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UsageError("the offset to go on from is not a number", hint="send the last event's id")
    return int(text)


async def _bytes(first: Any, chunks: AsyncIterator[Any], seen: Observed) -> AsyncIterator[bytes]:
    seen.streams()
    async with contextlib.aclosing(chunks):  # type: ignore[type-var]
        with seen:
            if first is not None:
                yield first.chunk
            async for message in chunks:
                yield message.chunk


async def _each(frames: AsyncIterator[Any]) -> AsyncIterator[list[Any]]:
    async with contextlib.aclosing(frames):  # type: ignore[type-var]
        async for frame in frames:
            yield [frame]


async def _sse(first: list[Any] | None, frames: AsyncIterator[list[Any]], seen: Observed) -> AsyncIterator[bytes]:
    """Frames as server-sent events; an error that ends them is the last one. A client that goes away ends the watch."""
    seen.streams()
    async with contextlib.aclosing(frames):  # type: ignore[type-var]
        try:
            with seen:
                yield RETRY.encode()
                if first is not None:
                    yield b"".join(map(_event, first))
                async for batch in frames:
                    yield b"".join(map(_event, batch))
        except Exception as error:  # the answer's head is sent: only the stream itself can say what happened
            detail = json.dumps(json_format.MessageToDict(_logged(error).detail), separators=(",", ":"))
            yield f"event: error\ndata: {detail}\n\n".encode()


def _encoded(frame: Any) -> bytes:
    case = frame.WhichOneof("frame")
    if case == "heart_beat":
        return b": still here\n\n"
    inner = getattr(frame, case)
    offset = inner.offset if case == "event" and inner.HasField("offset") else None
    head = f"id: {offset}\n" if offset is not None else ""
    data = json.dumps(json_format.MessageToDict(inner), separators=(",", ":"))
    return f"{head}event: {case}\ndata: {data}\n\n".encode()


_event: Memo[Any, bytes] = Memo(_encoded)
"""A frame as a server-sent event. A frame that many watchers get is encoded once."""


def _logged(error: Exception) -> Fault:
    fault = fault_of(error)
    if fault.http == 500:
        log.error("a request failed with %s", type(error).__name__, exc_info=error)
    return fault


def _problem(fault: Fault) -> Response:
    """Problem details (RFC 9457): the contract's error with what HTTP adds."""
    detail = json_format.MessageToDict(fault.detail)
    body = {"type": "about:blank", "title": fault.detail.code, "status": fault.http, "detail": fault.detail.message}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(fault.http, {})
    return JSONResponse(body | detail, status_code=fault.http, media_type="application/problem+json", headers=headers)


async def _unrouted(request: Request, error: Exception) -> Response:
    """No such route, or not by this method."""
    assert isinstance(error, HTTPException)
    code = {404: "no_such_route", 405: "method_not_allowed"}.get(error.status_code, "http")
    detail = pb.ErrorDetail(code=code, message=str(error.detail))
    return _problem(Fault(http=error.status_code, grpc="UNIMPLEMENTED", detail=detail))
