"""openai-agents with its SQLiteSession. Args: PORT PATH."""

import asyncio
import sys
import time

began = time.perf_counter()
from agents import (  # noqa: E402
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI  # noqa: E402

imported = time.perf_counter() - began
sys.path.insert(0, __file__.rsplit("/", 2)[0])
from report import report  # noqa: E402

port, path = int(sys.argv[1]), sys.argv[2]
set_tracing_disabled(True)
stamps: list[float] = []


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    stamps.append(time.perf_counter())
    return a + b


async def main() -> None:
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    agent = Agent(name="a", instructions="add", tools=[add], model=OpenAIChatCompletionsModel("fake", client))
    result = Runner.run_streamed(agent, "go", session=SQLiteSession("s", path), max_turns=100_000)
    async for _ in result.stream_events():
        pass


asyncio.run(main())
report("openai-agents, SQLiteSession", stamps, imported, path)
