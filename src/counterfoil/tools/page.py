"""A fetched page as text that a model can read."""

from __future__ import annotations

import re

from counterfoil.errors import ToolFailure
from counterfoil.tools.text import clean

HTML_LIMIT = 2 * 1024 * 1024
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|javascript|toml|x-ndjson|x-yaml|x-sh|sql)\b|^$")
_SILENT = ("script", "style", "noscript", "template", "svg", "iframe", "object")


def readable(data: bytes, media_type: str, charset: str | None = None) -> str:
    """HTML as Markdown, other text as it is. Raises `ToolFailure` for what isn't text."""
    if media_type not in _HTML and not _TEXT.match(media_type):
        raise ToolFailure(f"the answer is {media_type}, not text")
    if b"\0" in data[:8192]:
        raise ToolFailure("the answer is binary data, not text")
    text = _decoded(data, charset)
    if media_type in _HTML or (not media_type and text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))):
        return clean(_markdown(text[:HTML_LIMIT]))
    return clean(text)


def _decoded(data: bytes, charset: str | None) -> str:
    if charset is None and (declared := re.search(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", data[:4096], re.I)):
        charset = declared[1].decode("ascii", "replace")
    try:
        return data.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")


def _markdown(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    try:
        soup = BeautifulSoup(html, "html.parser")
        for tag in soup(_SILENT):
            tag.decompose()
        text: str = MarkdownConverter(heading_style="ATX").convert_soup(soup)
    except RecursionError:
        text = re.sub(r"<[^<>]{0,10000}>", " ", html)
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n\s*\n\s*\n+", "\n\n", text)).strip()


__all__ = ["readable"]
