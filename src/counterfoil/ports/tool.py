"""Tools: what the model can call, and what a call would touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from counterfoil.events import Executed, Part
from counterfoil.events.base import Value
from counterfoil.identity import SessionID, ToolCallID


class ToolSpec(Value, frozen=True, kw_only=True):
    """What a tool is: `parameters` is a JSON Schema of type object; `timeout` is in seconds, 0 for none.

    `read_only`: changes nothing, may run beside others. `idempotent`: running it again is harmless.
    `leaves_plan`: runs in plan mode alone, once a person said yes, and ends that mode.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False
    idempotent: bool = False
    leaves_plan: bool = False
    timeout: float = 120.0


class ToolOutput(Value, frozen=True, kw_only=True):
    """What a tool gave back. `executed` says whether its side effects happened."""

    parts: tuple[Part, ...]
    is_error: bool = False
    executed: Executed = "yes"


class PathUse(Value, frozen=True, kw_only=True):
    """One path that a call would read or write: as given (absolute), and with symlinks resolved."""

    given: str
    resolved: str
    write: bool = False
    inside: bool = True


class Targets(Value, frozen=True, kw_only=True):
    """What a call would touch, for the permission decision: paths, one shell command line, one URL host."""

    paths: tuple[PathUse, ...] = ()
    command: str | None = None
    domain: str | None = None


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call runs. `progress` publishes a transient line. `output_dir` takes what is too long to record."""

    session_id: SessionID
    tool_call_id: ToolCallID
    workspace: Path
    output_dir: Path
    environment: Mapping[str, str]
    progress: Callable[[str], None]


class Tool(Protocol):
    """Something the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        ...

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        """What a call with these (valid) arguments would touch. Looks at the file system, changes nothing."""
        ...

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run. `arguments` are valid by `spec.parameters`. Raises `ToolFailure` for what the model should read.

        On cancellation everything that was started is stopped before this returns.
        """
        ...


class Toolset(Protocol):
    """The tools of one session, with whatever they keep between calls (background shells, …)."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in a stable order."""
        ...

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        ...

    async def close(self) -> None:
        """Stop everything that was started in the background."""
        ...
