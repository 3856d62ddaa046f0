"""pydantic-ai, which keeps no durable session: its messages are written at the end. Args: PORT PATH."""

import asyncio
import sys
import time
from pathlib import Path

began = time.perf_counter()
from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402
from pydantic_ai.usage import UsageLimits  # noqa: E402

imported = time.perf_counter() - began
sys.path.insert(0, __file__.rsplit("/", 2)[0])
from report import report  # noqa: E402

port, path = int(sys.argv[1]), sys.argv[2]
stamps: list[float] = []
provider = OpenAIProvider(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
agent = Agent(OpenAIChatModel("fake", provider=provider))


@agent.tool_plain
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    stamps.append(time.perf_counter())
    return a + b


async def main() -> None:
    async with agent.iter("go", usage_limits=UsageLimits(request_limit=100_000)) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
        Path(path).write_bytes(run.result.all_messages_json())


asyncio.run(main())
report("pydantic-ai, no durable session", stamps, imported, path)
