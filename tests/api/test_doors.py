"""Both doors over one application: the same answers, the same errors, and nobody who may not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import json_format

from counterfoil.api.routes import ROUTES
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.api.v1 import services_pb2_grpc as stubs
from tests.api.conftest import Served

GO = {"parts": [{"text": {"text": "go"}}]}


async def sse(client: httpx.AsyncClient, path: str, **headers: str) -> Any:
    """The events of a stream: (id, name, data)."""
    async with client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            elif "event" in fields:
                yield fields.get("id"), fields["event"], json.loads(fields["data"])
                fields = {}


async def until(client: httpx.AsyncClient, session: str, kind: str) -> Any:
    async with asyncio.timeout(15):
        async for _, name, data in sse(client, f"/v1/sessions/{session}/events"):
            if name == "event" and kind in data:
                return data[kind]
    raise AssertionError("the stream ended")


async def asked(client: httpx.AsyncClient) -> tuple[str, Any]:
    """A session of the client's own with an open ask."""
    session = (await client.post("/v1/sessions", json={})).json()["session"]["sessionId"]
    started = await client.post(f"/v1/sessions/{session}/prompt", json=GO)
    assert started.json()["runId"].startswith("run_")
    return session, (await until(client, session, "askOpened"))["ask"]


async def test_a_session_over_http(served: Served) -> None:
    async with served.client() as client:
        session, ask = await asked(client)
        assert json.loads(ask["argumentsJson"]) == {"file_path": "a.txt", "content": "x"}
        (listed,) = (await client.get("/v1/asks")).json()["asks"]
        assert listed["ask"] == ask
        answered = await client.post(f"/v1/asks/{ask['askId']}/answer", json={"verdict": "allow"})
        assert answered.json()["receipt"]["decidedBy"] == {"kind": "user", "name": "ada"}
        again = await client.post(f"/v1/asks/{ask['askId']}/answer", json={"verdict": "deny"})
        assert (again.status_code, again.json()["code"]) == (409, "ask_settled")
        assert again.json()["receipt"] == answered.json()["receipt"]
        assert again.headers["content-type"] == "application/problem+json"
        end = await until(client, session, "runFinished")
        assert end["stopReason"] == "end_turn"
        call = (await client.get(f"/v1/sessions/{session}/calls/{ask['toolCallId']}")).json()["events"]
        assert "callFinished" in call[-1]
        verified = (await client.get(f"/v1/sessions/{session}/verify")).json()
        assert verified["intact"] and int(verified["events"]) > 8


async def test_the_same_session_over_grpc(served: Served) -> None:
    who = {"metadata": served.metadata()}
    async with served.channel() as channel:
        sessions, runs = stubs.SessionsStub(channel), stubs.RunsStub(channel)
        approvals, streams = stubs.ApprovalsStub(channel), stubs.EventsStub(channel)
        session = (await sessions.Create(pb.CreateRequest(), **who)).session.session_id
        prompt = json_format.ParseDict(GO | {"session_id": session}, pb.PromptRequest())
        await runs.Prompt(prompt, **who)
        ask = None
        async for frame in streams.Watch(pb.WatchRequest(session_id=session), **who):
            if frame.event.WhichOneof("event") == "ask_opened":
                ask = frame.event.ask_opened.ask
                answer = pb.AnswerRequest(ask_id=ask.ask_id, verdict="allow")
                receipt = (await approvals.Answer(answer, **who)).receipt
                assert receipt.decided_by.name == "ada" and receipt.tool_call_id == ask.tool_call_id
            if frame.event.WhichOneof("event") == "run_finished":
                assert frame.event.run_finished.stop_reason == "end_turn"
                break
        assert ask is not None
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await approvals.Answer(pb.AnswerRequest(ask_id=ask.ask_id, verdict="deny"), **who)
        assert fault.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        sent = dict(fault.value.trailing_metadata() or ())["counterfoil-error-bin"]
        assert isinstance(sent, bytes) and pb.ErrorDetail.FromString(sent).code == "ask_settled"
        chunks = [c.chunk async for c in sessions.Export(pb.ExportRequest(session_id=session), **who)]
        kinds = [json.loads(line)["event"]["kind"] for line in b"".join(chunks).splitlines()]
        assert kinds[0] == "session.created" and kinds[-1] == "run.finished"


