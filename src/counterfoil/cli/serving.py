"""How a server runs: composed, bound, announced, and drained when it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from counterfoil.cli import compose, exits, faults, running
from counterfoil.cli.terminal import print_line
from counterfoil.config import Settings
from counterfoil.errors import UsageError

if TYPE_CHECKING:
    from counterfoil.api.door import Door
    from counterfoil.service.tracing import Tracer

MOST_REQUESTS = 5_000
"""Connections and requests at once over HTTP: beyond that they get 503."""
GRACE = 10.0
"""Seconds that runs have to come to an end, or to a question, once the server is told to stop."""


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """Files in PEM: the server's certificate chain and key; `client_ca`: whose certificates clients must show."""

    cert: Path
    key: Path
    client_ca: Path | None = None


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What is bound. `grpc_port` None: no gRPC. `uds`: HTTP on a unix socket instead of `port`."""

    host: str
    port: int
    grpc_port: int | None
    uds: Path | None
    tls: Tls | None = None


Kind = Literal["local", "tokens", "oidc"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in, and how often: `rate` requests a second for each caller. `issuer`: an `Issuer`, for `oidc`."""

    kind: Kind = "local"
    issuer: Any = None
    rate: float = 100.0
    traces: bool = False


def tls_of(cert: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """What the flags say. Raises `UsageError` where one of them is missing."""
    if cert is None or key is None:
        if cert is not None or key is not None or client_ca is not None:
            raise UsageError("TLS needs a certificate and its key", hint="give --tls-cert FILE and --tls-key FILE")
        return None
    return Tls(cert=cert, key=key, client_ca=client_ca)


def access_of(kind: Kind, issuer: str, audience: str, name: str, *, rate: float) -> Access:
    """What the flags say. Raises `UsageError` where they don't fit together."""
    if kind != "oidc":
        if issuer or audience:
            raise UsageError("an issuer's tokens are taken with --auth oidc alone")
        return Access(kind=kind, rate=rate)
    if not issuer or not audience:
        raise UsageError("--auth oidc needs an issuer and an audience", hint="give --oidc-issuer and --oidc-audience")
    try:
        from counterfoil.api.oidc import Issuer
    except ImportError as fault:
        raise UsageError(f"{fault.name} isn't installed", hint="pip install 'counterfoil[server]'") from fault
    return Access(kind="oidc", issuer=Issuer(url=issuer, audience=audience, name_claim=name), rate=rate)


def set_up_log(form: Literal["text", "json"], level: str) -> None:
    """Log on stderr. Raises `UsageError` where what writes the lines isn't installed."""
    try:
        from counterfoil.cli import server_log
    except ImportError as fault:
        raise UsageError(f"{fault.name} isn't installed", hint="pip install 'counterfoil[server]'") from fault
    server_log.set_up(form, level)


WHO = {
    "local": "whoever reaches this address",
    "tokens": "bearers of a token",
    "oidc": "bearers of a token of the issuer",
}


async def run(settings: Settings, workspace: Path, where: Where, access: Access) -> int:
    """Serve until a signal comes. Raises `UsageError` where it can't be bound, or would be open to others."""
    try:
        from counterfoil.api.door import is_loopback, require_safe
        from counterfoil.api.http import http_app
        from counterfoil.api.observing import Observer
        from counterfoil.service.application import Application
    except ImportError as fault:
        raise UsageError(
            f"the server's libraries aren't installed ({fault.name})", hint="pip install 'counterfoil[server]'"
        ) from fault

    if where.uds is None or where.grpc_port is not None:
        require_safe(where.host, local=access.kind == "local")
    if where.tls is not None:
        _check_tls(where.tls)
    elif not is_loopback(where.host):
        faults.say(f"warning: tokens cross the network to {where.host} in the clear (give --tls-cert and --tls-key)")
    settings = running.ready(settings)
    door = _door(settings, access)
    async with compose.service(settings) as local:
        app = Application(local, workspace, tracer=_tracer() if access.traces else None)
        observer = Observer(app)
        site = http_app(app, door, bound=where.host, observer=observer)
        stop = asyncio.Event()
        with _signals(stop):
            async with _grpc(app, door, where, observer) as grpc_port, _http(site, where) as at:
                print_line(f"HTTP on {at}")
                if grpc_port is not None:
                    print_line(f"gRPC on {where.host}:{grpc_port}")
                print_line(f"who may come in: {WHO[access.kind]}")
                await stop.wait()
                print_line("stopping: what waits for a person is parked")
                await app.close(GRACE)
    return exits.DONE


def _door(settings: Settings, access: Access) -> Door:
    from counterfoil.api.door import Door, OwnTokens
    from counterfoil.service.access import Caller
    from counterfoil.service.tokens import Tokens

    if access.kind == "local":
        return Door(local=Caller(principal=compose.principal()))
    if access.kind == "tokens":
        return Door(verifier=OwnTokens(Tokens(settings.state_dir)), rate=access.rate)
    from counterfoil.api.oidc import OidcTokens

    assert access.issuer is not None
    return Door(verifier=OidcTokens(access.issuer), rate=access.rate)


def _tracer() -> Tracer:
    from counterfoil.service.tracing import OpenTelemetry, Tracer

    return Tracer(OpenTelemetry())


def _check_tls(tls: Tls) -> None:
    """Raise `UsageError` for files that aren't a certificate with its key, or no authority."""
    import ssl

    for path in (tls.cert, tls.key, *([tls.client_ca] if tls.client_ca else [])):
        try:
            path.read_bytes()
        except OSError as fault:
            raise UsageError(f"{path} can't be read: {fault.strerror}", hint="check the --tls files") from fault
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
    except (ssl.SSLError, ValueError) as fault:
        raise UsageError(f"{tls.cert} and {tls.key} aren't a certificate and its key: {fault}") from fault


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
async def _grpc(app: object, door: object, where: Where, observer: object = None) -> AsyncIterator[int | None]:
    if where.grpc_port is None:
        yield None
        return
    from counterfoil.api.grpc import GrpcDoor

    server = GrpcDoor(app, door, observer)  # type: ignore[arg-type]
    tls = where.tls
    files = None if tls is None else (tls.key.read_bytes(), tls.cert.read_bytes())
    client_ca = tls.client_ca.read_bytes() if tls is not None and tls.client_ca is not None else None
    try:
        port = await server.start(f"{where.host}:{where.grpc_port}", tls=files, client_ca=client_ca)
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
    tls = where.tls
    secured: dict[str, Any] = {}
    if tls is not None:
        secured = {"ssl_certfile": str(tls.cert), "ssl_keyfile": str(tls.key)}
        if tls.client_ca is not None:
            secured |= {"ssl_ca_certs": str(tls.client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    config = uvicorn.Config(
        site,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=64_000,
        limit_concurrency=MOST_REQUESTS,
        **secured,
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.ensure_future(server._serve([bound]))
    try:
        scheme = "https" if tls is not None else "http"
        yield str(where.uds) if where.uds is not None else f"{scheme}://{_name(where.host)}:{bound.getsockname()[1]}"
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
