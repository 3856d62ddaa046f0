"""The tool that reads a web page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools import addresses
from counterfoil.tools.base import BuiltinTool, SessionState, in_thread, text_output
from counterfoil.tools.page import readable

if TYPE_CHECKING:
    import httpx

SIZE_LIMIT = 10 * 1024 * 1024
SECONDS = 30.0
REDIRECTS = 5
_HEADERS = {"User-Agent": "counterfoil", "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"}
Resolve = Callable[[str, int], Awaitable[list[str]]]


class WebFetchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What WebFetch takes."""

    url: Annotated[str, Meta(description="An http or https address.", max_length=8192)]
    prompt: Annotated[str | None, Meta(description="What you want to know from the page.")] = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered. `elsewhere`: it sent us to another host."""

    url: str
    status: int
    media_type: str = ""
    charset: str | None = None
    data: bytes = b""
    cut: bool = False
    elsewhere: str | None = None


class WebFetch(BuiltinTool[WebFetchArguments]):
    """Fetch a web page as text. A redirect to another host is told and not followed."""

    name = "WebFetch"
    arguments = WebFetchArguments
    read_only = True
    timeout = 60.0

    def __init__(self, session: SessionState, resolve: Resolve = addresses.resolve) -> None:
        super().__init__(session)
        self._resolve = resolve

    def touches(self, ctx: ToolContext, args: WebFetchArguments) -> Targets:
        """The host."""
        return Targets(domain=_parsed(args.url)[1])

    async def call(self, ctx: ToolContext, args: WebFetchArguments) -> ToolOutput:
        """Fetch it."""
        import httpx

        try:
            async with asyncio.timeout(SECONDS), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
                page = await self._follow(client, args.url)
        except TimeoutError as fault:
            raise ToolFailure(f"no whole answer within {SECONDS:g} s", executed="unknown") from fault
        except httpx.HTTPError as fault:
            raise ToolFailure(f"the page could not be fetched: {fault or type(fault).__name__}") from fault
        return await in_thread(lambda stop: _output(page, args.prompt))

    async def _follow(self, client: httpx.AsyncClient, url: str) -> Page:
        host = _parsed(url)[1]
        for _ in range(REDIRECTS + 1):
            page, location = await self._get(client, url)
            if location is None:
                return page
            target = urljoin(url, location)
            if _parsed(target)[1] != host or (url.startswith("https:") and not target.startswith("https:")):
                return msgspec.structs.replace(page, elsewhere=target)
            url = target
        raise ToolFailure(f"more than {REDIRECTS} redirects")

    async def _get(self, client: httpx.AsyncClient, url: str) -> tuple[Page, str | None]:
        """One request, to an address that was resolved and checked here, and to no other."""
        import httpx

        _, host, port = _parsed(url)
        try:
            found = await self._resolve(host, port)
        except OSError as fault:
            raise ToolFailure(f"{host} is not known: {fault.strerror or fault}") from fault
        addresses.check(host, found, allow_private=self.session.options.allow_private)
        original = httpx.URL(url)
        for at, address in enumerate(found):
            request = client.build_request(
                "GET",
                original.copy_with(host=address, username=None, password=None, fragment=None),
                headers={**_HEADERS, "Host": original.netloc.decode()},
                extensions={"sni_hostname": host},
            )
            try:
                return await _answer(client, request, url)
            except httpx.ConnectError:
                if at == len(found) - 1:
                    raise
        raise ToolFailure(f"{host} has no address")


async def _answer(client: httpx.AsyncClient, request: httpx.Request, url: str) -> tuple[Page, str | None]:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        if response.is_redirect:
            return Page(url=url, status=response.status_code), response.headers.get("location", "")
        data, cut = bytearray(), False
        async for chunk in response.aiter_bytes(65536):
            data += chunk
            if len(data) > SIZE_LIMIT:
                del data[SIZE_LIMIT:]
                cut = True
                break
        media_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
        page = Page(
            url=url,
            status=response.status_code,
            media_type=media_type,
            charset=response.charset_encoding,
            data=bytes(data),
            cut=cut,
        )
        return page, None
    finally:
        await response.aclose()


_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
"""Nothing that a program behind this one may read as another host: no `%69`, no blanks."""


def _parsed(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises `ToolFailure` for what is no plain web address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as fault:
        raise ToolFailure(f"not an address: {fault}", executed="no") from fault
    if parts.scheme not in ("http", "https") or not host:
        raise ToolFailure("only http and https addresses can be fetched", executed="no")
    if parts.username or parts.password:
        raise ToolFailure("the address holds a user name or password", executed="no", hint="leave them out")
    try:
        ascii_host = host if ":" in host else host.encode("idna").decode().lower().rstrip(".")
    except UnicodeError as fault:
        raise ToolFailure(f"not a host: {host!r}", executed="no") from fault
    if ":" not in ascii_host and not _HOST.fullmatch(ascii_host):
        raise ToolFailure(f"not a host: {host!r}", executed="no", hint="write its letters plainly")
    return parts.scheme, ascii_host, port or (443 if parts.scheme == "https" else 80)


def _output(page: Page, prompt: str | None) -> ToolOutput:
    head = [f"{page.url} (HTTP {page.status})"]
    if prompt:
        head.append(f"Wanted: {prompt}")
    if page.elsewhere is not None:
        head.append(f"It redirects to another place, which was not followed: {page.elsewhere}")
        return text_output("\n".join(head))
    if page.cut:
        head.append(f"[only the first {SIZE_LIMIT} bytes]")
    text = readable(page.data, page.media_type, page.charset)
    return text_output("\n".join([*head, "", text or "[empty]"]), is_error=page.status >= 400)


__all__ = ["WebFetch", "WebFetchArguments"]
