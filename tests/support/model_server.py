"""A model server on the loopback interface: answers from a script in three wire formats, and refuses bad requests.

In a test:

    async with ModelServer(script) as server:
        provider = Anthropic(base_url=server.base_url, api_key="k")

As a process, which prints its base URL as its first line: `python -m tests.support.model_server --script FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from counterfoil.providers.script import Script, ScriptError, ScriptTurn, filled, load_script, script_from
from tests.support.returned import Ledger
from tests.support.strict import CHECKS, Refused
from tests.support.wires import BODIES, EVENTS, Cut, Reply, first_prompt, turns_of

Json = dict[str, Any]
PATHS = {"/v1/chat/completions": "chat", "/v1/messages": "messages", "/v1/responses": "responses"}
_STATUS = {
    "auth": 401,
    "bad_request": 400,
    "context_length": 400,
    "not_found": 404,
    "overloaded": 503,
    "rate_limited": 429,
    "timeout": 408,
}
_SLOW_PIECE = 7


@dataclass
class Recorded:
    """One request as it came, and the status that it was answered with (0: no answer)."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Json
    status: int = 0
    reason: str = ""


class Gone(Exception):
    """The connection is to be closed at once."""


class ModelServer:
    """Serves `script`. `count`: whether turns are counted in each request's history, or as answers given."""

    def __init__(
        self,
        script: Script | Path | Mapping[str, Any],
        *,
        require_key: str | None = None,
        placeholders: Mapping[str, str] | None = None,
        count: Literal["history", "answers"] = "history",
        strict: bool = True,
        port: int = 0,
    ) -> None:
        values = dict(placeholders or {})
        if isinstance(script, Path):
            self.script = load_script(script, values)
        else:
            self.script = filled(script, values) if isinstance(script, Script) else script_from(script, values)
        self.requests: list[Recorded] = []
        self.ledger = Ledger()
        self.require_key = require_key
        self._count = count
        self._strict = strict
        self._port = port
        self._serial = 0
        self._answers = 0
        self._attempts: dict[tuple[str, int], int] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def root_url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The URL that the API's paths are under: ends in `/v1`."""
        return self.root_url + "/v1"

    @property
    def refusals(self) -> list[str]:
        """Why requests were refused as invalid. Empty where the client did well."""
        return [request.reason for request in self.requests if request.reason]

    @property
    def bodies(self) -> list[Json]:
        """The bodies of all requests to a model."""
        return [request.body for request in self.requests if request.path in PATHS]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- connections --------------------------------------------------------------------------------------

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                await self._serve(request, writer)
        except Gone:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _serve(self, request: Recorded, writer: asyncio.StreamWriter) -> None:
        if self.require_key is not None and self.require_key not in _keys(request.headers):
            error = ScriptError(kind="auth", message="invalid api key")
            await _send_error(request, writer, error, PATHS.get(request.path, "chat"))
        elif request.method == "GET" and request.path == "/v1/models":
            models = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]}
            await _send(request, writer, 200, json.dumps(models).encode())
        elif request.method == "POST" and request.path in PATHS:
            await self._answer(request, writer, PATHS[request.path])
        else:
            await _send_error(request, writer, ScriptError(kind="not_found", message="no such path"), "chat")

    async def _answer(self, request: Recorded, writer: asyncio.StreamWriter, wire: str) -> None:
        try:
            self._check(request, wire)
        except Refused as refused:
            request.reason = str(refused)
            error = ScriptError(kind="bad_request", message=request.reason)
            await _send_error(request, writer, error, wire)
            return
        reply = self._reply(wire, request.body)
        turn = reply.turn
        if turn.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(turn.wait)
        if turn.error is not None:
            await _send_error(request, writer, turn.error, wire)
            return
        if not turn.cut:
            self._answers += 1
            if turn.raw is None:
                self.ledger.remember(wire, reply)
        if turn.raw is not None:
            await _send_stream(request, writer, _file(Path(turn.raw)), turn)
        elif request.body.get("stream"):
            await _send_stream(request, writer, _encoded(wire, reply), turn)
        else:
            await _send(request, writer, 200, json.dumps(BODIES[wire](reply)).encode())

    def _check(self, request: Recorded, wire: str) -> None:
        if not self._strict:
            return
        if wire == "messages" and "anthropic-version" not in request.headers:
            raise Refused("anthropic-version: header is required")
        CHECKS[wire](request.body)
        self.ledger.check(wire, request.body)

    def _reply(self, wire: str, body: Json) -> Reply:
        self._serial += 1
        model = str(body.get("model"))
        if not body.get("tools") and self.script.aside is not None:
            return Reply(self.script, ScriptTurn(text=self.script.aside), 0, model, self._serial)
        prompt = first_prompt(wire, body)
        number = turns_of(wire, body) if self._count == "history" else self._answers
        attempt = self._attempts.get((prompt, number), 0)
        self._attempts[prompt, number] = attempt + 1
        return Reply(self.script, self.script.turn(number, attempt, prompt), number, model, self._serial)


