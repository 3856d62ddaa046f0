"""Where scenarios of clients play: a service on real adapters with a scripted model, and clients of several people."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

from counterfoil.api.door import Door
from counterfoil.api.http import http_app
from counterfoil.cli.serving import Where, _grpc, _http
from counterfoil.client import grpc, http
from counterfoil.client.interface import Client, Frame
from counterfoil.client.local import LocalClient
from counterfoil.config import Flags, load
from counterfoil.errors import Unauthenticated
from counterfoil.events import AskOpened, Envelope, Event, Principal, RunFinished
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports import SessionSummary
from counterfoil.service.access import Caller, Role
from counterfoil.service.application import Application
from counterfoil.service.frames import CaughtUp, OpenAsk
from counterfoil.service.local import LocalService

E = TypeVar("E", bound=Event)
ClientFor = Callable[[Caller], Client]
WRITE = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}}
GATED = {"tool": "Bash", "arguments": {"command": "cat gate"}}
"""A call that goes on until `World.open_gate`."""


def turns(*calls: Any, end: str = "done") -> dict[str, Any]:
    """A script: a turn with each call, then the end."""
    return {"turns": [*({"text": "I'll look.", "calls": [call]} for call in calls), {"text": end}]}


def globs(count: int) -> list[dict[str, Any]]:
    """So many calls that only read."""
    return [{"tool": "Glob", "arguments": {"pattern": f"*{n}"}} for n in range(count)]


@contextlib.asynccontextmanager
async def in_process(app: Application) -> AsyncIterator[ClientFor]:
    """Clients without a wire."""
    yield lambda caller: LocalClient(app, caller)


class _Register(Door):
    """A door that knows the bearers that it gave out to callers."""

    def __init__(self) -> None:
        super().__init__()
        self._callers: list[Caller] = []

    def admit(self, caller: Caller) -> str:
        self._callers.append(caller)
        return f"bearer-{len(self._callers) - 1}"

    async def caller(self, authorization: str | None, peer: str = "") -> Caller:
        _, _, number = (authorization or "").partition("bearer-")
        if not number:
            raise Unauthenticated("a valid token is needed")
        return self._callers[int(number)]


@contextlib.asynccontextmanager
async def over_http(app: Application) -> AsyncIterator[ClientFor]:
    """Clients over HTTP, on loopback."""
    door, opened = _Register(), contextlib.AsyncExitStack()
    where = Where(host="127.0.0.1", port=0, grpc_port=None, uds=None)
    async with _http(http_app(app, door), where) as url, opened:

        def client_for(caller: Caller) -> Client:
            client = http.connect(url, door.admit(caller))
            opened.push_async_callback(client.close)
            return client

        yield client_for
        await app.close(0)


@contextlib.asynccontextmanager
async def over_grpc(app: Application) -> AsyncIterator[ClientFor]:
    """Clients over gRPC, on loopback."""
    door, opened = _Register(), contextlib.AsyncExitStack()
    where = Where(host="127.0.0.1", port=0, grpc_port=0, uds=None)
    async with _grpc(app, door, where) as port, opened:

        def client_for(caller: Caller) -> Client:
            client = grpc.connect(f"127.0.0.1:{port}", door.admit(caller))
            opened.push_async_callback(client.close)
            return client

        yield client_for
        await app.close(0)


DOORS: dict[str, Callable[[Application], contextlib.AbstractAsyncContextManager[ClientFor]]] = {
    "local": in_process,
    "http": over_http,
    "grpc": over_grpc,
}
"""How clients reach an application. Every scenario is played through each."""


class World:
    """One state directory and one workspace; `serve` starts a service over them, as often as one likes."""

    def __init__(self, root: Path, door: str, stack: contextlib.AsyncExitStack) -> None:
        self.root = root
        self.workspace = root / "w"
        self.workspace.mkdir()
        self.door = door
        self._stack = stack
        self._count = 0

    async def serve(self, script: Any = None, config: str = "") -> Served:
        """Start a service with this script and this configuration of its person. Ends with the test at the latest."""
        self._count += 1
        home = self.root / f"home{self._count}"
        (home / ".config" / "counterfoil").mkdir(parents=True)
        (home / ".config" / "counterfoil" / "config.toml").write_text(config)
        file = self.root / f"script{self._count}.json"
        file.write_text(json.dumps(script or turns()))
        env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        flags = Flags(state_dir=str(self.root / "state"), provider="scripted", model="m", script=str(file))
        local = LocalService(load(self.workspace, env, flags), env, script=file)
        app = Application(local, self.workspace)
        self._stack.push_async_callback(local.close)
        self._stack.push_async_callback(app.close, 0)
        return Served(app, await self._stack.enter_async_context(DOORS[self.door](app)))

    def make_gate(self) -> None:
        """Make what `GATED` reads from."""
        os.mkfifo(self.workspace / "gate")

    async def gate_is_waited_at(self) -> None:
        """Wait until a `GATED` call has opened the gate to read; it goes on to wait."""
        held = await asyncio.to_thread(os.open, self.workspace / "gate", os.O_WRONLY)
        self._stack.callback(os.close, held)

    async def open_gate(self, text: str = "through") -> None:
        """Let a `GATED` call end."""
        await asyncio.to_thread((self.workspace / "gate").write_text, text)


class Served:
    """A service, and clients of it by the name of their person."""

    def __init__(self, app: Application, client_for: ClientFor) -> None:
        self.app = app
        self._client_for = client_for

    def client(self, name: str = "ada", role: Role = "owner", of: str = "") -> Client:
        """A client of this person; with a role other than owner, on the sessions `of` somebody."""
        return self._client_for(Caller(principal=Principal(kind="user", name=name), role=role, owner=of))


async def begin(client: Client, prompt: str = "go", **values: Any) -> SessionID:
    """A new session with its first run started."""
    made: SessionSummary = await client.create(**values)
    await client.prompt(made.session_id, prompt)
    return made.session_id


async def frames_until(
    client: Client, session: SessionID, enough: Callable[[Frame], bool], after: Offset = START
) -> list[Frame]:
    """What a watch tells, up to and with the first frame that is `enough`."""
    seen: list[Frame] = []
    async with asyncio.timeout(30), contextlib.aclosing(client.watch(session, after)) as frames:
        async for frame in frames:
            seen.append(frame)
            if enough(frame):
                return seen
    raise AssertionError(f"the watch ended after {seen}")


async def until(client: Client, session: SessionID, kind: type[E], after: Offset = START) -> E:
    """The first event of this kind."""
    last = (
        await frames_until(client, session, lambda f: isinstance(f, Envelope) and isinstance(f.event, kind), after)
    )[-1]
    assert isinstance(last, Envelope) and isinstance(last.event, kind)
    return last.event


async def asked(client: Client, session: SessionID, after: Offset = START) -> OpenAsk:
    """The ask that the session comes to."""
    await until(client, session, AskOpened, after)
    (found,) = await client.list_asks(session)
    return found


async def finished(client: Client, session: SessionID, after: Offset = START) -> RunFinished:
    """How the run ended."""
    return await until(client, session, RunFinished, after)


async def whole_log(client: Client, session: SessionID) -> list[Envelope]:
    """The log, page by page."""
    log: list[Envelope] = []
    after: Offset | None = START
    while after is not None:
        page = await client.get_transcript(session, after, page_size=7)
        log += page.events
        after = page.next_offset
    return log


def events(frames: list[Frame]) -> list[Envelope]:
    """The logged events of a watch."""
    return [f for f in frames if isinstance(f, Envelope) and f.offset is not None]


def is_caught_up(frame: Frame) -> bool:
    """Whether the watch has come to what is live."""
    return isinstance(frame, CaughtUp)


def is_end(frame: Frame) -> bool:
    """Whether a run ended."""
    return isinstance(frame, Envelope) and isinstance(frame.event, RunFinished)
