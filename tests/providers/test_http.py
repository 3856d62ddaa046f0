"""The shared HTTP base against a raw loopback server: streams, bounds, failures, secrets."""

from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx
import msgspec
import pytest

from counterfoil.errors import ConfigError, ProviderError
from counterfoil.events import Usage
from counterfoil.ports import ModelRequest, ModelTurn, Provider, StreamItem, TextChunk
from counterfoil.providers import faults, http, make_provider
from counterfoil.providers.http import HttpProvider, origin_of
from counterfoil.providers.openai_chat import OpenAIChat, assemble
from counterfoil.state.history import History
from tests.providers.wirekit import STREAMS, accepted, asked, events, http_reply, prompt, recorded, serving

KEY = "sk-canary-0123456789abcdef"
GOOD = "chat_p13_usage_and_comments"


async def drained(provider: Provider, request: ModelRequest | None = None) -> list[StreamItem]:
    """Everything that one request gives."""
    try:
        return [item async for item in provider.stream(request or asked())]
    finally:
        await provider.close()


def answered(*reply: bytes, request: ModelRequest | None = None, timeout: float = 5.0) -> list[StreamItem]:
    """Everything that a provider gives for one raw reply."""

    async def go() -> list[StreamItem]:
        async with serving(reply) as server:
            return await drained(OpenAIChat(base_url=server.url, api_key=KEY, timeout=timeout), request)

    return asyncio.run(go())


def failed(*reply: bytes, request: ModelRequest | None = None, timeout: float = 5.0) -> ProviderError:
    """The error that a provider gives for one raw reply."""
    with pytest.raises(ProviderError) as caught:
        answered(*reply, request=request, timeout=timeout)
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)
    return caught.value


def refused(status: str, body: bytes, headers: str = "") -> ProviderError:
    return failed(*http_reply(body, status=status, headers=headers, kind="application/json"))


# ---- streams ------------------------------------------------------------------------------------------------


def test_a_stream_gives_chunks_and_last_the_whole_turn() -> None:
    text, turn = answered(*http_reply(recorded(GOOD)))
    assert text == TextChunk(text="Hi")
    assert isinstance(turn, ModelTurn) and turn == assemble(events(GOOD))
    assert turn.usage.input_tokens == 120


def test_recorded_streams_give_the_same_turn_in_whatever_pieces_they_arrive() -> None:
    chance = random.Random(7)
    for path in sorted(STREAMS.glob("chat_p[1239]*.sse")):
        body = path.read_bytes().replace(b"\n", chance.choice([b"\n", b"\r\n", b"\r"]))
        if path.stem == "chat_p10_cut":
            continue
        cuts = sorted(chance.sample(range(len(body)), 9))
        pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        turn = answered(http_reply(body)[0], *pieces)[-1]
        assert turn == assemble(events(path.stem)), path.stem


def test_only_cr_and_lf_end_a_line() -> None:
    turn = answered(*http_reply(recorded("chat_unicode_line_separators")))[-1]
    assert isinstance(turn, ModelTurn) and turn.text == "a\u2028b\u2029c\u0085d"


def test_a_plain_json_answer_is_taken() -> None:
    body = (STREAMS / "chat_whole_answer.json").read_bytes()
    turn = answered(*http_reply(body, kind="application/json"))[-1]
    assert isinstance(turn, ModelTurn) and len(turn.calls) == 2


def test_one_connection_serves_many_requests_and_carries_the_key() -> None:
    async def go() -> None:
        async with serving(http_reply(recorded(GOOD)), http_reply(recorded(GOOD))) as server:
            provider = OpenAIChat(base_url=server.url, api_key=KEY, headers={"x-team": "a"})
            for _ in range(2):
                assert [item async for item in provider.stream(asked())]
            await provider.close()
            assert server.connections == 1
            head, body = server.requests[1]
            assert head.startswith("POST /chat/completions HTTP/1.1")
            assert f"authorization: Bearer {KEY}" in head and "x-team: a" in head
            assert msgspec.json.decode(body)["messages"][0] == {"role": "system", "content": "Be brief."}

    asyncio.run(go())


def test_no_key_sends_no_authorization() -> None:
    async def go() -> None:
        async with serving(http_reply(recorded(GOOD))) as server:
            await drained(OpenAIChat(base_url=server.url))
            assert "authorization" not in server.requests[0][0].lower()

    asyncio.run(go())


def test_a_reader_that_stops_early_closes_the_stream() -> None:
    async def go() -> None:
        async with serving(http_reply(recorded("chat_text"), whole=False), hang=True) as server:
            provider = OpenAIChat(base_url=server.url)
            stream = provider.stream(asked())
            assert await anext(stream) == TextChunk(text="Hel")
            await stream.aclose()
            await provider.close()

    asyncio.run(go())


