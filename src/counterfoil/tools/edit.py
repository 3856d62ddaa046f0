"""The tool that replaces a piece of text in a file."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, SessionState, in_thread, text_output
from counterfoil.tools.changes import TextFile, diff, parse
from counterfoil.tools.files import EDIT_LIMIT, open_file, os_failure, replace_file, stamp
from counterfoil.tools.write import changed, encoded, remember


class EditArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Edit takes."""

    file_path: Annotated[str, Meta(description="The file: absolute, or relative to the workspace.")]
    old_string: Annotated[str, Meta(description="The exact text to replace, without line numbers.")]
    new_string: Annotated[str, Meta(description="What stands there afterwards.")]
    replace_all: Annotated[bool, Meta(description="Replace each place where old_string stands.")] = False


class Edit(BuiltinTool[EditArguments]):
    """Replace a text in a file by another. old_string must stand in the file exactly once, unless replace_all is set.

    An empty old_string makes a new file.
    """

    name = "Edit"
    arguments = EditArguments

    def touches(self, ctx: ToolContext, args: EditArguments) -> Targets:
        """The file, to write."""
        return Targets(paths=(self.session.checked.note(ctx.tool_call_id, args.file_path, write=True),))

    async def call(self, ctx: ToolContext, args: EditArguments) -> ToolOutput:
        """Edit it in a thread."""
        return await in_thread(lambda stop: self._edit(ctx, args))

    def _edit(self, ctx: ToolContext, args: EditArguments) -> ToolOutput:
        resolved = self.session.checked.confirm(ctx.tool_call_id, args.file_path)
        shown = self.session.workspace.shown(resolved)
        if args.old_string == args.new_string:
            raise ToolFailure("old_string and new_string are identical: nothing to change", executed="no")
        try:
            before = _present(self.session, resolved, shown, new=not args.old_string)
            after, count = replaced(before, args, shown)
            replace_file(resolved, encoded(after))
            remember(self.session, resolved)
        except FileNotFoundError as fault:
            raise ToolFailure(f"{shown} does not exist", executed="no", hint="make it with Write") from fault
        except IsADirectoryError as fault:
            raise ToolFailure(f"{shown} is a folder", executed="no") from fault
        except OSError as fault:
            raise os_failure(fault, shown) from fault
        places = "1 place" if count == 1 else f"{count} places"
        return text_output(f"Edited {shown} ({places}).\n{diff(before.text, after.text, shown)}")


def _present(session: SessionState, resolved: Path, shown: str, *, new: bool) -> TextFile:
    try:
        file = open_file(resolved)
    except FileNotFoundError:
        if new:
            return TextFile(text="")
        raise
    with file:
        now = stamp(file)
        if now.size > EDIT_LIMIT:
            raise ToolFailure(f"{shown} has {now.size} bytes: the limit of Edit is {EDIT_LIMIT}", executed="no")
        if not session.read_files.unchanged(resolved, now):
            raise changed(shown)
        file.seek(0)
        data = file.read(EDIT_LIMIT)
    try:
        return parse(data)
    except UnicodeDecodeError as fault:
        raise ToolFailure(f"{shown} is not valid UTF-8 text: Edit would damage it", executed="no") from fault


def replaced(before: TextFile, args: EditArguments, shown: str) -> tuple[TextFile, int]:
    """The file with the text replaced, and in how many places. Raises `ToolFailure` where that isn't clear."""
    old, new = args.old_string, args.new_string
    if not old:
        if before.text:
            raise ToolFailure(f"old_string is empty and {shown} is not", executed="no", hint="say what to replace")
        return msgspec.structs.replace(before, text=new), 1
    if before.crlf:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    count = before.text.count(old)
    if count == 0:
        raise ToolFailure(f"old_string was not found in {shown}", executed="no", hint=_nearest(before.text, old))
    if count > 1 and not args.replace_all:
        lines = ", ".join(str(line) for line in _places(before.text, old)[:10])
        raise ToolFailure(
            f"old_string stands in {shown} {count} times (lines {lines}{', …' if count > 10 else ''})",
            executed="no",
            hint="give more of the text around it, or set replace_all",
        )
    return msgspec.structs.replace(before, text=before.text.replace(old, new)), count


def _places(text: str, old: str) -> list[int]:
    places: list[int] = []
    at, line, last = text.find(old), 1, 0
    while at >= 0 and len(places) < 11:
        line += text.count("\n", last, at)
        last = at
        places.append(line)
        at = text.find(old, at + len(old))
    return places


def _nearest(text: str, old: str) -> str:
    """What may help: the same text with other white space, or a line that is like the first one wanted."""
    wanted = old.strip().split("\n", 1)[0].strip()
    lines = text.split("\n")[:20_000]
    for number, line in enumerate(lines, 1):
        if wanted and line.strip() == wanted:
            return f"line {number} differs in white space, or in what follows: read the file again"
    close = difflib.get_close_matches(wanted[:200], [line.strip()[:200] for line in lines[:2000]], n=1, cutoff=0.8)
    return f"the nearest line is {close[0]!r}" if close else "read the file again"


__all__ = ["Edit", "EditArguments", "replaced"]
