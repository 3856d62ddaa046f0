"""Requests that the OpenAPI document allows, and that it doesn't: no failure of the server, documented errors only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from counterfoil.api.openapi import document
from tests.support.server import Server

pytestmark = [pytest.mark.slow]
schema = schemathesis.openapi.from_dict({**document(), "servers": [{"url": "http://127.0.0.1"}]})
EXAMPLES = 400 if os.environ.get("COUNTERFOIL_SOAK") else 25
STREAMS = ("/v1/asks/events", "/v1/sessions/{session_id}/events")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("schema")
    made = Server(home, {"turns": [{"calls": [{"tool": "Write", "arguments": {"file_path": "a", "content": "b"}}]}]})
    yield made
    assert made.process.poll() is None, "it still serves"
    made.end()
    assert not any("Traceback" in line for line in made.said), made.said


@pytest.fixture(scope="module")
def ids(server: Server) -> dict[str, str]:
    """Ids that exist: a session with an open ask."""
    with httpx.Client(base_url=server.url) as client:
        session = client.post("/v1/sessions", json={}).json()["session"]["sessionId"]
        client.post(f"/v1/sessions/{session}/prompt", json={"parts": [{"text": {"text": "go"}}]}).raise_for_status()
        while not (found := client.get(f"/v1/sessions/{session}/asks").json().get("asks", [])):
            pass
        ask = found[0]["ask"]
        return {"session_id": session, "ask_id": ask["askId"], "tool_call_id": ask["toolCallId"]}


@schema.exclude(path=list(STREAMS)).parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_request_gets_an_answer_or_a_documented_error(case: Any, server: Server) -> None:
    check(case, server)


@schema.exclude(path=list(STREAMS)).include(path_regex="session_id|ask_id").parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_so_does_one_about_what_exists(case: Any, server: Server, ids: dict[str, str]) -> None:
    if case.method == "DELETE":
        return
    for name, value in ids.items():
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = value
    check(case, server)


def check(case: Any, server: Server) -> None:
    try:
        response = case.call(base_url=server.url, timeout=20)
    except (UnicodeEncodeError, ValueError):
        return  # the client's own library can't send it
    assert response.status_code < 500, (response.status_code, response.text[:500])
    documented = case.operation.definition.raw["responses"]
    assert str(response.status_code) in documented, (response.status_code, case.method, case.formatted_path)
    case.validate_response(response, checks=[not_a_server_error, response_schema_conformance])
    if response.status_code != 200:
        kind = response.headers.get("content-type", [""])
        assert "application/problem+json" in str(kind), (response.status_code, response.text[:300])


def test_every_route_is_in_the_document() -> None:
    from counterfoil.api.routes import ROUTES

    assert {(r.method.lower(), r.path) for r in ROUTES} <= {
        (method, path) for path, methods in document()["paths"].items() for method in methods
    }
