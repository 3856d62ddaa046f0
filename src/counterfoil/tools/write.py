"""The tool that writes a whole file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, SessionState, in_thread, text_output
from counterfoil.tools.changes import TextFile, diff, parse
from counterfoil.tools.files import EDIT_LIMIT, open_file, os_failure, replace_file, stamp


class WriteArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Write takes."""

    file_path: Annotated[str, Meta(description="The file: absolute, or relative to the workspace.")]
    content: Annotated[str, Meta(description="The whole new content.")]


class Write(BuiltinTool[WriteArguments]):
    """Write a file: a new one, or the whole content of one that was read before. Folders are made as needed.

    To change a part of a file use Edit.
    """

    name = "Write"
    arguments = WriteArguments

    def touches(self, ctx: ToolContext, args: WriteArguments) -> Targets:
        """The file, to write."""
        return Targets(paths=(self.session.checked.note(ctx.tool_call_id, args.file_path, write=True),))

    async def call(self, ctx: ToolContext, args: WriteArguments) -> ToolOutput:
        """Write it in a thread."""
        return await in_thread(lambda stop: self._write(ctx, args))

    def _write(self, ctx: ToolContext, args: WriteArguments) -> ToolOutput:
        resolved = self.session.checked.confirm(ctx.tool_call_id, args.file_path)
        shown = self.session.workspace.shown(resolved)
        try:
            before = _present(self.session, resolved, shown)
            after = _as_before(before, args.content)
            replace_file(resolved, encoded(after))
            remember(self.session, resolved)
        except IsADirectoryError as fault:
            raise ToolFailure(f"{shown} is a folder", executed="no") from fault
        except OSError as fault:
            raise os_failure(fault, shown) from fault
        if before is None:
            lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
            return text_output(f"Wrote {shown}, a new file of {lines} lines.")
        if before.text == after.text:
            return text_output(f"Wrote {shown}: the content is the same as before.")
        return text_output(f"Wrote {shown}.\n{diff(before.text, after.text, shown)}")


def _present(session: SessionState, resolved: Path, shown: str) -> TextFile | None:
    """The file as it is now, which the model must know; None where there is none."""
    try:
        file = open_file(resolved)
    except FileNotFoundError:
        return None
    with file:
        now = stamp(file)
        if not session.read_files.knows(resolved):
            raise ToolFailure(f"{shown} exists and was not read in this session", executed="no", hint="Read it first")
        if not session.read_files.unchanged(resolved, now):
            raise changed(shown)
        file.seek(0)
        data = file.read(EDIT_LIMIT)
    try:
        return parse(data)
    except UnicodeDecodeError:
        return TextFile(text=data.decode("utf-8", "replace"))


def _as_before(before: TextFile | None, content: str) -> TextFile:
    """New content keeps the byte order mark and the CRLF line ends of a file that has them."""
    if before is None:
        return TextFile(text=content)
    if before.crlf:
        content = content.replace("\r\n", "\n")
    return TextFile(text=content.removeprefix("\ufeff") if before.bom else content, bom=before.bom, crlf=before.crlf)


def encoded(file: TextFile) -> bytes:
    """The bytes to write. Raises `ToolFailure` for text that is not valid Unicode."""
    try:
        return file.encoded()
    except UnicodeEncodeError as fault:
        raise ToolFailure("the text holds lone surrogates, which no file can hold", executed="no") from fault


def remember(session: SessionState, resolved: Path) -> None:
    """The model knows the file as it now is: it wrote it. A file that is gone again already is not known."""
    with contextlib.suppress(OSError, ToolFailure), open_file(resolved) as file:
        session.read_files.note(resolved, stamp(file))


def changed(shown: str) -> ToolFailure:
    """Somebody else changed the file after it was read."""
    return ToolFailure(f"{shown} was changed on disk since it was read", executed="no", hint="Read it again")


__all__ = ["Write", "WriteArguments", "changed", "encoded", "remember"]
