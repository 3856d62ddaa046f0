"""The built-in tools of one session."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counterfoil.ports import Tool, ToolSpec
from counterfoil.tools.base import BuiltinTool, SessionState, ToolOptions
from counterfoil.tools.bash import Bash
from counterfoil.tools.bash_output import BashOutput
from counterfoil.tools.edit import Edit
from counterfoil.tools.glob import Glob
from counterfoil.tools.grep import Grep
from counterfoil.tools.kill_shell import KillShell
from counterfoil.tools.present_plan import PresentPlan
from counterfoil.tools.read import Read
from counterfoil.tools.todo_write import TodoWrite
from counterfoil.tools.web_fetch import WebFetch
from counterfoil.tools.workspace import Workspace
from counterfoil.tools.write import Write

BUILTIN: tuple[type[BuiltinTool[Any]], ...] = (
    Read,
    Write,
    Edit,
    Glob,
    Grep,
    Bash,
    BashOutput,
    KillShell,
    WebFetch,
    TodoWrite,
    PresentPlan,
)


class BuiltinTools:
    """The built-in tools over one workspace, with the session's background commands and its memory of files read.

    `environment` replaces the context's as what commands start from (it is scrubbed either way). `disabled` names
    tools, or patterns with `*`, that the model isn't given.
    """

    def __init__(
        self,
        workspace: Path,
        extra_roots: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        options: ToolOptions | None = None,
        disabled: Sequence[str] = (),
    ) -> None:
        place = Workspace(workspace, extra_roots)
        self._session = SessionState(place, options or ToolOptions(), environment)
        self._tools: dict[str, Tool] = {
            kind.name: kind(self._session) for kind in BUILTIN if not _off(kind.name, disabled)
        }
        self._specs = tuple(tool.spec for tool in self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in a stable order."""
        return self._specs

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    async def close(self) -> None:
        """Kill all background commands."""
        await self._session.shells.close()


def _off(name: str, disabled: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in disabled)


__all__ = ["BUILTIN", "BuiltinTools"]
