"""The tool that reads what a background command wrote."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.ports import ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, text_output
from counterfoil.tools.regex import compiled
from counterfoil.tools.shells import Look


class BashOutputArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What BashOutput takes."""

    bash_id: Annotated[str, Meta(description="The id that Bash gave, such as shell_1.")]
    filter: Annotated[
        str | None, Meta(description="A regular expression: only lines that match are shown; the others are gone.")
    ] = None


class BashOutput(BuiltinTool[BashOutputArguments]):
    """Read what a background command wrote since the last look, and whether it still runs."""

    name = "BashOutput"
    arguments = BashOutputArguments
    read_only = True

    async def call(self, ctx: ToolContext, args: BashOutputArguments) -> ToolOutput:
        """Look."""
        shell = self.session.shells.get(args.bash_id)
        pattern = compiled(args.filter) if args.filter else None
        look = shell.look()
        text = look.text
        if pattern is not None:
            text = "\n".join(line for line in text.split("\n") if pattern.search(line.encode()))
        return text_output(_rendered(args.bash_id, look, text.rstrip("\n")))


def _rendered(shell_id: str, look: Look, text: str) -> str:
    state = "running" if look.state == "running" else f"{look.state}, exit code {look.code}"
    lines = [f"[{shell_id}: {state}]"]
    if look.dropped:
        lines.append(f"[… {look.dropped} bytes left out: they were not read in time …]")
    return "\n".join([*lines, text or "[nothing new]"])


__all__ = ["BashOutput", "BashOutputArguments"]