# ---- cuts, silence and bounds -------------------------------------------------------------------------------


def test_p10_a_cut_stream_is_an_error_that_may_be_tried_again() -> None:
    for whole in (True, False):
        error = failed(*http_reply(recorded("chat_p10_cut"), whole=whole))
        assert (error.kind, error.permanent) == ("stream_cut", False)


def test_broken_json_within_the_stream_is_a_cut() -> None:
    assert failed(*http_reply(recorded("chat_broken_json_inside"))).kind == "stream_cut"


def test_a_connection_lost_after_the_end_was_said_does_no_harm() -> None:
    turn = answered(*http_reply(recorded("chat_no_done_marker"), whole=False))[-1]
    assert isinstance(turn, ModelTurn) and turn.text == "Done."


def test_a_server_that_keeps_the_line_open_after_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_GRACE", 0.05)

    async def go() -> None:
        for name in ("chat_no_done_marker", "chat_text"):
            async with serving(http_reply(recorded(name), whole=False), hang=True) as server:
                items = await asyncio.wait_for(drained(OpenAIChat(base_url=server.url)), 3)
                assert isinstance(items[-1], ModelTurn)

    asyncio.run(go())


def test_silence_is_a_timeout() -> None:
    async def go() -> None:
        async with serving(http_reply(recorded("chat_p10_cut"), whole=False), hang=True) as server:
            with pytest.raises(ProviderError) as caught:
                await drained(OpenAIChat(base_url=server.url, timeout=0.1))
            assert (caught.value.kind, caught.value.permanent) == ("timeout", False)

    asyncio.run(go())


def test_an_endless_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_EVENT", 10_000)
    assert failed(*http_reply(b"data: " + b"x" * 20_000)).kind == "malformed"


def test_an_endless_stream_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_STREAM", 10_000)
    assert failed(*http_reply(b'data: {"choices":[]}\n\n' * 1_000)).kind == "malformed"


def test_nobody_there_is_unreachable() -> None:
    async def go() -> None:
        async with serving() as server:
            url = server.url
        with pytest.raises(ProviderError) as caught:
            await drained(OpenAIChat(base_url=url))
        assert (caught.value.kind, caught.value.permanent) == ("unreachable", False)
        assert "base URL" in caught.value.hint

    asyncio.run(go())


def test_a_certificate_that_is_not_trusted_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: httpx.AsyncClient, request: httpx.Request, **_: Any) -> httpx.Response:
        try:
            raise ssl.SSLCertVerificationError("self-signed certificate")
        except ssl.SSLCertVerificationError as fault:
            raise httpx.ConnectError("self-signed certificate") from fault

    async def go() -> None:
        with pytest.raises(ProviderError) as caught:
            await drained(OpenAIChat(base_url="https://127.0.0.1:1"))
        assert (caught.value.kind, caught.value.permanent) == ("unreachable", True)
        assert "SSL_CERT_FILE" in caught.value.hint

    monkeypatch.setattr(httpx.AsyncClient, "send", refuse)
    asyncio.run(go())


def test_a_web_page_is_no_stream() -> None:
    error = failed(*http_reply(b"<html>log in</html>", kind="text/html; charset=utf-8"))
    assert (error.kind, error.permanent) == ("malformed", True) and "base URL" in error.hint


# ---- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind", "permanent"),
    [
        ("401 Unauthorized", b'{"error":{"message":"Incorrect API key provided"}}', "auth", True),
        ("403 Forbidden", b"{}", "auth", True),
        ("404 Not Found", b'{"error":{"code":"model_not_found","message":"no model"}}', "not_found", True),
        ("429 Too Many", b'{"error":{"code":"rate_limit_exceeded","message":"slow"}}', "rate_limited", False),
        ("429 Too Many", b'{"error":{"code":"insufficient_quota","message":"pay"}}', "rate_limited", True),
        ("402 Payment Required", b'{"error":{"message":"Insufficient Balance"}}', "rate_limited", True),
        ("400 Bad Request", b'{"error":{"code":"context_length_exceeded","message":"x"}}', "context_length", True),
        ("400 Bad Request", b'{"error":{"message":"prompt is too long: 9 > 8"}}', "context_length", True),
        ("400 Bad Request", b'{"message":"This model\'s maximum context length is 8"}', "context_length", True),
        ("413 Too Large", b"", "context_length", True),
        ("400 Bad Request", b'{"error":"unknown field"}', "bad_request", True),
        ("500 Oops", b"<html>", "overloaded", False),
        ("503 Busy", b"not json", "overloaded", False),
        ("529 Busy", b'{"type":"error","error":{"type":"overloaded_error"}}', "overloaded", False),
        ("408 Slow", b"", "timeout", False),
        ("302 Found", b"", "malformed", True),
    ],
)
def test_a_refusal_has_a_kind(status: str, body: bytes, kind: str, permanent: bool) -> None:
    error = refused(status, body)
    assert (error.kind, error.permanent) == (kind, permanent)
    assert status[:3] in error.message


