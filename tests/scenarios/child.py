"""A process that drives a session until it is killed: its tools never end. Run by test_session_cases.py.

Arguments: STATE_DIR WIRE URL. It prints the session's id, then `TOOL CALL_ID` for each tool that runs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.engine import NewSession
from counterfoil.ports import ToolContext
from counterfoil.providers import make_provider
from counterfoil.stores.sqlite import SqliteStore
from tests.support.harness import ME, CountingTool, Rig


def endless(name: str) -> Any:
    """A behaviour that says that it runs, and never ends."""

    async def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> None:
        print(name, ctx.tool_call_id, flush=True)
        await asyncio.Event().wait()

    return run


async def main() -> None:
    """One session, one prompt."""
    folder, wire, url = sys.argv[1:]
    tools = [
        CountingTool("act", behaviour=endless("act")),
        CountingTool("look", read_only=True, behaviour=endless("look")),
    ]
    rig = Rig(
        {},
        *tools,
        store=SqliteStore(Path(folder)),
        provider=lambda meta: make_provider(wire, base_url=url, api_key="k"),
    )
    new = NewSession(owner=ME, workspace=folder, provider=wire, model="m", mode="bypass")
    session = await rig.engine.create(new)
    print(session.id, flush=True)
    await session.prompt("go")


if __name__ == "__main__":
    asyncio.run(main())
