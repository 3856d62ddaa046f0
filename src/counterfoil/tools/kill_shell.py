"""The tool that stops a background command."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.ports import ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, text_output


class KillShellArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What KillShell takes."""

    shell_id: Annotated[str, Meta(description="The id that Bash gave, such as shell_1.")]


class KillShell(BuiltinTool[KillShellArguments]):
    """Stop a background command and all its children."""

    name = "KillShell"
    arguments = KillShellArguments
    idempotent = True

    async def call(self, ctx: ToolContext, args: KillShellArguments) -> ToolOutput:
        """Stop it."""
        was_running = await self.session.shells.get(args.shell_id).kill()
        return text_output(f"{args.shell_id} was stopped." if was_running else f"{args.shell_id} had ended already.")


__all__ = ["KillShell", "KillShellArguments"]
