from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.events import ImagePart, text_of
from counterfoil.policy.arguments import problems
from counterfoil.ports import Tool, ToolContext, Toolset
from counterfoil.tools import BuiltinTools, ListedTools, function_tool
from counterfoil.tools.base import in_thread
from tests.tools.support import Bench


def test_the_tools_have_the_names_and_arguments_of_the_ecosystem(bench: Bench) -> None:
    toolset: Toolset = bench.tools
    names = {spec.name: list(spec.parameters["properties"]) for spec in toolset.specs}
    assert names == {
        "Read": ["file_path", "offset", "limit"],
        "Write": ["file_path", "content"],
        "Edit": ["file_path", "old_string", "new_string", "replace_all"],
        "Glob": ["pattern", "path"],
        "Grep": [
            "pattern",
            "path",
            "glob",
            "type",
            "output_mode",
            "-i",
            "-n",
            "-A",
            "-B",
            "-C",
            "head_limit",
            "multiline",
        ],
        "Bash": ["command", "description", "timeout", "run_in_background"],
        "BashOutput": ["bash_id", "filter"],
        "KillShell": ["shell_id"],
        "WebFetch": ["url", "prompt"],
        "TodoWrite": ["todos"],
        "PresentPlan": ["plan"],
    }
    assert all(toolset.get(name) is not None for name in names)
    assert toolset.get("Nope") is None


def test_flags_say_what_may_run_beside_others_and_again(bench: Bench) -> None:
    assert {s.name for s in bench.tools.specs if s.read_only} == {"Read", "Glob", "Grep", "BashOutput", "WebFetch"}
    assert {s.name for s in bench.tools.specs if s.idempotent} == {"KillShell", "TodoWrite"}


def test_schemas_are_in_one_piece_and_closed(bench: Bench) -> None:
    for spec in bench.tools.specs:
        text = msgspec.json.encode(spec.parameters).decode()
        assert spec.description
        assert "$ref" not in text
        assert "$defs" not in text
        assert spec.parameters["additionalProperties"] is False


def test_wrong_arguments_are_named_by_path(bench: Bench) -> None:
    tool = bench.tools.get("TodoWrite")
    assert tool is not None
    good = {"content": "a", "status": "pending", "activeForm": "b"}
    assert problems(tool.spec, {"todos": [good]}) == []
    (line,) = problems(tool.spec, {"todos": [good, good, {**good, "status": "soon"}]})
    assert line.startswith("todos[2].status: ")
    assert problems(tool.spec, {"todos": [], "more": 1})


async def test_todos_are_rendered(bench: Bench) -> None:
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Run", "status": "in_progress", "activeForm": "Running"},
        {"content": "Rest", "status": "pending", "activeForm": "Resting"},
    ]
    assert await bench.text("TodoWrite", todos=todos) == "1 of 3 done\n[x] Look\n[>] Running\n[ ] Rest"


async def test_arguments_that_got_past_the_check_are_refused(bench: Bench) -> None:
    with pytest.raises(ToolFailure, match="file_path") as caught:
        await bench.call("Read", file_path=3)
    assert caught.value.executed == "no"


def add(a: int, b: Annotated[int, "the other"] = 2, kind: Literal["x", "y"] = "x") -> str:
    """Add two numbers."""
    return f"{a + b}{kind}"


async def test_a_function_is_a_tool(bench: Bench) -> None:
    tool: Tool = function_tool(add, read_only=True)
    assert (tool.spec.name, tool.spec.description, tool.spec.read_only) == ("add", "Add two numbers.", True)
    assert tool.spec.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"description": "the other", "type": "integer", "default": 2},
            "kind": {"enum": ["x", "y"], "default": "x"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert text_of((await tool.run(bench.ctx(), {"a": 1})).parts) == "3x"


async def test_a_function_may_be_async_take_the_context_and_return_values(bench: Bench) -> None:
    async def where(ctx: ToolContext, names: list[str], limit: Annotated[int, Meta(ge=1)] = 1) -> dict[str, object]:
        return {"call": ctx.tool_call_id, "names": names[:limit]}

    def picture() -> ImagePart:
        return ImagePart(media_type="image/png", data="")

    tool = function_tool(where, name="Where")
    assert list(tool.spec.parameters["properties"]) == ["names", "limit"]
    output = await tool.run(bench.ctx(), {"names": ["a", "b"]})
    assert msgspec.json.decode(text_of(output.parts)) == {"call": "call_1", "names": ["a"]}
    assert (await function_tool(picture).run(bench.ctx(), {})).parts == (ImagePart(media_type="image/png", data=""),)


def test_functions_that_can_be_no_tool_are_refused() -> None:
    with pytest.raises(TypeError, match="no type hint"):
        function_tool(lambda a: a)
    with pytest.raises(ValueError, match="same name"):
        ListedTools([function_tool(add), function_tool(add)])


async def test_listed_tools_are_a_toolset() -> None:
    toolset: Toolset = ListedTools([function_tool(add)])
    assert [spec.name for spec in toolset.specs] == ["add"]
    assert toolset.get("add") is not None
    await toolset.close()


async def test_extra_roots_are_inside(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    tool = BuiltinTools(bench.workspace, extra_roots=[bench.outside]).get("Read")
    assert tool is not None
    assert tool.targets(bench.ctx(), {"file_path": str(bench.outside / "x")}).paths[0].inside


async def test_cancelled_work_in_a_thread_has_ended_before_the_caller_goes_on() -> None:
    import threading

    begun, ended = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        begun.set()
        stop.wait(10)
        ended.set()

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
