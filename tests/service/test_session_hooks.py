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


def starts(command: str, **fields: Any) -> HookDefinition:
    name = fields.pop("name", "env")
    return HookDefinition(name=name, tier="user", phase="SessionStart", command=command, **fields)


SEEN = bash('echo "$ONE|$TWO|${LD_PRELOAD-none}|${PATH##*:}"')


async def test_what_a_hook_writes_into_its_file_is_given_to_the_commands_of_the_session(tmp_path: Path) -> None:
    first = starts("printf 'export ONE=1\\nexport LD_PRELOAD=/x.so\\n' >> $CLAUDE_ENV_FILE", name="first")
    second = starts("""echo 'export ONE=2 TWO="a b" PATH="$PATH:/own/bin"' > $CLAUDE_ENV_FILE""", name="second")
    third = starts("echo 'export ONE=3' > $CLAUDE_ENV_FILE; exit 9", name="third")
    async with ModelServer({"turns": [SEEN, {"text": "done"}]}) as server:
        found = await played(tmp_path, settings_of(tmp_path, main=server), first, second, third)
    assert [text.strip() for text in found.texts] == ["2|a b|none|/own/bin"]
    told = {name: [r for r in found.records if r.definition.name == name] for name in ("first", "second", "third")}
    assert [(r.outcome, r.severity) for r in told["first"]] == [("notice", "warning"), ("notice", "notable")]
    assert "LD_PRELOAD" in told["first"][0].message and told["first"][1].message.endswith("commands: ONE")
    assert [r.message for r in told["second"]] == ["sets for the session's commands: ONE, TWO, PATH"]
    assert [r.outcome for r in told["third"]] == ["notice", "failed"]


async def test_the_variables_of_a_session_outlive_the_process_and_go_with_it(tmp_path: Path) -> None:
    hook = starts("echo 'export ONE=1' > $CLAUDE_ENV_FILE", matcher="startup")
    async with ModelServer({"turns": [{"text": "hi"}, SEEN, {"text": "done"}]}, count="answers") as server:
        settings = settings_of(tmp_path, main=server)
        await played(tmp_path, settings, hook)
        async with LocalService(settings, {"PATH": "/usr/bin:/bin"}) as service:
            (summary,) = await service.store.sessions()
            async with await service.engine.open(summary.session_id) as session:
                await session.prompt("again")
            found = await events(service, session.id)
    assert [text.strip() for text in found.texts] == ["1||none|/bin"]
    assert (settings.state_dir / "outputs" / summary.session_id / "variables.json").exists()
