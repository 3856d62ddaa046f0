"""langgraph's prebuilt agent with the SQLite checkpointer. Args: PORT PATH."""

import asyncio
import sys
import time
import warnings

warnings.filterwarnings("ignore")
began = time.perf_counter()
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: E402
from langgraph.prebuilt import create_react_agent  # noqa: E402

imported = time.perf_counter() - began
sys.path.insert(0, __file__.rsplit("/", 2)[0])
from report import report  # noqa: E402

port, path = int(sys.argv[1]), sys.argv[2]
stamps: list[float] = []


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    stamps.append(time.perf_counter())
    return a + b


async def main() -> None:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        llm = ChatOpenAI(model="fake", base_url=f"http://127.0.0.1:{port}/v1", api_key="none", streaming=True)
        graph = create_react_agent(llm, [add], checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000_000}
        async for _ in graph.astream_events({"messages": [("user", "go")]}, config):
            pass


asyncio.run(main())
report("langgraph, SQLite checkpointer", stamps, imported, path)