def test_a_wrong_key_says_which_variable_to_set() -> None:
    assert "OPENAI_API_KEY" in refused("401 Unauthorized", b"{}").hint


def test_the_wish_to_wait_is_passed_on() -> None:
    assert refused("429 Too Many", b"{}", "retry-after: 7\r\n").retry_after == 7.0
    assert refused("503 Busy", b"{}", "retry-after-ms: 250\r\nretry-after: 9\r\n").retry_after == 0.25
    assert refused("503 Busy", b"{}").retry_after is None


def test_a_wish_to_wait_may_be_a_date_and_nonsense_is_none() -> None:
    now = 1_760_000_000.0
    date = format_datetime(datetime.fromtimestamp(now + 30, UTC), usegmt=True)
    assert faults.retry_after({"retry-after": date}, now) == 30.0
    assert faults.retry_after({"retry-after": date}, now + 60) == 0.0
    for nonsense in ("soon", "nan", "inf", ""):
        assert faults.retry_after({"retry-after": nonsense}, now) is None
    assert faults.retry_after({"retry-after": "-3"}, now) == 0.0


# ---- secrets ------------------------------------------------------------------------------------------------


def test_a_key_that_the_provider_repeats_is_not_shown() -> None:
    body = f'{{"error":{{"message":"bad key {KEY} or sk-ab***yz"}}}}'.encode()
    assert refused("401 Unauthorized", body).message == "openai_chat answered HTTP 401: bad key [key] or [key]"


def test_pairing_ids_that_the_provider_repeats_are_not_shown() -> None:
    history = History([prompt("x"), accepted(assemble(events("chat_p7_odd_ids")), "o", 2)])
    history.append(accepted(assemble(events("chat_p1_shared_index")), "o", 3))
    long, odd = "x" * 200, r"id \"two\" with\tspaces \\ and é"
    body = f'{{"error":{{"message":"no output for {long}, {odd}, \'a1\', rs_68af0b1c2d3e and call_AbC123xyz in a1b"}}}}'
    reply = http_reply(body.encode(), status="400 Bad Request", kind="application/json")
    error = failed(*reply, request=asked(history))
    assert error.message.endswith("no output for [id], [id], '[id]', [id] and [id] in a1b")


def test_a_long_message_is_bounded() -> None:
    body = msgspec.json.encode({"error": {"message": "word " * 1000}})
    assert len(refused("400 Bad Request", body).message) <= faults.MESSAGE_BOUND


def test_a_repr_shows_no_key() -> None:
    provider = OpenAIChat(api_key=KEY, headers={"x-key": KEY})
    assert repr(provider) == "OpenAIChat(name='openai_chat', origin='openai_chat@https://api.openai.com')"


@pytest.mark.parametrize("key", ["sk-…", "sk\nx"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIChat(api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://x:99999"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        OpenAIChat(base_url=url)


# ---- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://api.openai.com/v1", "w@https://api.openai.com"),
        ("https://me:pw@host.example:8443/v1", "w@https://host.example:8443"),
        ("http://127.0.0.1:4010/v1", "w@http://127.0.0.1"),
        ("http://localhost:11434", "w@http://localhost"),
        ("http://[::1]:80/", "w@http://[::1]"),
    ],
)
def test_an_origin_is_wire_and_host(url: str, origin: str) -> None:
    assert origin_of("w", url) == origin


def test_the_factory_makes_each_adapter_and_knows_no_other() -> None:
    for wire in ("openai_chat", "openai"):
        made = make_provider(wire, name="mine", api_key=KEY)
        assert isinstance(made, HttpProvider) and made.name == "mine" and made.origin.startswith(wire + "@https://")
    with pytest.raises(ConfigError):
        make_provider("telepathy")


def test_making_an_adapter_loads_no_http_library() -> None:
    code = (
        "import sys; from counterfoil.providers import make_provider; make_provider('openai'); "
        "make_provider('openai_chat'); print(sorted({'httpx', 'httpx_sse'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_usage_of_one_request_counts_one() -> None:
    turn = answered(*http_reply(recorded("chat_no_done_marker")))[-1]
    assert isinstance(turn, ModelTurn) and turn.usage == Usage(requests=1)