# ---- HTTP ---------------------------------------------------------------------------------------------------


async def _read(reader: asyncio.StreamReader) -> Recorded | None:
    """The next request of a connection; None at its end."""
    line = (await reader.readline()).decode("latin-1").split()
    if len(line) < 2:
        return None
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode("latin-1").strip()) != "":
        name, _, value = header.partition(":")
        headers[name.strip().lower()] = value.strip()
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        body = {}
    return Recorded(line[0], line[1].partition("?")[0], headers, raw, body if isinstance(body, dict) else {})


def _keys(headers: Mapping[str, str]) -> set[str]:
    return {headers.get("x-api-key", ""), headers.get("authorization", "").removeprefix("Bearer ")}


async def _send(
    request: Recorded,
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
) -> None:
    request.status = status
    lines = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    writer.write(_head(status, lines) + body)
    await writer.drain()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _send_error(request: Recorded, writer: asyncio.StreamWriter, error: ScriptError, wire: str) -> None:
    """An error as the wire format has it; status 200 puts it inside a stream."""
    if error.kind in ("unreachable", "stream_cut"):
        raise Gone
    status = error.status or (529 if (wire, error.kind) == ("messages", "overloaded") else _STATUS.get(error.kind, 500))
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers.setdefault("retry-after", f"{error.retry_after:g}")
    body = error.body if error.body is not None else _error_body(error, wire, status)
    data = body if isinstance(body, str) else json.dumps(body)
    if status == 200:
        name = "event: error\n" if wire != "chat" else ""
        await _send_stream(request, writer, _pieces(f"{name}data: {data}\n\n".encode()), ScriptTurn())
    else:
        await _send(request, writer, status, data.encode(), headers)


def _error_body(error: ScriptError, wire: str, status: int) -> Json:
    code = {"context_length": "context_length_exceeded", "rate_limited": "rate_limit_exceeded"}.get(error.kind)
    if wire != "messages":
        kind = "server_error" if status >= 500 or error.kind == "overloaded" else "invalid_request_error"
        inner: Json = {"message": error.message, "type": kind, "code": code, "param": None}
        return {"type": "error", **inner} if (wire, status) == ("responses", 200) else {"error": inner}
    kinds = {"auth": "authentication_error", "rate_limited": "rate_limit_error", "not_found": "not_found_error"}
    kind = "overloaded_error" if error.kind == "overloaded" else kinds.get(error.kind, "invalid_request_error")
    message = f"prompt is too long: {error.message}" if code == "context_length_exceeded" else error.message
    return {"type": "error", "error": {"type": kind, "message": message}}


async def _send_stream(
    request: Recorded, writer: asyncio.StreamWriter, pieces: AsyncIterator[bytes], turn: ScriptTurn
) -> None:
    """Chunked server-sent events; slowly and with comments where the turn says so."""
    request.status = 200
    writer.write(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
    await writer.drain()
    async for piece in pieces:
        data = b": keep-alive\n\n" + piece if turn.keep_alive else piece
        size = _SLOW_PIECE if turn.slow else max(1, len(data))
        for start in range(0, len(data), size):
            part = data[start : start + size]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            if turn.slow:
                await asyncio.sleep(turn.slow)
    if turn.cut:
        await asyncio.sleep(0.01)
        raise Gone
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _encoded(wire: str, reply: Reply) -> AsyncIterator[bytes]:
    for event in EVENTS[wire](reply):
        if isinstance(event, Cut):
            if reply.turn.cut:
                return
            continue
        name = f"event: {event['type']}\n" if wire != "chat" else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if wire == "chat":
        yield b"data: [DONE]\n\n"


async def _file(path: Path) -> AsyncIterator[bytes]:
    yield path.read_bytes()


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


# ---- as a process -------------------------------------------------------------------------------------------


async def _run(options: argparse.Namespace) -> None:
    server = ModelServer(options.script, require_key=options.require_key, count=options.count, port=options.port)
    async with server:
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serve a script until stopped."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--require-key")
    parser.add_argument("--count", choices=("history", "answers"), default="history")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