async def test_a_conversation_in_one_stream(served: Served) -> None:
    async with served.channel() as channel, served.client() as client:
        session = (await client.post("/v1/sessions", json={})).json()["session"]["sessionId"]
        talk = stubs.RunsStub(channel).Converse(metadata=served.metadata())
        await talk.write(pb.ConverseRequest(begin=pb.WatchRequest(session_id=session)))
        await talk.write(pb.ConverseRequest(steer=pb.SteerRequest(session_id=session, text="nobody listens")))
        prompt = json_format.ParseDict(GO | {"session_id": session}, pb.PromptRequest())
        await talk.write(pb.ConverseRequest(prompt=prompt))
        refused = False
        async with asyncio.timeout(15):
            async for said in talk:
                refused |= said.WhichOneof("frame") == "refused"
                event = said.watched.event
                if event.WhichOneof("event") == "ask_opened":
                    answer = pb.AnswerRequest(ask_id=event.ask_opened.ask.ask_id, verdict="deny", note="no")
                    await talk.write(pb.ConverseRequest(answer=answer))
                if event.WhichOneof("event") == "run_finished":
                    break
        assert refused
        talk.cancel()


async def test_health_reflection_and_the_document(served: Served) -> None:
    async with served.client(None) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).status_code == 200
        paths = (await client.get("/openapi.json")).json()["paths"]
    assert {route.path for route in ROUTES} <= set(paths)
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async with served.channel() as channel:
        health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())  # type: ignore[attr-defined]
        assert health.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_stream_that_breaks_goes_on_after_its_last_event(served: Served) -> None:
    async with served.client() as client:
        session, ask = await asked(client)
        await client.post(f"/v1/asks/{ask['askId']}/answer", json={"verdict": "allow"})
        await until(client, session, "runFinished")
        whole = [int(i) async for i, name, _ in _all(client, session) if i]
        for cut in range(1, len(whole), 3):
            rest = [int(i) async for i, _, _ in _all(client, session, **{"Last-Event-ID": str(whole[cut - 1])}) if i]
            assert whole[:cut] + rest == whole


async def _all(client: httpx.AsyncClient, session: str, **headers: str) -> Any:
    async for found in sse(client, f"/v1/sessions/{session}/events", **headers):
        yield found
        if found[1] == "caught_up":
            return


async def test_no_door_tells_a_providers_pairing_id(served: Served) -> None:
    told = ""
    async with served.client() as client:
        session, ask = await asked(client)
        await client.post(f"/v1/asks/{ask['askId']}/answer", json={"verdict": "allow"})
        await until(client, session, "runFinished")
        async for _, _, data in _all(client, session):
            told += json.dumps(data)
        for path in ("", "/transcript", "/asks", "/reviews", "/grants", f"/calls/{ask['toolCallId']}", "/verify"):
            told += (await client.get(f"/v1/sessions/{session}{path}")).text
    async with served.channel() as channel:
        request = pb.GetTranscriptRequest(session_id=session)
        told += str(await stubs.TranscriptsStub(channel).GetTranscript(request, metadata=served.metadata()))
        export = stubs.SessionsStub(channel).Export(pb.ExportRequest(session_id=session), metadata=served.metadata())
        told += "".join([chunk.chunk.decode() async for chunk in export])
    assert ask["toolCallId"] in told and "PAIRING-CANARY" not in told


