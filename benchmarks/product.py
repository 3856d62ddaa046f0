"""Counterfoil on the same server: durable log, permissions and validation on. Args: PORT PATH."""

import asyncio
import sys
import time
from pathlib import Path

began = time.perf_counter()
import httpx  # noqa: E402, F401

from counterfoil.engine import Engine, NewSession  # noqa: E402
from counterfoil.events import Limits, Principal  # noqa: E402
from counterfoil.policy.permissions import Rules  # noqa: E402
from counterfoil.engine import EngineSettings  # noqa: E402
from counterfoil.providers import make_provider  # noqa: E402
from counterfoil.stores import open_store  # noqa: E402
from counterfoil.tools import ListedTools, function_tool  # noqa: E402

imported = time.perf_counter() - began
from report import report  # noqa: E402

port, path = int(sys.argv[1]), sys.argv[2]
stamps: list[float] = []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    stamps.append(time.perf_counter())
    return a + b


async def main() -> None:
    store = open_store(Path(path).parent)
    engine = Engine(
        store=store,
        provider_for=lambda meta: make_provider("openai_chat", base_url=f"http://127.0.0.1:{port}/v1"),
        toolset_for=lambda meta: ListedTools([function_tool(add)]),
        settings=EngineSettings(rules=Rules(allow=("add",))),
    )
    limits = Limits(max_turns=0, max_tool_calls=0, max_tokens=0, max_repeated_turns=0)
    me = Principal(kind="local", name="bench")
    new = NewSession(owner=me, workspace=".", provider="openai_chat", model="fake", limits=limits)
    async with await engine.create(new) as session:
        outcome = await session.prompt("go")
    await store.close()
    assert outcome.stop_reason == "end_turn", outcome


asyncio.run(main())
report("counterfoil", stamps, imported, path)
