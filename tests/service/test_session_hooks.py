"""Hooks as the application composes them: prompt hooks ask a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from counterfoil.config import ProviderSettings, Settings
from counterfoil.engine import NewSession
from counterfoil.events import CallFinished, HookRecord, HookRecorded, text_of
from counterfoil.events.codec import event_of
from counterfoil.hooks import HookDefinition
from counterfoil.identity import START, SessionID
from counterfoil.service.local import LocalService
from tests.support.harness import ME
from tests.support.model_server import ModelServer

NO = '{"ok": false, "reason": "it removes things"}'


class Played(msgspec.Struct):
    results: list[CallFinished]
    records: list[HookRecord]

    @property
    def texts(self) -> list[str]:
        return [text_of(result.parts) for result in self.results]


def bash(command: str) -> dict[str, Any]:
    return {"calls": [{"tool": "Bash", "arguments": {"command": command}}]}


def settings_of(tmp_path: Path, **servers: ModelServer) -> Settings:
    found = {
        name: ProviderSettings(name=name, wire="openai_chat", base_url=server.base_url)
        for name, server in servers.items()
    }
    return Settings(state_dir=tmp_path / "state", providers=found)


async def events(service: LocalService, session_id: SessionID) -> Played:
    log = [event_of(row) for row in await service.store.read(session_id, START, 10_000)]
    return Played(
        [e for e in log if isinstance(e, CallFinished)], [e.record for e in log if isinstance(e, HookRecorded)]
    )


async def played(tmp_path: Path, settings: Settings, *hooks: HookDefinition, prompts: int = 1) -> Played:
    (tmp_path / "work").mkdir(exist_ok=True)
    async with LocalService(settings, {"PATH": "/usr/bin:/bin"}, hooks=hooks) as service:
        new = NewSession(owner=ME, workspace=str(tmp_path / "work"), provider="main", model="m", mode="bypass")
        async with await service.engine.create(new) as session:
            for _ in range(prompts):
                await session.prompt("go")
        return await events(service, session.id)


@pytest.mark.parametrize(("model", "asked"), [("", "main"), ("judge/j-1", "judge"), ("other/x", "main")])
async def test_a_prompt_hook_asks_the_model_that_it_names_or_the_sessions_own(
    tmp_path: Path, model: str, asked: str
) -> None:
    hook = HookDefinition(
        name="p", tier="user", phase="PreToolUse", kind="prompt", prompt="Is this harmless?", model=model
    )
    main = {"turns": [bash("rm -rf x"), *([{"text": NO}] if asked == "main" else []), {"text": "done"}]}
    async with (
        ModelServer(main, count="answers") as server,
        ModelServer({"turns": [{"text": NO}]}) as judge,
    ):
        found = await played(tmp_path, settings_of(tmp_path, main=server, judge=judge), hook)
        asked_of = judge if asked == "judge" else server

    (question,) = [r.body for r in asked_of.requests if "harmless" in str(r.body["messages"])]
    assert [r.status for r in found.results] == ["blocked"], [(r.outcome, r.message) for r in found.records]
    assert [(r.outcome, r.message) for r in found.records] == [("blocked", "it removes things")]
    assert question["model"] == {"": "m", "judge/j-1": "j-1"}.get(model, model)
    assert not question.get("tools") and "rm -rf x" in str(question["messages"])


async def test_a_prompt_hook_whose_provider_fails_is_a_visible_failure(tmp_path: Path) -> None:
    hook = HookDefinition(name="p", tier="user", phase="PreToolUse", kind="prompt", prompt="ok?", model="anthropic/x")
    async with ModelServer({"turns": [bash("true"), {"text": "done"}]}) as server:
        found = await played(tmp_path, settings_of(tmp_path, main=server), hook)
    assert [(r.outcome, r.severity) for r in found.records] == [("failed", "warning")]
    assert "needs a key" in found.records[0].message and [r.status for r in found.results] == ["ok"]
