"""The tool that keeps the model's list of things to do."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from counterfoil.ports import ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, text_output

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Todo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to do."""

    content: Annotated[str, Meta(description="What to do: “Run the tests”.", min_length=1, max_length=2000)]
    status: Literal["pending", "in_progress", "completed"]
    activeForm: Annotated[str, Meta(description="While it is done: “Running the tests”.", max_length=2000)] = ""


class TodoWriteArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What TodoWrite takes."""

    todos: Annotated[list[Todo], Meta(description="The whole list, which replaces the one before.", max_length=200)]


class TodoWrite(BuiltinTool[TodoWriteArguments]):
    """Write the list of things to do in this session. Give the whole list each time."""

    name = "TodoWrite"
    arguments = TodoWriteArguments
    idempotent = True

    async def call(self, ctx: ToolContext, args: TodoWriteArguments) -> ToolOutput:
        """Show the list as it is now."""
        done = sum(todo.status == "completed" for todo in args.todos)
        lines = [f"{_MARKS[todo.status]} {_shown(todo)}" for todo in args.todos]
        return text_output("\n".join([f"{done} of {len(args.todos)} done", *lines]))


def _shown(todo: Todo) -> str:
    return todo.activeForm if todo.status == "in_progress" and todo.activeForm else todo.content


__all__ = ["Todo", "TodoWrite", "TodoWriteArguments"]
