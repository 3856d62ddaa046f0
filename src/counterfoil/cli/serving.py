"""How a server runs: composed, bound, announced, and drained when it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec

from counterfoil.cli import compose, exits, running
from counterfoil.cli.terminal import print_line
from counterfoil.config import Settings
from counterfoil.errors import UsageError

GRACE = 10.0
"""Seconds that runs have to come to an end, or to a question, once the server is told to stop."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What is bound. `grpc_port` None: no gRPC. `uds`: HTTP on a unix socket instead of `port`."""

    host: str
    port: int
    grpc_port: int | None
    uds: Path | None


async def run(settings: Settings, workspace: Path, where: Where, *, tokens: bool) -> int:
    """Serve until a signal comes. Raises `UsageError` where it can't be bound, or would be open to others."""
    try:
        from counterfoil.api.door import Door, require_safe
        from counterfoil.api.http import http_app
        from counterfoil.service.application import Application
    except ImportError as fault:
        raise UsageError(
            f"the server's libraries aren't installed ({fault.name})", hint="pip install 'counterfoil[server]'"
        ) from fault
    from counterfoil.service.access import Caller
    from counterfoil.service.tokens import Tokens

    if where.uds is None or where.grpc_port is not None:
        require_safe(where.host, local=not tokens)
    settings = running.ready(settings)
    door = Door(tokens=Tokens(settings.state_dir)) if tokens else Door(local=Caller(principal=compose.principal()))
    async with compose.service(settings) as local:
        app = Application(local, workspace)
        stop = asyncio.Event()
        with _signals(stop):
            async with _grpc(app, door, where) as grpc_port, _http(http_app(app, door, bound=where.host), where) as at:
                print_line(f"HTTP on {at}")
                if grpc_port is not None:
                    print_line(f"gRPC on {where.host}:{grpc_port}")
                print_line("who may come in: " + ("bearers of a token" if tokens else "whoever reaches this address"))
                await stop.wait()
                print_line("stopping: what waits for a person is parked")
                await app.close(GRACE)
    return exits.DONE


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _grpc(app: object, door: object, where: Where) -> AsyncIterator[int | None]:
    if where.grpc_port is None:
        yield None
        return
    from counterfoil.api.grpc import GrpcDoor

    server = GrpcDoor(app, door)  # type: ignore[arg-type]
    try:
        port = await server.start(f"{where.host}:{where.grpc_port}")
    except RuntimeError as fault:
        raise UsageError(f"port {where.grpc_port} of {where.host} can't be bound", hint="give --grpc-port") from fault
    try:
        yield port
    finally:
        await server.stop(1.0)


@contextlib.asynccontextmanager
async def _http(site: object, where: Where) -> AsyncIterator[str]:
    import uvicorn

    bound = _bind(where)
    config = uvicorn.Config(
        site,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=64_000,
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.ensure_future(server._serve([bound]))
    try:
        yield str(where.uds) if where.uds is not None else f"http://{_name(where.host)}:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        bound.close()
        if where.uds is not None:
            where.uds.unlink(missing_ok=True)


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bind(where: Where) -> socket.socket:
    try:
        if where.uds is not None:
            made = socket.socket(socket.AF_UNIX)
            old = os.umask(0o177)
            try:
                made.bind(str(where.uds))
            finally:
                os.umask(old)
        else:
            made = socket.socket(socket.AF_INET6 if ":" in where.host else socket.AF_INET)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((where.host, where.port))
        made.listen(128)
    except OSError as fault:
        place = where.uds or f"{where.host}:{where.port}"
        raise UsageError(f"{place} can't be bound: {fault.strerror}", hint="give another --port, or --uds") from fault
    return made
