"""The tool that searches the content of files."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools import grep_python, grep_ripgrep
from counterfoil.tools.base import BuiltinTool, in_thread, text_output
from counterfoil.tools.environment import scrubbed
from counterfoil.tools.grep_found import Found, Mode
from counterfoil.tools.regex import compiled

Around = Annotated[Annotated[int, Meta(ge=0, le=1000)] | None, Meta(description="Lines of context; only with content.")]
Rows = Annotated[int, Meta(ge=0)]


class GrepArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Grep takes."""

    pattern: Annotated[str, Meta(description="A regular expression, without look-around and back-references.")]
    path: Annotated[str | None, Meta(description="A file or folder (default: the workspace).")] = None
    glob: Annotated[str | None, Meta(description="Only files like this: *.py, src/**/*.{ts,tsx}, !*.min.js.")] = None
    type: Annotated[str | None, Meta(description="Only files of this type: py, js, ts, rust, go, java, …")] = None
    output_mode: Annotated[
        Mode,
        Meta(description="Names of files (the default), the lines that match, or how many there are in each file."),
    ] = "files_with_matches"
    ignore_case: Annotated[bool, Meta(description="Upper and lower case are alike.")] = msgspec.field(
        default=False, name="-i"
    )
    numbers: Annotated[bool, Meta(description="Show line numbers; only with content.")] = msgspec.field(
        default=True, name="-n"
    )
    after: Around = msgspec.field(default=None, name="-A")
    before: Around = msgspec.field(default=None, name="-B")
    around: Around = msgspec.field(default=None, name="-C")
    head_limit: Annotated[Rows | None, Meta(description="At most so many rows; 0 for as many as fit.")] = None
    multiline: Annotated[bool, Meta(description="Match across lines: a dot matches line ends.")] = False


class Grep(BuiltinTool[GrepArguments]):
    """Search the content of files by a regular expression. What .gitignore names is left out, and binary files."""

    name = "Grep"
    arguments = GrepArguments
    read_only = True

    def touches(self, ctx: ToolContext, args: GrepArguments) -> Targets:
        """The file or folder, to read."""
        return Targets(paths=(self.session.checked.note(ctx.tool_call_id, args.path or "."),))

    async def call(self, ctx: ToolContext, args: GrepArguments) -> ToolOutput:
        """Search with ripgrep where it is installed, else in a thread."""
        top = await asyncio.to_thread(self.session.checked.confirm, ctx.tool_call_id, args.path or ".")
        if not top.exists():
            raise ToolFailure(f"{self.session.workspace.shown(top)} does not exist", executed="no")
        found = self._found(args)
        usable = self.session.options.ripgrep and _plain_ignore_files(top, self.session.workspace.root)
        rg = shutil.which("rg") if usable else None
        if rg is not None:
            env = scrubbed(ctx.environment if self.session.environment is None else self.session.environment)
            await grep_ripgrep.search(rg, _options(args), top, found, cwd=_folder(top), env=env)
        else:
            await self._by_python(args, top, found)
        return text_output(found.text())

    def _found(self, args: GrepArguments) -> Found:
        before, after = _context(args)
        return Found(
            args.output_mode,
            numbers=args.numbers,
            separated=bool(before or after),
            limit=args.head_limit or 0,
            shown=self.session.workspace.shown,
            hidden=self.session.options.hidden,
        )

    async def _by_python(self, args: GrepArguments, top: Path, found: Found) -> None:
        globs = [args.glob] if args.glob else []
        if args.type:
            globs.append(grep_python.glob_of_type(args.type))
        pattern = compiled(args.pattern, ignore_case=args.ignore_case, multiline=args.multiline)
        before, after = _context(args)
        await in_thread(
            lambda stop: grep_python.search(
                top,
                self.session.workspace.root,
                pattern,
                found,
                globs=globs,
                before=before,
                after=after,
                multiline=args.multiline,
                hidden=self.session.options.hidden,
                stop=stop,
            )
        )


def _context(args: GrepArguments) -> tuple[int, int]:
    if args.output_mode != "content":
        return 0, 0
    around = args.around or 0
    before = around if args.before is None else args.before
    after = around if args.after is None else args.after
    return before, after


def _options(args: GrepArguments) -> list[str]:
    options = ["--ignore-case"] if args.ignore_case else []
    before, after = _context(args)
    if before or after:
        options += ["--before-context", str(before), "--after-context", str(after)]
    if args.output_mode == "files_with_matches" and not args.multiline:
        options += ["--max-count", "1"]
    if args.multiline:
        options += ["--multiline", "--multiline-dotall"]
    if args.type:
        options += ["--type", args.type]
    if args.glob:
        options += ["--glob", args.glob]
    return [*options, f"--regexp={args.pattern}"]


def _plain_ignore_files(top: Path, root: Path) -> bool:
    """Whether ripgrep can open the ignore files from `top` up to `root`: it would wait for ever at a pipe."""
    folders = [top, *(p for p in top.parents if p.is_relative_to(root))]
    files = [folder / ".gitignore" for folder in folders]
    return all(file.is_file() or not os.path.lexists(file) for file in files)


def _folder(top: Path) -> Path:
    return top if top.is_dir() else top.parent


__all__ = ["Grep", "GrepArguments"]
