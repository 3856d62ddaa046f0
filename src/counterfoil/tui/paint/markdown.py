"""Markdown as lines, incrementally: what is finished stays painted, and more text costs only its own block.

HTML is shown as the text that it is, links with their address; code stands behind a bar, unwrapped text in it wraps.
"""

from __future__ import annotations

import re
from copy import copy
from functools import lru_cache
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.theme import Theme
from textual.strip import Strip

from counterfoil.tui.paint.flow import BLANK, safe, styled, wrap
from counterfoil.tui.paint.palette import Palette

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$")
LONGEST_OPEN = 2_500
"""Characters of one unfinished block; what is longer is cut at a line or a word and goes on in the next."""


class MarkdownLines:
    """The lines of one text that may grow. `update` with a text that doesn't begin with the last one starts anew."""

    def __init__(self, width: int, palette: Palette) -> None:
        self._width = width
        self._palette = palette
        self._reset()

    def _reset(self) -> None:
        self._raw = ""
        self._text = ""
        self._safe = ""
        self._safe_to = 0
        self._finished = 0
        self._lines: list[Strip] = []
        self._fence: str | None = None
        self.parsed = 0
        """Characters that were looked at in all: the measure of what painting cost."""

    def update(self, text: str) -> list[Strip]:
        """The lines of `text`. The list is the caller's; finished lines in it are the same objects as before."""
        if not text.startswith(self._raw):
            self._reset()
        self._take(text)
        while self._advance_fence() if self._fence is not None else self._advance_blocks():
            pass
        rest = self._text[self._finished :]
        if self._fence is not None:
            return self._lines + (self._code(rest) if rest else [])
        start = len(rest) - len(rest.lstrip("\n"))
        if not rest.strip():
            return list(self._lines)
        return self._lines + self._gap(self._finished + start) + self._block(rest[start:])

    def painted(self, text: str) -> bool:
        """Whether `text` goes on from what was painted."""
        return text.startswith(self._raw)

    def _take(self, raw: str) -> None:
        """Make what is new of `raw` safe; the line that isn't finished each time."""
        self._raw = raw
        end = raw.rfind("\n") + 1
        if end > self._safe_to:
            self._safe += safe(raw[self._safe_to : end])
            self._safe_to = end
        self._text = self._safe + safe(raw[end:].rstrip("\r"))

    def _advance_fence(self) -> bool:
        """Move the finished lines of an open code block. True where it ended."""
        assert self._fence is not None
        end = self._text.rfind("\n", self._finished)
        if end < 0:
            return False
        for line in self._text[self._finished : end].split("\n"):
            self._finished += len(line) + 1
            self.parsed += len(line) + 1
            mark = _FENCE.match(line)
            if mark and mark[1].startswith(self._fence) and not mark[2].strip():
                self._fence = None
                return True
            self._lines += self._code(line)
        return False

    def _advance_blocks(self) -> bool:
        """Move the blocks that are finished. True where there is more to move: a code block, or text after a cut."""
        rest = self._text[self._finished :]
        cut = _cut(rest) if len(rest) > LONGEST_OPEN else 0
        rest = rest[:cut] if cut else rest
        self.parsed += len(rest)
        here = self._finished
        blocks = _blocks(rest)
        for number, (start, end) in enumerate(blocks):
            first, newline, _ = rest[start:end].partition("\n")
            if newline and (mark := _FENCE.match(first)):
                self._lines += self._gap(here + start)
                self._fence = mark[1]
                self._finished = here + start + len(first) + 1
                return True
            if number == len(blocks) - 1 and not cut:
                self._finished = here + start
                return False
            self._lines += self._gap(here + start) + self._block(rest[start:end])
            self._finished = here + end
        if cut:
            self._finished = here + cut
        return bool(cut)

    def _gap(self, place: int) -> list[Strip]:
        """A blank line, where one stands in the text before `place`."""
        return [BLANK] if self._lines and self._text.endswith("\n\n", 0, place) else []

    def _code(self, line: str) -> list[Strip]:
        text = styled((line, self._palette["code"]))
        bar = Segment("│ ", self._palette["muted"])
        wrapped = wrap(text, max(1, self._width - 2)) or [BLANK]
        return [Strip([bar, *strip]) for strip in wrapped]

    def _block(self, source: str) -> list[Strip]:
        first, newline, body = source.partition("\n")
        if mark := _FENCE.match(first):
            lines = body.rstrip("\n").split("\n") if newline else []
            if lines and (end := _FENCE.match(lines[-1])) and end[1].startswith(mark[1]):
                lines.pop()
            return [strip for line in lines for strip in self._code(line)]
        return _painted(source, self._width, self._palette)


def _cut(text: str) -> int:
    """Where a block that is too long is cut: after a paragraph, a line, or a word."""
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, LONGEST_OPEN // 2, LONGEST_OPEN)
        if place > 0:
            return place + len(mark)
    return LONGEST_OPEN


def _blocks(text: str) -> list[tuple[int, int]]:
    """Where each block begins and ends; each item of a list is a block."""
    rows: list[int] = []
    for token in _parser().parse(text):
        if token.map is None or token.nesting < 0:
            continue
        listed = token.type == "list_item_open" and token.level == 1
        if (token.level == 0 and not token.type.endswith("list_open")) or listed:
            rows.append(token.map[0])
    if not rows:
        return []
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    places = [offsets[row] for row in dict.fromkeys(rows)]
    return list(zip(places, [*places[1:], len(text)], strict=True))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


class _Heading(Heading):
    """A heading where text begins, not in the middle."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Plain(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Heading}


_EMPTY = _Plain("", hyperlinks=False)
"""Made once: a parser comes with each, and the blocks are parsed by ours."""


def _painted(source: str, width: int, palette: Palette) -> list[Strip]:
    markdown = copy(_EMPTY)
    markdown.parsed = _parser().parse(source)
    for token in markdown.parsed:
        token.info = "text" if token.type == "fence" else token.info
    console = _console(palette.dark)
    rows = console.render_lines(markdown, console.options.update(width=max(4, width)), pad=False)
    lines = [_trimmed([Segment(s.text, s.style) for s in row if s.text and not s.control]) for row in rows]
    while lines and not lines[0].text.strip():
        lines.pop(0)
    while lines and not lines[-1].text.strip():
        lines.pop()
    return [line.crop(0, width) if line.cell_length > width else line for line in lines]


def _trimmed(segments: list[Segment]) -> Strip:
    while segments and not segments[-1].text.strip():
        segments.pop()
    if segments:
        segments[-1] = Segment(segments[-1].text.rstrip(), segments[-1].style)
    return Strip(segments)


@lru_cache(maxsize=2)
def _console(dark: bool) -> Console:
    palette = Palette(dark=dark)
    heading = palette["heading"]
    styles = {
        **{f"markdown.h{level}": heading for level in range(1, 7)},
        "markdown.paragraph": palette["text"],
        "markdown.code": palette["code"],
        "markdown.code_block": palette["code"],
        "markdown.block_quote": palette["muted"],
        "markdown.item.bullet": palette["accent"],
        "markdown.item.number": palette["accent"],
        "markdown.link": palette["link"],
        "markdown.link_url": palette["link"],
        "markdown.hr": palette["muted"],
    }
    return Console(
        width=80, color_system="truecolor", force_terminal=True, legacy_windows=False, theme=Theme(styles), emoji=False
    )
