"""The client over HTTP: routes of the contract, JSON bodies, server-sent events."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import httpx
from google.protobuf import json_format
from google.protobuf.message import Message

from counterfoil.api.routes import ROUTES, Route
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.client.transport import error_of, response_type
from counterfoil.client.wire import WireClient
from counterfoil.errors import CodecError, CounterfoilError, Unreachable

_STREAMS = {
    "Events.Watch": "/v1/sessions/{session_id}/events",
    "Events.WatchAll": "/v1/asks/events",
    "Sessions.Export": "/v1/sessions/{session_id}/export",
}
_FIELD = re.compile(r"\{(\w+)\}")
_ID = re.compile(r"[A-Za-z0-9_-]+")
TIMEOUT = httpx.Timeout(60, connect=10)
SILENCE = 60.0
"""Seconds without a byte, heart beats among them, after which a stream counts as broken."""


class HttpTransport:
    """`Transport` over HTTP. `url`: `http://host:port`, or a path of a Unix socket as `uds`."""

    def __init__(
        self, url: str, token: str | None = None, *, uds: str | None = None, verify: ssl.SSLContext | bool = True
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        wire = httpx.AsyncHTTPTransport(uds=uds) if uds is not None else None
        self._place = uds or url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            timeout=TIMEOUT,
            transport=wire,
            verify=verify,
            trust_env=False,
            follow_redirects=False,
        )

    async def call(self, rpc: str, request: Message) -> Any:
        route = _route(rpc, request)
        fields = json_format.MessageToDict(request, preserving_proto_field_name=True)
        path = _path(route.path, fields)
        more = {"params": fields} if route.method == "GET" else {"json": fields}
        with self._reaching():
            response = await self._http.request(route.method, path, **more)  # type: ignore[arg-type]
        _raise_for(response.status_code, response.content)
        return _parsed(response.content, response_type(rpc))

    async def stream(self, rpc: str, request: Message) -> AsyncGenerator[Any, None]:
        fields = json_format.MessageToDict(request, preserving_proto_field_name=True)
        path = _path(_STREAMS[rpc], fields)
        waits = httpx.Timeout(60, connect=10, read=SILENCE)
        with self._reaching():
            async with self._http.stream("GET", path, params=fields, timeout=waits) as response:
                if response.status_code >= 300:
                    _raise_for(response.status_code, await response.aread())
                reading = _lines(response) if rpc == "Sessions.Export" else _frames(rpc, response)
                async with contextlib.aclosing(reading) as messages:
                    async for message in messages:
                        yield message

    @contextlib.contextmanager
    def _reaching(self) -> Any:
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            why = str(fault) or type(fault).__name__
            raise Unreachable(
                f"{self._place} can't be reached: {why}", hint="is `counterfoil serve` running there?"
            ) from fault

    async def close(self) -> None:
        await self._http.aclose()


def _route(rpc: str, request: Message) -> Route:
    """The most specific route whose path's fields are all given."""
    fits = [r for r in ROUTES if r.rpc == rpc and all(getattr(request, name) for name in _FIELD.findall(r.path))]
    every = [r for r in ROUTES if r.rpc == rpc]
    return max(fits or every, key=lambda r: r.path.count("{"))


def _path(path: str, fields: dict[str, Any]) -> str:
    """The path with its fields, which are taken out of `fields`. What can't be an id is sent as the id of nothing."""

    def segment(match: re.Match[str]) -> str:
        value = str(fields.pop(match[1], ""))
        return value if _ID.fullmatch(value) else "-"

    return _FIELD.sub(segment, path)


def _raise_for(status: int, body: bytes) -> None:
    if status < 300:
        return
    try:
        told = json.loads(body)
        known = {field.json_name for field in pb.ErrorDetail.DESCRIPTOR.fields}
        detail = json_format.ParseDict({k: v for k, v in told.items() if k in known}, pb.ErrorDetail())
    except (ValueError, AttributeError, json_format.ParseError):
        raise CounterfoilError(f"the server answered HTTP {status}", hint="is it a counterfoil server?") from None
    raise error_of(detail)


def _parsed(body: bytes, kind: type[Message]) -> Any:
    try:
        return json_format.Parse(body, kind(), ignore_unknown_fields=True)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as fault:
        raise CodecError(f"the server's answer can't be read: {str(fault)[:300]}") from fault


async def _frames(rpc: str, response: httpx.Response) -> AsyncGenerator[Any, None]:
    kind: Any = response_type(rpc)
    name, data = "", ""
    async for line in response.aiter_lines():
        if line.startswith(":"):
            yield kind(heart_beat=pb.HeartBeat())
        elif line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data = line.removeprefix("data:").strip()
        elif not line and name:
            if name == "error":
                raise error_of(_parsed(data.encode(), pb.ErrorDetail))
            yield _parsed(f"{{{json.dumps(name)}:{data}}}".encode(), kind)
            name, data = "", ""


async def _lines(response: httpx.Response) -> AsyncGenerator[Any, None]:
    """Chunks of whole lines."""
    rest = b""
    async for chunk in response.aiter_bytes():
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            yield pb.ExportResponse(chunk=whole + newline)
    if rest:
        raise Unreachable("the export broke off in the middle of a line")


def connect(
    url: str, token: str | None = None, *, uds: str | None = None, verify: ssl.SSLContext | bool = True
) -> WireClient:
    """A client of the server at `url`; over TLS its certificate is checked as `verify` says."""
    return WireClient(HttpTransport(url, token, uds=uds, verify=verify))
