"""A server in this process, on loopback: both doors, three tokens, a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from counterfoil.api.door import Door, OwnTokens
from counterfoil.api.http import http_app
from counterfoil.cli.serving import Where, _grpc, _http
from counterfoil.config import Settings
from counterfoil.config.values import ModelSettings
from counterfoil.service.application import Application
from counterfoil.service.local import LocalService
from counterfoil.service.tokens import Tokens

NOW = 1_700_000_000_000_000
WRITE = {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}, "id": "PAIRING-CANARY-1"}


class Served:
    """The server and how to call it."""

    def __init__(self, app: Application, url: str, grpc_at: str, bearers: dict[str, str]) -> None:
        self.app = app
        self.url = url
        self.grpc_at = grpc_at
        self.bearers = bearers

    def client(self, who: str | None = "ada", **more: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.bearers[who]}"} if who is not None else {}
        return httpx.AsyncClient(base_url=self.url, headers=headers | more, timeout=20)

    def metadata(self, who: str = "ada") -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.bearers[who]}"),)

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.grpc_at)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "w").mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "I'll write.", "calls": [WRITE]}, {"text": "done"}]}))
    model = ModelSettings(provider="scripted", name="m", script=str(script))
    settings = Settings(state_dir=tmp_path / "state", model=model)
    tokens = Tokens(settings.state_dir)
    bearers = {
        "ada": tokens.create("ada", "owner", now=NOW)[1],
        "eve": tokens.create("eve", "owner", now=NOW)[1],
        "approver": tokens.create("bob", "approver", owner="ada", now=NOW)[1],
        "viewer": tokens.create("vic", "viewer", owner="ada", now=NOW)[1],
    }
    local = LocalService(settings, {"PATH": "/usr/bin:/bin"}, script=script)
    app = Application(local, tmp_path / "w")
    door = Door(verifier=OwnTokens(tokens, lambda: NOW), rate=0)
    where = Where(host="127.0.0.1", port=0, grpc_port=0, uds=None)
    async with _grpc(app, door, where) as port, _http(http_app(app, door), where) as url:
        yield Served(app, url, f"127.0.0.1:{port}", bearers)
        await app.close(grace=0)
    await local.close()
