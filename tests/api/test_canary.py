"""What is private to a provider is seen on no route, in no rpc, on no stream, on no page and in no log of a server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import json_format, message_factory

from counterfoil.api.door import Door
from counterfoil.api.grpc import GrpcDoor
from counterfoil.api.http import http_app
from counterfoil.api.routes import ROUTES
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.client.connect import connect
from counterfoil.config import Flags, load
from counterfoil.events import AskOpened, Envelope, Principal, RunFinished
from counterfoil.service.access import Caller
from counterfoil.service.application import Application
from counterfoil.service.local import LocalService
from tests.support.loopback import serving
from tests.support.model_server import ModelServer

KEY = "CANARY-key-0123456789"
ECHO = f"bad key {KEY} for call CANARY-pairing-0-0"
GLOB = {"tool": "Glob", "arguments": {"pattern": "*"}}
WRITE = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}}
SCRIPT: dict[str, Any] = {
    "pairing_prefix": "CANARY-pairing-",
    "turns": [
        {"text": "Let me look.", "reasoning": "Hidden.", "calls": [GLOB, GLOB]},
        {"attempts": [{"error": {"kind": "overloaded", "message": ECHO, "retry_after": 0.01}}, {"calls": [WRITE]}]},
        {"text": "Done."},
        {"error": {"kind": "auth", "status": 401, "message": ECHO, "permanent": True}},
    ],
}


def config(wire: str, url: str) -> str:
    return f'[providers.fake]\nwire = "{wire}"\nbase_url = "{url}"\napi_key_env = "FAKE_KEY"\n'


@pytest.mark.parametrize("wire", ["openai_chat", "openai", "anthropic"])
async def test_no_door_shows_what_is_private_to_a_provider(
    wire: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "w").mkdir()
    (tmp_path / ".config" / "counterfoil").mkdir(parents=True)
    seen: dict[str, str] = {}
    async with contextlib.AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer(SCRIPT, require_key=KEY, count="answers"))
        file = tmp_path / ".config" / "counterfoil" / "config.toml"
        file.write_text(config(wire, model.base_url))
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "FAKE_KEY": KEY}
        flags = Flags(state_dir=str(tmp_path / "state"), provider="fake", model="m")
        local = LocalService(load(tmp_path / "w", env, flags), env)
        stack.push_async_callback(local.close)
        app = Application(local, tmp_path / "w")
        stack.push_async_callback(app.close, 0)
        door = Door(local=Caller(principal=Principal(kind="local", name="me")))
        url = await stack.enter_async_context(serving(http_app(app, door)))
        grpc_door = GrpcDoor(app, door)
        port = await grpc_door.start("127.0.0.1:0")
        stack.push_async_callback(grpc_door.stop, 0)
        ids = await lived(url, f"grpc://127.0.0.1:{port}", seen)
        await over_http(url, ids, seen)
        await over_grpc(f"127.0.0.1:{port}", ids, seen)
        assert any(b"CANARY-pairing-" in request.raw for request in model.requests), "the provider got its ids back"
        assert not model.refusals
    seen["log"] = caplog.text
    assert len(seen) > 60 and all(seen.values()), [name for name, text in seen.items() if not text]
    leaks = [
        f"{where}: …{text[max(0, at - 100) : at + 60]}"
        for where, text in seen.items()
        if (at := text.find("CANARY")) >= 0
    ]
    assert not leaks


async def lived(url: str, grpc_url: str, seen: dict[str, str]) -> dict[str, str]:
    """Two runs, watched over both doors and the page while they go on, with an answer between. The ids of it."""
    ids: dict[str, str] = {}
    async with connect(url, {}) as client, connect(grpc_url, {}) as other, httpx.AsyncClient(base_url=url) as raw:
        session = ids["session_id"] = (await client.create(title="watched")).session_id
        told: dict[str, list[str]] = {
            "live http": [],
            "live grpc": [],
            "live sse": [],
            "live page": [],
            "live asks": [],
        }

        async def follow(name: str, one: Any) -> None:
            async with contextlib.aclosing(one.watch(session)) as frames:
                async for frame in frames:
                    told[name].append(repr(frame))
                    if isinstance(frame, Envelope) and isinstance(frame.event, AskOpened) and name == "live http":
                        ask = frame.event.ask
                        ids["ask_id"], ids["tool_call_id"] = ask.ask_id, ask.tool_call_id
                        seen["open ask"] = (await raw.get(f"/v1/asks/{ask.ask_id}")).text
                        seen["ask on a page"] = (await raw.get("/ui")).text
                        await client.answer(ask.ask_id, "allow")

        async def bytes_of(name: str, path: str) -> None:
            async with raw.stream("GET", path, timeout=None) as response:
                async for text in response.aiter_text():
                    told[name].append(text)

        tasks = [
            asyncio.ensure_future(follow("live http", client)),
            asyncio.ensure_future(follow("live grpc", other)),
            asyncio.ensure_future(bytes_of("live sse", f"/v1/sessions/{session}/events")),
            asyncio.ensure_future(bytes_of("live page", f"/ui/sessions/{session}/events")),
            asyncio.ensure_future(bytes_of("live asks", "/v1/asks/events")),
        ]
        for stop in ("end_turn", "provider_error"):
            await client.prompt(session, "go")
            await ended(other, session, stop)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    seen |= {name: "".join(texts) for name, texts in told.items()}
    return ids


async def ended(client: Any, session: Any, stop: str) -> None:
    async with asyncio.timeout(30), contextlib.aclosing(client.watch(session)) as frames:
        async for frame in frames:
            if isinstance(frame, Envelope) and isinstance(frame.event, RunFinished) and frame.event.stop_reason == stop:
                return


async def over_http(url: str, ids: dict[str, str], seen: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        bodies = {"Runs.Prompt": {"parts": [{"text": {"text": "again"}}]}, "Sessions.SetMode": {"mode": "plan"}}
        paths = [(r.method, r.path, bodies.get(r.rpc, {})) for r in ROUTES if r.rpc != "Sessions.Delete"]
        more = ("/openapi.json", "/docs", "/metrics", "/healthz", "/readyz", "/ui", "/ui/sessions", "/ui/asks")
        paths += [("GET", path, {}) for path in more]
        paths += [("GET", "/v1/sessions/{session_id}/export", {}), ("GET", "/ui/sessions/{session_id}?all=1", {})]
        for method, path, fields in paths:
            place = path.format(**({"review_id": "rev_x"} | ids))
            answer = await client.request(method, place, json=fields if method == "POST" else None)
            seen[f"{method} {path}"] = answer.text + json.dumps(dict(answer.headers))


async def over_grpc(target: str, ids: dict[str, str], seen: dict[str, str]) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        for service in pb.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                name = f"{service.name}.{method.name}"
                if name not in ("Sessions.Delete", "Events.WatchAll", "Runs.Converse"):
                    seen[name] = await called(channel, service.full_name, method, ids)
        converse: Any = channel.stream_stream(
            "/counterfoil.v1.Runs/Converse",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=pb.ConverseResponse.FromString,
        )
        said = iter([pb.ConverseRequest(begin=pb.WatchRequest(session_id=ids["session_id"]))])
        running = converse(said)
        seen["Runs.Converse"] = "".join([repr(await running.read()) for _ in range(20)])
        running.cancel()


async def called(channel: Any, service: str, method: Any, ids: dict[str, str]) -> str:
    """What an rpc answers, or how it refuses: message, detail and metadata."""
    request = message_factory.GetMessageClass(method.input_type)()
    for name, value in ids.items():
        if name in request.DESCRIPTOR.fields_by_name:
            setattr(request, name, value)
    response = message_factory.GetMessageClass(method.output_type)
    codec = {"request_serializer": lambda m: m.SerializeToString(), "response_deserializer": response.FromString}
    try:
        if not method.server_streaming:
            answer = await channel.unary_unary(f"/{service}/{method.name}", **codec)(request, timeout=20)
            return repr(json_format.MessageToDict(answer)) or "{}"
        stream, found = channel.unary_stream(f"/{service}/{method.name}", **codec)(request, timeout=20), ""
        async for message in stream:
            found += repr(message)
            if "caught_up" in found:
                stream.cancel()
                break
        return found
    except grpc.aio.AioRpcError as fault:
        return f"{fault.code()} {fault.details()} {fault.trailing_metadata()}"