# ---- who may, and what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer cft_x_y", "Basic YTpi", "Bearer " + "x" * 5_000])
async def test_nobody_comes_in_without_a_token(served: Served, authorization: str | None) -> None:
    async with served.client() as client:
        session, ask = await asked(client)
    headers = {} if authorization is None else {"Authorization": authorization}
    async with httpx.AsyncClient(base_url=served.url, headers=headers) as stranger:
        for route in ROUTES:
            path = route.path.format(session_id=session, ask_id=ask["askId"], review_id="rev_1", tool_call_id="call_1")
            response = await stranger.request(route.method, path, json={} if route.method == "POST" else None)
            assert response.status_code == 401, route
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await stranger.get(f"/v1/sessions/{session}/events")).status_code == 401
        assert (await stranger.get("/v1/asks/events")).status_code == 401
    async with served.channel() as channel:
        sent = (("authorization", authorization),) if authorization is not None else ()
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await stubs.SessionsStub(channel).List(pb.ListRequest(), metadata=sent)
        assert fault.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_stranger_gets_the_answer_of_a_missing_session_on_every_route(served: Served) -> None:
    async with served.client() as client:
        session, ask = await asked(client)
    async with served.client("eve") as eve:
        for route in ROUTES:
            if "{" not in route.path:
                continue
            said = []
            for target, question in ((session, ask["askId"]), ("ses_" + "0" * 26, "ask_" + "0" * 26)):
                path = route.path.format(
                    session_id=target, ask_id=question, review_id="rev_1", tool_call_id=ask["toolCallId"]
                )
                body = {"verdict": "allow", "mode": "plan", "text": "x", "provider": "scripted", "model": "m"}
                wanted = {f: body[f] for f in body if f in _fields(route.rpc)}
                response = await eve.request(route.method, path, json=wanted if route.method == "POST" else None)
                said.append((response.status_code, response.text.replace(target, "ID").replace(question, "ID")))
            assert said[0] == said[1] and said[0][0] == 404, route
        assert (await eve.get("/v1/asks")).json() == {}
        assert (await eve.get("/v1/sessions")).json() == {}


def _fields(rpc: str) -> set[str]:
    service, method = rpc.split(".")
    return {f.name for f in pb.DESCRIPTOR.services_by_name[service].methods_by_name[method].input_type.fields}


async def test_an_approver_answers_and_a_viewer_doesnt(served: Served) -> None:
    async with served.client() as client:
        session, ask = await asked(client)
        path = f"/v1/asks/{ask['askId']}/answer"
        async with served.client("viewer") as viewer:
            refused = await viewer.post(path, json={"verdict": "allow"})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert (await viewer.post(f"/v1/sessions/{session}/cancel", json={})).status_code == 403
        forged = {"verdict": "allow", "decidedBy": {"kind": "user", "name": "ada"}}
        async with served.client("approver") as approver:
            assert (await approver.post(path, json=forged)).status_code == 400, "no field says who decides"
            receipt = (await approver.post(path, json={"verdict": "allow"})).json()["receipt"]
        assert receipt["decidedBy"] == {"kind": "user", "name": "bob"}
        await until(client, session, "runFinished")


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"Host": "evil.example"}, True),
        ({"Host": "evil.example:8711"}, True),
        ({"Host": "127.0.0.1.evil.example"}, True),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Host": "localhost"}, False),
    ],
)
async def test_browsers_that_were_led_here_are_refused(served: Served, headers: dict[str, str], refused: bool) -> None:
    async with served.client("ada", **headers) as client:
        assert ((await client.get("/v1/sessions")).status_code == 403) == refused
        assert ((await client.post("/v1/sessions", json={})).status_code == 403) == refused


BAD: list[tuple[str, bytes, int]] = [
    ("/v1/sessions", b"{", 400),
    ("/v1/sessions", b"[]", 400),
    ("/v1/sessions", b'{"nope": 1}', 400),
    ("/v1/sessions", b'{"mode": "loud"}', 400),
    ("/v1/sessions", b'{"title": 3}', 400),
    ("/v1/sessions", b"\xff\xfe", 400),
    ("/v1/sessions", b'{"title": "\\ud800"}', 400),
    ("/v1/sessions", b'{"limits": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400),
    ("/v1/sessions", b"x" * 4_000_001, 413),
    ("/v1/asks/ask_x/answer", b'{"verdict": "perhaps"}', 400),
    ("/v1/sessions/ses_x/prompt", b"{}", 404),
    ("/v1/sessions/%00/prompt", b"{}", 404),
    ("/v1/nowhere", b"{}", 404),
]


@pytest.mark.parametrize(("path", "body", "status"), BAD)
async def test_bad_input_is_a_typed_error(served: Served, path: str, body: bytes, status: int) -> None:
    async with served.client() as client:
        response = await client.post(path, content=body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] and "Traceback" not in response.text
