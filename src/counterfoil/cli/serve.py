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
        AuthName, typer.Option("--auth", help="local: whoever reaches this machine's loopback; tokens: bearers of one.")
    ] = AuthName.local,
    workspace: options.Workspace = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    script: options.Script = None,
    state_dir: options.StateDir = None,
) -> int:
    """Serve sessions over HTTP (with SSE) and gRPC until it is told to stop. SIGTERM parks what waits for a person."""
    import asyncio

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
    where = serving.Where(host=host, port=port, grpc_port=None if grpc_port < 0 else grpc_port, uds=uds)
    return asyncio.run(serving.run(settings, compose.folder(workspace), where, tokens=auth is AuthName.tokens))


__all__ = ["exits", "serve"]
