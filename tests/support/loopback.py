"""An ASGI application on a free port of loopback, for as long as a block lasts."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from counterfoil.cli.serving import Where, _http


@contextlib.asynccontextmanager
async def serving(app: object) -> AsyncIterator[str]:
    """Serve it; yields its URL."""
    async with _http(app, Where(host="127.0.0.1", port=0, grpc_port=None, uds=None)) as url:
        yield url
