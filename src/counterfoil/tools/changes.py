"""What a change to a text looks like, and the encoding and line ends that it must keep."""

from __future__ import annotations

import difflib

import msgspec

from counterfoil.tools.text import bound, visible

DIFF_BYTES = 8_000
DIFF_INPUT_LINES = 5_000
BOM = b"\xef\xbb\xbf"


class TextFile(msgspec.Struct, frozen=True, kw_only=True):
    """A text whose line ends are line feeds, and how it stands in its file."""

    text: str
    bom: bool = False
    crlf: bool = False

    def encoded(self) -> bytes:
        """The bytes of the file. Raises `UnicodeEncodeError` for lone surrogates."""
        text = self.text.replace("\n", "\r\n") if self.crlf else self.text
        return (BOM if self.bom else b"") + text.encode()


def parse(data: bytes) -> TextFile:
    """The text in `data`. Raises `UnicodeDecodeError`. Mixed line ends are left as they are."""
    bom = data.startswith(BOM)
    text = data[len(BOM) :].decode() if bom else data.decode()
    crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
    return TextFile(text=text.replace("\r\n", "\n") if crlf else text, bom=bom, crlf=crlf)


def diff(before: str, after: str, name: str) -> str:
    """A short unified diff, for people and the model."""
    old, new = before.split("\n"), after.split("\n")
    start, old, new = _differing(old, new)
    if len(old) + len(new) > DIFF_INPUT_LINES:
        return f"[{len(old)} lines replaced by {len(new)}: too long to show]"
    lines = list(difflib.unified_diff(old, new, name, name, lineterm="", n=2))
    shown = [_moved(line, start) if line.startswith("@@") else line[:500] for line in lines]
    return visible(bound("\n".join(shown), DIFF_BYTES).text)


def _differing(old: list[str], new: list[str], around: int = 3) -> tuple[int, list[str], list[str]]:
    """The part that differs, with a few lines around it: comparing is quadratic at worst."""
    first = 0
    shortest = min(len(old), len(new))
    while first < shortest and old[first] == new[first]:
        first += 1
    last = 0
    while last < shortest - first and old[-1 - last] == new[-1 - last]:
        last += 1
    start, end = max(first - around, 0), max(last - around, 0)
    return start, old[start : len(old) - end], new[start : len(new) - end]


def _moved(header: str, by: int) -> str:
    """A hunk's header with its line numbers counted from the start of the file."""
    fields = header.split(" ")
    for at in (1, 2):
        sign, numbers = fields[at][0], fields[at][1:].split(",")
        numbers[0] = str(int(numbers[0]) + by)
        fields[at] = sign + ",".join(numbers)
    return " ".join(fields)


__all__ = ["TextFile", "diff", "parse"]
