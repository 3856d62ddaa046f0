"""The tool that finds files by name."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, in_thread, text_output
from counterfoil.tools.glob_match import matcher
from counterfoil.tools.text import visible, well_formed
from counterfoil.tools.walk import Walk

MAX_RESULTS = 1000


class GlobArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Glob takes."""

    pattern: Annotated[str, Meta(description="Such as **/*.py or src/*.{ts,tsx}.", min_length=1)]
    path: Annotated[str | None, Meta(description="The folder to look in (default: the workspace).")] = None


class Glob(BuiltinTool[GlobArguments]):
    """Find files by a glob pattern. The latest changed come first; what .gitignore names is left out."""

    name = "Glob"
    arguments = GlobArguments
    read_only = True

    def touches(self, ctx: ToolContext, args: GlobArguments) -> Targets:
        """The folder, to read."""
        folder, _ = _split(args)
        return Targets(paths=(self.session.checked.note(ctx.tool_call_id, folder),))

    async def call(self, ctx: ToolContext, args: GlobArguments) -> ToolOutput:
        """Walk in a thread."""
        return await in_thread(lambda stop: self._glob(ctx, args, stop))

    def _glob(self, ctx: ToolContext, args: GlobArguments, stop: threading.Event) -> ToolOutput:
        folder, pattern = _split(args)
        top = self.session.checked.confirm(ctx.tool_call_id, folder)
        workspace = self.session.workspace
        if not top.is_dir():
            raise ToolFailure(f"{workspace.shown(top)} is not a folder", executed="no")
        matches = matcher(pattern)
        walk = Walk(top, workspace.root, self.session.options.hidden, stop, links=True)
        found: list[tuple[int, str]] = []
        for entry in walk.files():
            if matches(Path(entry.path).relative_to(top).parts) and (changed := self._changed(entry)) is not None:
                found.append((changed, entry.path))
        found.sort(key=lambda each: (-each[0], each[1]))
        lines = [visible(well_formed(workspace.shown(path))).replace("\n", "␊") for _, path in found[:MAX_RESULTS]]
        if not found:
            lines.append("No files found.")
        if len(found) > MAX_RESULTS:
            lines.append(f"[{len(found) - MAX_RESULTS} more: give a narrower pattern]")
        if walk.incomplete:
            lines.append("[not the whole folder was searched: it is too large; give a narrower path]")
        return text_output("\n".join(lines))

    def _changed(self, entry: os.DirEntry[str]) -> int | None:
        """When it was changed; None for links that lead out of the workspace, to a folder, or to what is hidden."""
        try:
            if entry.is_symlink():
                target = Path(os.path.realpath(entry.path))
                if not self.session.workspace.holds(target) or self.session.options.hidden(target):
                    return None
                if not target.is_file():
                    return None
            return entry.stat().st_mtime_ns
        except OSError:
            return None


def _split(args: GlobArguments) -> tuple[str, str]:
    """The folder to walk and the pattern below it: an absolute pattern brings its folder along."""
    parts = args.pattern.split("/")
    if ".." in parts:
        raise ToolFailure("a glob pattern can't hold `..`", executed="no", hint="give the folder as path")
    if not args.pattern.startswith(("/", "~")):
        return args.path or ".", args.pattern
    plain = 0
    while plain < len(parts) - 1 and not any(mark in parts[plain] for mark in "*?[{"):
        plain += 1
    return "/".join(parts[:plain]) or "/", "/".join(parts[plain:])


__all__ = ["Glob", "GlobArguments"]
