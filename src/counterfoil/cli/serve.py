"""`counterfoil serve`: the engine as a server, over HTTP and gRPC."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import exits, options


class AuthName(StrEnum):
    """Who may come in."""

    local = "local"
    tokens = "tokens"
    oidc = "oidc"


class LogFormat(StrEnum):
    """How log lines are written."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """From which level on lines are written."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def serve(
    host: Annotated[str, typer.Option("--host", help="The address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The HTTP port; 0 for any free one.")] = 8711,
    grpc_port: Annotated[
        int, typer.Option("--grpc-port", min=-1, max=65535, help="The gRPC port; 0 for any free one, -1 for none.")
    ] = 8712,
    uds: Annotated[
        Path | None, typer.Option("--uds", metavar="PATH", help="Serve HTTP on this unix socket instead.")
    ] = None,
    auth: Annotated[
        AuthName,
        typer.Option("--auth", help="local: whoever reaches loopback; tokens: bearers of one; oidc: of an issuer's."),
    ] = AuthName.local,
    oidc_issuer: Annotated[
        str, typer.Option("--oidc-issuer", metavar="URL", help="The OpenID Connect issuer.", show_default=False)
    ] = "",
    oidc_audience: Annotated[
        str, typer.Option("--oidc-audience", metavar="NAME", help="Whom tokens must be for.", show_default=False)
    ] = "",
    oidc_name: Annotated[
        str, typer.Option("--oidc-name-claim", metavar="CLAIM", help="The claim that names a person.")
    ] = "sub",
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate chain (PEM).", show_default=False)
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key (PEM).", show_default=False)
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca", metavar="FILE", help="Clients must show a certificate of this CA.", show_default=False
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0, help="Requests a second of one caller; 0 for no limit.")
    ] = 100.0,
    traces: Annotated[
        bool, typer.Option("--traces", help="Send OpenTelemetry traces to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How the log on stderr is written.")] = (
        LogFormat.text
    ),
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="info tells each request.")] = LogLevel.warning,
    workspace: options.Workspace = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    script: options.Script = None,
    state_dir: options.StateDir = None,
) -> int:
    """Serve sessions over HTTP (with SSE) and gRPC until it is told to stop. SIGTERM parks what waits for a person."""
    import asyncio

    import msgspec

    from counterfoil.cli import compose, serving
    from counterfoil.config import Flags

    flags = Flags(
        state_dir=state_dir,
        provider=provider,
        model=model,
        base_url=base_url,
        script=None if script is None else str(script),
    )
    settings = compose.load_settings(workspace, flags)
    where = serving.Where(
        host=host,
        port=port,
        grpc_port=None if grpc_port < 0 else grpc_port,
        uds=uds,
        tls=serving.tls_of(tls_cert, tls_key, tls_client_ca),
    )
    access = serving.access_of(auth.value, oidc_issuer, oidc_audience, oidc_name, rate=rate)
    access = msgspec.structs.replace(access, traces=traces)
    serving.set_up_log(log_format.value, log_level.value)
    return asyncio.run(serving.run(settings, compose.folder(workspace), where, access))


__all__ = ["exits", "serve"]
