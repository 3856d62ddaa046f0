"""What the built-in tools have in common: one session's shared state, and a typed shell around `run`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.events import TextPart
from counterfoil.ports import Targets, ToolContext, ToolOutput, ToolSpec
from counterfoil.tools.files import ReadFiles
from counterfoil.tools.schema import parameters_of
from counterfoil.tools.shells import Shells
from counterfoil.tools.text import LIMIT, bound
from counterfoil.tools.workspace import Checked, Workspace

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T")


def nothing_hidden(path: Path) -> bool:
    """No file is left out of the results of searches."""
    return False


def no_variables() -> Mapping[str, str]:
    """Nothing is added to the environment of commands."""
    return {}


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the built-in tools of a session behave.

    `hidden` says which (absolute, also resolved) paths searches leave out, as deny rules on Read want it.
    `extra_environment` names variables that commands see although they are not on the list of harmless ones.
    `variables` are what hooks set for the session's commands, asked for with each command.
    `sandbox` runs commands in bubblewrap, with the network where `sandbox_network` says so; it is never
    silently left out. `allow_private` lets WebFetch reach private and loopback addresses.
    `ripgrep` uses `rg` where it is installed.
    """

    hidden: Callable[[Path], bool] = nothing_hidden
    extra_environment: tuple[str, ...] = ()
    variables: Callable[[], Mapping[str, str]] = no_variables
    sandbox: Literal["off", "bwrap"] = "off"
    sandbox_network: bool = False
    allow_private: bool = False
    ripgrep: bool = True
    bash_timeout: float = 120.0
    bash_max_timeout: float = 600.0


class SessionState:
    """What the tools of one session share."""

    def __init__(
        self, workspace: Workspace, options: ToolOptions, environment: Mapping[str, str] | None = None
    ) -> None:
        self.workspace = workspace
        self.options = options
        self.environment = environment
        self.checked = Checked(workspace)
        self.read_files = ReadFiles()
        self.shells = Shells()


class BuiltinTool(Generic[A]):
    """A tool whose parameters are the fields of the struct `arguments`. Subclasses give `name` and `call`."""

    name: str
    arguments: type[A]
    read_only: bool = False
    idempotent: bool = False
    leaves_plan: bool = False
    timeout: float = 120.0

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self._spec = ToolSpec(
            name=self.name,
            description=(self.__doc__ or "").strip(),
            parameters=parameters_of(self.arguments),
            read_only=self.read_only,
            leaves_plan=self.leaves_plan,
            idempotent=self.idempotent,
            timeout=self.timeout,
        )

    @property
    def spec(self) -> ToolSpec:
        """What the tool is."""
        return self._spec

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        """What a call with these arguments would touch."""
        return self.touches(ctx, self._typed(arguments))

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run with arguments as the model wrote them."""
        return await self.call(ctx, self._typed(arguments))

    def touches(self, ctx: ToolContext, args: A) -> Targets:
        """What the call would touch; nothing unless a tool says otherwise."""
        return Targets()

    async def call(self, ctx: ToolContext, args: A) -> ToolOutput:
        """Do it."""
        raise NotImplementedError

    def _typed(self, arguments: Mapping[str, Any]) -> A:
        try:
            return msgspec.convert(dict(arguments), self.arguments)
        except msgspec.ValidationError as fault:
            raise ToolFailure(f"the arguments of {self.name} are not valid: {fault}", executed="no") from fault


def text_output(text: str, *, is_error: bool = False, limit: int = LIMIT, spill: Path | None = None) -> ToolOutput:
    """An output of one text, bounded."""
    kept = bound(text, limit, spill)
    return ToolOutput(parts=(TextPart(text=kept.text, truncated_bytes=kept.omitted),), is_error=is_error)


class Stopped(Exception):
    """A thread was told to stop."""


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Blocking `work` in a thread. On cancellation its event is set, and the thread has ended before this returns."""
    stop = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise


__all__ = ["BuiltinTool", "SessionState", "Stopped", "ToolOptions", "in_thread", "text_output"]
