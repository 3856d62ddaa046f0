"""What the adapters over HTTP share: one connection pool, one POST, server-sent events, typed errors.

An adapter gives a body, headers and an `Assembler`; the stream, its bounds and its failures are here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast
from urllib.parse import urlsplit

from counterfoil.errors import ConfigError, ProviderError
from counterfoil.events.codec import loads
from counterfoil.ports import CallChunk, ModelRequest, ModelTurn, ReasoningChunk, StreamItem, TextChunk
from counterfoil.providers import faults
from counterfoil.providers.wire import encode_json

if TYPE_CHECKING:
    import httpx

Chunk = TextChunk | ReasoningChunk | CallChunk

DONE: dict[str, Any] = {"type": "[DONE]"}
"""What the `[DONE]` marker at the end of some streams is decoded to."""

MAX_EVENT = 16 * 1024 * 1024
"""Characters that may come without one finished event."""
MAX_STREAM = 256 * 1024 * 1024
"""Characters that one answer may have."""
_ERROR_BODY = 64 * 1024
_CONNECT_TIMEOUT = 10.0
_GRACE = 5.0
_DRAIN = 0.25
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Assembler(Protocol):
    """Makes one turn of the decoded events of one stream. No I/O."""

    @property
    def complete(self) -> bool:
        """Whether enough was seen to finish, should nothing more come."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""
        ...

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Take the next event. Raises `ProviderError` where the event reports one."""
        ...

    def finish(self) -> ModelTurn:
        """The whole turn. Raises `ProviderError` of kind `stream_cut` where the end is missing."""
        ...


def assemble_with(assembler: Assembler, events: Iterable[dict[str, Any]]) -> ModelTurn:
    """The turn that `events` make."""
    for event in events:
        assembler.feed(event)
    return assembler.finish()


def decode_data(data: str) -> dict[str, Any] | None:
    """The `data` of one server-sent event; None where there is nothing in it. Raises `ProviderError`."""
    if not data or data.isspace():
        return None
    if data.strip() == "[DONE]":
        return DONE
    try:
        value = loads(data)
    except (ValueError, RecursionError):
        raise faults.stream_cut("an event is not valid JSON") from None
    if not isinstance(value, dict):
        raise faults.stream_cut("an event is not a JSON object")
    return value


def origin_of(wire: str, base_url: str) -> str:
    """Wire format and host. Local servers restart on other ports, so a loopback host stands without its port."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if host not in _LOOPBACK and parts.port is not None:
        shown = f"{shown}:{parts.port}"
    return f"{wire}@{parts.scheme}://{shown}"


