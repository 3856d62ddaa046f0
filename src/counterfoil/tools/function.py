"""Tools from Python functions, and a toolset over tools that somebody else made."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.events import FilePart, ImagePart, TextPart
from counterfoil.ports import Targets, Tool, ToolContext, ToolOutput, ToolSpec
from counterfoil.tools.schema import parameters_of
from counterfoil.tools.text import bound, clean, well_formed


class FunctionTool:
    """A tool that calls a Python function. Made by `function_tool`."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec, arguments: type[msgspec.Struct], ctx: str | None):
        self._function, self._spec, self._arguments, self._ctx = function, spec, arguments, ctx

    @property
    def spec(self) -> ToolSpec:
        """What the tool is."""
        return self._spec

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        """Nothing that the permission rules know of."""
        return Targets()

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call the function: awaited where it is async, else in a thread."""
        try:
            typed = msgspec.convert(dict(arguments), self._arguments)
        except msgspec.ValidationError as fault:
            raise ToolFailure(f"the arguments of {self._spec.name} are not valid: {fault}", executed="no") from fault
        values: dict[str, Any] = {name: getattr(typed, name) for name in self._arguments.__struct_fields__}
        if self._ctx is not None:
            values[self._ctx] = ctx
        if inspect.iscoroutinefunction(self._function):
            return _output(await self._function(**values))
        return _output(await asyncio.to_thread(self._function, **values))


def function_tool(
    fn: Callable[..., Any],
    *,
    read_only: bool = False,
    idempotent: bool = False,
    name: str | None = None,
    description: str | None = None,
    timeout: float = 120.0,
) -> Tool:
    """A tool from a function with type hints: its parameters are the tool's, its docstring the description.

    A parameter annotated `ToolContext` gets the context and is not shown to the model. `Annotated[int, "…"]`
    and `Annotated[int, msgspec.Meta(…)]` describe a parameter. It may return text, a part, a `ToolOutput`, or
    anything that can be written as JSON.
    """
    hints = typing.get_type_hints(fn, include_extras=True)
    fields: list[Any] = []
    ctx: str | None = None
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter {parameter.name} of {fn!r} can't be given by name")
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"parameter {parameter.name} of {fn!r} has no type hint")
        if hint is ToolContext:
            ctx = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, _described(hint)))
        else:
            fields.append((parameter.name, _described(hint), _default(parameter.default)))
    own_name = name or fn.__name__
    arguments = msgspec.defstruct(f"{own_name}_arguments", fields, kw_only=True, frozen=True)
    spec = ToolSpec(
        name=own_name,
        description=description or inspect.getdoc(fn) or "",
        parameters=parameters_of(arguments),
        read_only=read_only,
        idempotent=idempotent,
        timeout=timeout,
    )
    return FunctionTool(fn, spec, arguments, ctx)


def _described(hint: Any) -> Any:
    """`Annotated[int, "how many"]` with its text as the description."""
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, str):
            return Annotated[hint.__origin__, msgspec.Meta(description=extra)]
    return hint


def _default(value: Any) -> Any:
    if isinstance(value, (list, dict, set)):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


def _output(value: Any) -> ToolOutput:
    if isinstance(value, ToolOutput):
        return value
    if isinstance(value, (ImagePart, FilePart)):
        return ToolOutput(parts=(value,))
    if isinstance(value, TextPart):
        return ToolOutput(parts=(msgspec.structs.replace(value, text=well_formed(value.text)),))
    if value is None:
        text = ""
    elif isinstance(value, (str, bytes)):
        text = clean(value)
    else:
        text = msgspec.json.format(msgspec.json.encode(value)).decode()
    kept = bound(text)
    return ToolOutput(parts=(TextPart(text=kept.text, truncated_bytes=kept.omitted),) if kept.text else ())


class ListedTools:
    """A toolset over given tools, in their order. Closing it does nothing."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told."""
        return tuple(tool.spec for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    async def close(self) -> None:
        """Nothing to stop."""


__all__ = ["FunctionTool", "ListedTools", "function_tool"]
