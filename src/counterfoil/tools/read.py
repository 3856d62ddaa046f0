"""The tool that reads a file."""

from __future__ import annotations

import base64
import difflib
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from counterfoil.errors import ToolFailure
from counterfoil.events import ImagePart, TextPart
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools.base import BuiltinTool, Stopped, in_thread
from counterfoil.tools.files import open_file, os_failure, stamp
from counterfoil.tools.text import LIMIT, visible, well_formed

LINES = 2000
LINE_CHARACTERS = 2000
IMAGE_LIMIT = 5 * 1024 * 1024
Line = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
_LINE_BYTES = LINE_CHARACTERS * 4 + 4


class ReadArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Read takes."""

    file_path: Annotated[str, Meta(description="The file: absolute, or relative to the workspace.")]
    offset: Annotated[Line | None, Meta(description="The line to begin with; the first is 1.")] = None
    limit: Annotated[Count | None, Meta(description="How many lines (default 2000).")] = None


class Read(BuiltinTool[ReadArguments]):
    """Read a text file, with line numbers, or look at an image (PNG, JPEG, GIF, WebP).

    2000 lines at a time unless limit says otherwise; lines are cut at 2000 characters.
    """

    name = "Read"
    arguments = ReadArguments
    read_only = True

    def touches(self, ctx: ToolContext, args: ReadArguments) -> Targets:
        """The file, to read."""
        return Targets(paths=(self.session.checked.note(ctx.tool_call_id, args.file_path),))

    async def call(self, ctx: ToolContext, args: ReadArguments) -> ToolOutput:
        """Read it in a thread."""
        return await in_thread(lambda stop: self._read(ctx, args, stop))

    def _read(self, ctx: ToolContext, args: ReadArguments, stop: threading.Event) -> ToolOutput:
        resolved = self.session.checked.confirm(ctx.tool_call_id, args.file_path)
        shown = self.session.workspace.shown(resolved)
        try:
            with open_file(resolved) as file:
                seen = stamp(file)
                file.seek(0)
                head = file.read(8192)
                file.seek(0)
                if media_type := image_type(head):
                    return _image(file, media_type, shown, seen.size)
                _refuse_binary(head, shown)
                output = _text(file, args, stop, shown)
        except IsADirectoryError as fault:
            raise ToolFailure(f"{shown} is a folder", hint="list it with Glob or Bash", executed="no") from fault
        except FileNotFoundError as fault:
            raise _missing(resolved, shown) from fault
        except OSError as fault:
            raise os_failure(fault, shown) from fault
        self.session.read_files.note(resolved, seen)
        return output


def _text(file: BinaryIO, args: ReadArguments, stop: threading.Event, shown: str) -> ToolOutput:
    first = max(args.offset or 1, 1)
    wanted = args.limit or LINES
    rows: list[str] = []
    used, number, damaged, strange, more = 0, 0, False, False, False
    for number, (raw, cut) in enumerate(_lines(file, stop), 1):
        if number < first:
            continue
        if len(rows) >= wanted:
            more = True
            break
        decoded = well_formed(raw)
        line = visible(decoded)
        damaged |= "\ufffd" in decoded and b"\xef\xbf\xbd" not in raw
        strange |= line != decoded
        row = f"{number:>6}\t{line[:LINE_CHARACTERS]}{' […]' if cut or len(line) > LINE_CHARACTERS else ''}"
        used += len(row.encode()) + 1
        if used > LIMIT - 1000:
            more = True
            break
        rows.append(row)
    notes = _notes(first, len(rows), number, more, damaged, strange, shown)
    return ToolOutput(parts=(TextPart(text="\n".join([*rows, *notes])),))


def _notes(first: int, rows: int, lines: int, more: bool, damaged: bool, strange: bool, shown: str) -> list[str]:
    notes = []
    if not rows:
        notes.append(f"[{shown} is empty]" if lines == 0 else f"[{shown} has {lines} lines: none from {first} on]")
    if more:
        notes.append(f"[more lines follow: go on with offset {first + rows}]")
    if damaged:
        notes.append("[the file is not valid UTF-8; bytes that can't be decoded are shown as U+FFFD]")
    if strange:
        notes.append("[control characters of the file are shown as symbols]")
    return notes


def _lines(file: BinaryIO, stop: threading.Event) -> Iterator[tuple[bytes, bool]]:
    """Each line without its end, at most `_LINE_BYTES` of it, and whether that is less than the whole."""
    for number in itertools.count():
        if number % 1024 == 0 and stop.is_set():
            raise Stopped
        raw = file.readline(_LINE_BYTES)
        if not raw:
            return
        rest = b"" if raw.endswith(b"\n") else file.readline(_LINE_BYTES)
        cut = bool(rest.rstrip(b"\r\n"))
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(1 << 20)
            if stop.is_set():
                raise Stopped
        yield raw.removesuffix(b"\n").removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf" if number == 0 else b""), cut


def image_type(head: bytes) -> str | None:
    """The media type of an image that models can look at, by its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def _image(file: BinaryIO, media_type: str, shown: str, size: int) -> ToolOutput:
    data = file.read(IMAGE_LIMIT + 1)
    if len(data) > IMAGE_LIMIT:
        raise ToolFailure(f"{shown} is an image of {size} bytes: the limit is {IMAGE_LIMIT}", executed="no")
    return ToolOutput(
        parts=(ImagePart(media_type=media_type, data=base64.b64encode(data).decode(), name=Path(shown).name),)
    )


def _refuse_binary(head: bytes, shown: str) -> None:
    if head.startswith(b"%PDF-"):
        raise ToolFailure(
            f"{shown} is a PDF, which Read does not support", hint="convert it with pdftotext", executed="no"
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolFailure(
            f"{shown} is UTF-16 text, which Read does not support", hint="convert it with iconv", executed="no"
        )
    if b"\0" in head:
        raise ToolFailure(f"{shown} is a binary file", hint="look at it with file or xxd", executed="no")


def _missing(resolved: Path, shown: str) -> ToolFailure:
    try:
        with os.scandir(resolved.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, 2000)]
    except OSError:
        return ToolFailure(f"{shown} does not exist, nor does its folder", executed="no")
    close = difflib.get_close_matches(resolved.name, names, n=3)
    hint = "did you mean " + ", ".join(close) + "?" if close else "look for it with Glob"
    return ToolFailure(f"{shown} does not exist", hint=well_formed(hint), executed="no")


__all__ = ["Read", "ReadArguments", "image_type"]