class HttpProvider(ABC):
    """Base of the adapters over HTTP. Makes its connection pool with the first request. Never retries."""

    wire: ClassVar[str]
    """The wire format's name."""
    path: ClassVar[str]
    """Where requests go, under the base URL."""
    key_variable: ClassVar[str] = ""
    """The environment variable that usually holds the key, for hints."""
    default_base_url: ClassVar[str] = ""

    def __init__(
        self,
        *,
        name: str = "",
        base_url: str = "",
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._name = name or self.wire
        self._base_url = _checked_url(base_url or self.default_base_url, self._name).rstrip("/")
        self._api_key = _checked_key(api_key, self._name)
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._origin = origin_of(self.wire, self._base_url)
        self._client: httpx.AsyncClient | None = None

    @property
    def name(self) -> str:
        """The configured name, public."""
        return self._name

    @property
    def origin(self) -> str:
        """Wire format and host."""
        return self._origin

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._name!r}, origin={self._origin!r})"

    @abstractmethod
    def body(self, request: ModelRequest, /) -> dict[str, Any]:
        """The request's JSON body."""

    @abstractmethod
    def assembler(self) -> Assembler:
        """A new assembler for one stream."""

    def auth_headers(self) -> dict[str, str]:
        """The headers that carry the key."""
        return {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once. Yields chunks and, last, the whole turn. Raises `ProviderError`."""
        assembler = self.assembler()
        try:
            async with aclosing(self._chunks(encode_json(self.body(request)), assembler)) as chunks:
                async for chunk in chunks:
                    yield chunk
            turn = assembler.finish()
        except ProviderError as error:
            raise self._clean(error, request) from None
        yield turn

    async def close(self) -> None:
        """Give up connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _chunks(self, body: bytes, assembler: Assembler) -> AsyncGenerator[Chunk, None]:
        async with self._post(body) as response:
            events = _events(response)
            async with aclosing(events):
                while not assembler.done:
                    event = await self._next(events, assembler)
                    if event is None:
                        break
                    for chunk in assembler.feed(event):
                        yield chunk
                if assembler.done:
                    await _drain(events)

    async def _next(self, events: AsyncIterator[dict[str, Any]], assembler: Assembler) -> dict[str, Any] | None:
        """The next event, None at the end. Once the turn is complete, no failure and no long wait can hurt it."""
        import httpx

        try:
            async with asyncio.timeout(_GRACE if assembler.complete else None):
                return await anext(events, None)
        except TimeoutError:
            return None
        except httpx.HTTPError as fault:
            if assembler.complete:
                return None
            if isinstance(fault, httpx.TimeoutException):
                raise self._timed_out() from fault
            raise faults.stream_cut("the connection was lost") from fault
        except ProviderError:
            if assembler.complete:
                return None
            raise

    @asynccontextmanager
    async def _post(self, body: bytes) -> AsyncIterator[httpx.Response]:
        import httpx

        client = self._client or self._connect()
        request = client.build_request("POST", self._base_url + self.path, content=body)
        try:
            response = await client.send(request, stream=True)
        except httpx.ConnectTimeout as fault:
            raise self._unreachable("no connection in time") from fault
        except httpx.TimeoutException as fault:
            raise self._timed_out() from fault
        except httpx.HTTPError as fault:
            raise self._unreachable(str(fault) or type(fault).__name__, untrusted=_is_untrusted(fault)) from fault
        try:
            if response.status_code != 200:
                raise await self._refusal(response)
            yield response
        finally:
            await response.aclose()

    def _connect(self) -> httpx.AsyncClient:
        import httpx

        self._client = httpx.AsyncClient(
            headers={
                "content-type": "application/json",
                "accept": "text/event-stream",
                "accept-encoding": "identity",
                **self.auth_headers(),
                **self._headers,
            },
            timeout=httpx.Timeout(self._timeout, connect=_CONNECT_TIMEOUT, pool=_CONNECT_TIMEOUT),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=20.0),
        )
        return self._client

    async def _refusal(self, response: httpx.Response) -> ProviderError:
        """The error in a response that is not a stream."""
        import httpx

        body = b""
        try:
            async for piece in response.aiter_bytes():
                body += piece[: _ERROR_BODY - len(body)]
                if len(body) >= _ERROR_BODY:
                    break
        except httpx.HTTPError:
            pass
        if 200 <= response.status_code < 400:
            return faults.malformed(
                f"{self._name} answered HTTP {response.status_code} and no stream", hint="check the base URL"
            )
        failure = faults.failure_from_bytes(response.status_code, body, faults.retry_after(response.headers))
        return faults.provider_error(failure, name=self._name, key_variable=self.key_variable)

    def _unreachable(self, why: str, *, untrusted: bool = False) -> ProviderError:
        parts = urlsplit(self._base_url)
        port = "" if parts.port is None else f":{parts.port}"
        place = f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
        hint = (
            "name the authority's file in $SSL_CERT_FILE, or check the base URL" if untrusted else "check the base URL"
        )
        what = f"can't reach {self._name} at {place}: {why}"
        return ProviderError("unreachable", what, permanent=untrusted, hint=hint)

    def _timed_out(self) -> ProviderError:
        return ProviderError("timeout", f"{self._name} sent nothing for {self._timeout:g} s", permanent=False)

    def _clean(self, error: ProviderError, request: ModelRequest) -> ProviderError:
        """`error` without a key, or anything of the private replay data, in its message: servers echo requests."""
        secrets = [self._api_key or "", *(v for v in self._headers.values() if len(v) >= 8)]
        private = [*faults.private_strings(request.history)]
        private += faults.private_strings(request.about) if request.about is not None else ()
        message = faults.scrub(error.message, secrets, private)
        return ProviderError(
            error.kind, message, permanent=error.permanent, retry_after=error.retry_after, hint=error.hint
        )


def _is_untrusted(fault: BaseException | None) -> bool:
    """Whether the server's certificate is why: asking again changes nothing."""
    import ssl

    while fault is not None and not isinstance(fault, ssl.SSLCertVerificationError):
        fault = fault.__cause__ or fault.__context__
    return fault is not None


class _Bounded:
    """Stands for a response: its text as UTF-8, and never more than `MAX_EVENT` without an event."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = {"content-type": "text/event-stream"}
        self.pending = 0
        self._total = 0
        response.encoding = "utf-8"
        self._text = response.aiter_text()

    async def aiter_text(self) -> AsyncGenerator[str, None]:
        first = True
        async for text in self._text:
            self.pending += len(text)
            self._total += len(text)
            if self.pending > MAX_EVENT or self._total > MAX_STREAM:
                raise faults.malformed("the provider's stream has no end: it passed the bound on its size")
            yield text.removeprefix("\ufeff") if first else text
            first = False


async def _events(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """The decoded events of a response; a plain JSON answer comes as one event."""
    from httpx_sse import EventSource

    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    bounded = _Bounded(response)
    if kind == "application/json" or kind.startswith("text/html"):
        if kind.startswith("text/html"):
            raise faults.malformed("the provider answered with a web page", hint="check the base URL")
        text = "".join([piece async for piece in bounded.aiter_text()])
        event = decode_data(text)
        if event is not None:
            yield event
        return
    async with aclosing(EventSource(cast("httpx.Response", bounded)).aiter_sse()) as source:
        async for sse in source:
            bounded.pending = 0
            event = decode_data(sse.data)
            if event is not None:
                yield event


async def _drain(events: AsyncIterator[dict[str, Any]]) -> None:
    """Read to the end, so that the connection can be used again; give up soon where the end doesn't come."""
    import httpx

    try:
        async with asyncio.timeout(_DRAIN):
            async for _ in events:
                pass
    except (TimeoutError, httpx.HTTPError, ProviderError):
        pass


def _checked_url(url: str, name: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"provider {name}: the base URL is not an http or https URL", hint="set base_url")
    return url


def _checked_key(key: str | None, name: str) -> str | None:
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"provider {name}: the key has characters that no HTTP header can carry", hint="copy it anew")
    return key or None
