"""What a server tells of itself, as a real process: metrics, log lines, refused attempts, traces; no secrets."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.client.connect import connect
from counterfoil.errors import CounterfoilError
from counterfoil.events import AskOpened
from counterfoil.service.tokens import Tokens
from tests.client.world import until
from tests.support.loopback import serving
from tests.support.server import Server

CALL = {"tool": "Bash", "arguments": {"command": "echo NEVER-LOGGED"}}
SCRIPT = {"turns": [{"text": "NEVER-LOGGED", "calls": [CALL]}, {"text": "done"}]}


@pytest.fixture
def bearer(tmp_path: Path) -> str:
    return Tokens(tmp_path / "state").create("ada", "owner", now=0)[1]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made: list[Server] = []

    def begin(*more: str, **env: str) -> Server:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        made.append(Server(tmp_path, SCRIPT, *more))
        return made[-1]

    yield begin
    for server in made:
        server.end()


async def worked(url: str, bearer: str) -> dict[str, str]:
    """One run with one answer; then somebody without a token. The ids of it."""
    env = {"COUNTERFOIL_TOKEN": bearer}
    async with connect(url, env if bearer else {}) as client:
        session = (await client.create()).session_id
        await client.prompt(session, "NEVER-LOGGED")
        ask = (await until(client, session, AskOpened)).ask
        await client.answer(ask.ask_id, "deny", note="NEVER-LOGGED")
    return {"session_id": session, "ask_id": ask.ask_id, "tool_call_id": ask.tool_call_id}


@pytest.mark.parametrize("door", ["http", "grpc"])
async def test_log_lines_have_ids_and_refused_attempts_are_told(start: Any, bearer: str, door: str) -> None:
    server = start("--auth", "tokens", "--log-format", "json", "--log-level", "info")
    url = server.url if door == "http" else f"grpc://{server.grpc}"
    ids = await worked(url, bearer)
    guess = f"cft_{'0' * 16}_GUESSED-SECRET"
    with pytest.raises(CounterfoilError):
        await worked(url, guess)
    viewer_sees = await _refused_for_a_viewer(server, url, ids["session_id"])
    assert server.end(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in server.said if line.startswith("{")]
    requests = {(line["rpc"], line["code"]): line for line in lines if line["logger"] == "counterfoil.requests"}
    answered = requests["Approvals.Answer", "ok"]
    assert (answered["ask_id"], answered["principal"], answered["door"]) == (ids["ask_id"], "ada", door)
    assert requests["Runs.Prompt", "ok"]["session_id"] == ids["session_id"]
    refused = [line for line in lines if line["logger"] == "counterfoil.audit"]
    assert {(line["code"], line["rpc"]) for line in refused} >= {
        ("unauthenticated", "Sessions.Create"),
        ("forbidden", "Sessions.Delete"),
    }
    forbidden = next(line for line in refused if line["code"] == "forbidden")
    assert (forbidden["principal"], forbidden["role"], forbidden["session_id"]) == ("vic", "viewer", ids["session_id"])
    assert all(line["peer"] == "127.0.0.1" and line["level"] == "warning" for line in refused)
    whole = "\n".join(server.said)
    for secret in (bearer, bearer.rsplit("_", 1)[1], "GUESSED-SECRET", "NEVER-LOGGED", viewer_sees):
        assert secret not in whole


async def _refused_for_a_viewer(server: Server, url: str, session: str) -> str:
    """A viewer tries what it may not. Its token's secret."""
    _, token = Tokens(server.home / "state").create("vic", "viewer", owner="ada", now=0)
    async with connect(url, {"COUNTERFOIL_TOKEN": token}) as client:
        with pytest.raises(CounterfoilError, match="may not do this"):
            await client.delete(session)  # type: ignore[arg-type]
    return token.rsplit("_", 1)[1]


async def test_metrics_count_what_was_done_for_whoever_may_come_in(start: Any, bearer: str) -> None:
    server = start("--auth", "tokens")
    await worked(server.url, bearer)
    async with httpx.AsyncClient(base_url=server.url) as client:
        assert (await client.get("/metrics")).status_code == 401
        told = (await client.get("/metrics", headers={"Authorization": f"Bearer {bearer}"})).text
    assert 'counterfoil_requests_total{code="ok",door="http",rpc="Approvals.Answer"} 1.0' in told
    assert 'counterfoil_refused_total{code="unauthenticated",door="http"} 1.0' in told
    assert 'counterfoil_request_seconds_count{door="http",rpc="Runs.Prompt"} 1.0' in told
    assert "counterfoil_open_sessions 1.0" in told and "ses_" not in told, "no id is a label"


async def test_a_caller_who_comes_too_often_is_slowed(start: Any, bearer: str) -> None:
    server = start("--auth", "tokens", "--rate", "5")
    async with httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {bearer}"}) as client:
        answers = [await client.get("/v1/info") for _ in range(40)]
        late = next(answer for answer in answers if answer.status_code != 200)
        assert sum(answer.status_code == 200 for answer in answers) < 35
        assert (late.status_code, late.json()["code"]) == (429, "rate_limited") and late.headers["retry-after"]
        assert (await client.get("/healthz")).status_code == 200


async def test_traces_reach_a_collector(start: Any, tmp_path: Path) -> None:
    got = ExportTraceServiceRequest()

    async def collected(request: Request) -> Response:
        got.MergeFromString(await request.body())
        return Response()

    async with serving(Starlette(routes=[Route("/v1/traces", collected, methods=["POST"])])) as collector:
        server = start("--traces", OTEL_EXPORTER_OTLP_ENDPOINT=collector)
        ids = await worked(server.url, "")
        assert await asyncio.to_thread(server.end, signal.SIGTERM) == 0
    spans = [span for of in got.resource_spans for scope in of.scope_spans for span in scope.spans]
    assert {span.name for span in spans} >= {"ask", "execute_tool Bash", "chat m"}
    call = next(span for span in spans if span.name == "execute_tool Bash")
    named = {attribute.key: attribute.value.string_value for attribute in call.attributes}
    assert named["gen_ai.tool.call.id"] == ids["tool_call_id"]
    assert b"NEVER-LOGGED" not in got.SerializeToString()


async def test_docs_and_openapi_are_there(start: Any) -> None:
    server = start()
    async with httpx.AsyncClient(base_url=server.url) as client:
        docs = await client.get("/docs")
        assert "POST /v1/sessions/{session_id}/prompt" in docs.text and "script-src 'self'" in str(docs.headers)
        assert (await client.get("/openapi.json")).json()["openapi"].startswith("3.")
