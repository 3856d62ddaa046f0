from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from counterfoil.errors import ToolFailure
from counterfoil.events import text_of
from counterfoil.tools import ToolOptions
from counterfoil.tools.addresses import refusal
from counterfoil.tools.base import SessionState
from counterfoil.tools.page import readable
from counterfoil.tools.web_fetch import WebFetch
from counterfoil.tools.workspace import Workspace
from tests.tools.support import Bench

HTML = (
    b"<!doctype html><title>T</title><script>evil()</script><h1>Head</h1><p>Some <b>bold</b> "
    b"<a href='/x'>link</a> &eacute;</p>"
)
PAGES: dict[str, bytes] = {
    "/html": b"200 OK\r\ncontent-type: text/html; charset=utf-8\r\n\r\n" + HTML,
    "/text": b"200 OK\r\ncontent-type: text/plain\r\n\r\n<b>as it is</b>\x1b[31m",
    "/zip": b"200 OK\r\ncontent-type: application/zip\r\n\r\nPK",
    "/nul": b"200 OK\r\ncontent-type: text/plain\r\n\r\na\0b",
    "/missing": b"404 Not Found\r\ncontent-type: text/plain\r\n\r\nnothing here",
    "/here": b"302 Found\r\nlocation: /text\r\n\r\n",
    "/elsewhere": b"302 Found\r\nlocation: http://other.example/x\r\n\r\n",
    "/metadata": b"302 Found\r\nlocation: http://169.254.169.254/latest\r\n\r\n",
    "/loop": b"302 Found\r\nlocation: /loop\r\n\r\n",
    "/big": b"200 OK\r\ncontent-type: text/plain\r\n\r\n" + b"x" * (11 * 1024 * 1024),
    "/gzip": b"200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"packed"),
}


class Site:
    """A small web server, and the host names that it was asked for."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.hosts += [line[6:] for line in head.split("\r\n") if line.lower().startswith("host: ")]
        try:
            writer.write(b"HTTP/1.1 " + PAGES[head.split(" ")[1]].replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()


async def fetch(folder: Path, url: str, *, private: bool = True, addresses: tuple[str, ...] = ("127.0.0.1",)) -> str:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    session = SessionState(Workspace(folder), ToolOptions(allow_private=private))
    tool = WebFetch(session, resolve)
    ctx = Bench(folder).ctx()
    arguments = {"url": url, "prompt": "the gist"}
    tool.targets(ctx, arguments)
    return text_of((await tool.run(ctx, arguments)).parts)


async def test_a_page_comes_as_markdown(tmp_path: Path, site: Site) -> None:
    text = await fetch(tmp_path, f"http://site.test:{site.port}/html")
    assert "# Head" in text
    assert "Some **bold** [link](/x) é" in text
    assert "evil" not in text
    assert "Wanted: the gist" in text
    assert site.hosts == [f"site.test:{site.port}"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/text", "<b>as it is</b>"),
        ("/here", "<b>as it is</b>"),
        ("/missing", "HTTP 404"),
        ("/elsewhere", "not followed: http://other.example/x"),
        ("/metadata", "not followed: http://169.254.169.254/latest"),
        ("/big", "only the first 10485760 bytes"),
        ("/gzip", "packed"),
    ],
)
async def test_what_a_server_says_is_told(tmp_path: Path, site: Site, path: str, words: str) -> None:
    text = await fetch(tmp_path, f"http://site.test:{site.port}{path}")
    assert words in text
    assert "\x1b" not in text
    assert len(text) < 256 * 1024


@pytest.mark.parametrize(("path", "words"), [("/zip", "not text"), ("/nul", "binary"), ("/loop", "redirects")])
async def test_what_can_not_be_read_is_refused(tmp_path: Path, site: Site, path: str, words: str) -> None:
    with pytest.raises(ToolFailure, match=words):
        await fetch(tmp_path, f"http://site.test:{site.port}{path}")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]
)
async def test_private_addresses_are_refused_unless_allowed(tmp_path: Path, site: Site, address: str) -> None:
    with pytest.raises(ToolFailure, match="private"):
        await fetch(tmp_path, f"http://site.test:{site.port}/text", private=False, addresses=("8.8.8.8", address))
    assert site.hosts == []
    assert refusal(ipaddress.ip_address(address), allow_private=True) is None


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.1.1", "fd00:ec2::254"])
async def test_link_local_and_metadata_addresses_are_always_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ToolFailure, match="metadata"):
        await fetch(tmp_path, "http://site.test/", private=True, addresses=(address,))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "http://", "http://u:p@x/", "http://x:99999/", "x"])
async def test_only_plain_web_addresses_are_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        await fetch(tmp_path, url)
    assert caught.value.executed == "no"


def test_the_target_is_the_host(bench: Bench) -> None:
    tool = bench.tools.get("WebFetch")
    assert tool is not None
    assert tool.targets(bench.ctx(), {"url": "https://Bücher.Example:8443/x"}).domain == "xn--bcher-kva.example"


def test_deeply_nested_html_is_still_read() -> None:
    assert "deep" in readable(b"<div>" * 5000 + b"deep", "text/html")
