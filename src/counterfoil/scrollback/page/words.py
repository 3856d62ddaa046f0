"""Text on its way into HTML: every character visible, every special one escaped."""

from __future__ import annotations

import datetime
import html
import json
from functools import cache
from typing import Any

from counterfoil.scrollback.visible import visible, visible_line

MAX_SHOWN = 200_000
"""Characters of one text on the page; what is left out is said."""


def line(text: object) -> str:
    """Text of one line."""
    return html.escape(visible_line(str(text)))


def block(text: str) -> str:
    """Text of many lines, as it stands."""
    cut = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n[… {len(text) - MAX_SHOWN} characters more]"
    return f"<pre>{html.escape(visible(cut))}</pre>"


def pretty(value: Any) -> str:
    """A JSON value as people read it."""
    return block(json.dumps(value, indent=2, ensure_ascii=False))


def identity(value: object) -> str:
    """An id that can be copied."""
    shown = line(value)
    button = f'<button type="button" data-copy="{shown}" aria-label="copy {shown}">copy</button>'
    return f'<span class="id">{shown}{button}</span>'


def when(micros: int) -> str:
    """A time, UTC."""
    if not micros:
        return ""
    at = datetime.datetime.fromtimestamp(micros / 1e6, tz=datetime.UTC)
    return f'<time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M:%S} UTC</time>'


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def prose(text: str) -> str:
    """Markdown of a model: no markup of its own, no images, no links but to web pages."""
    cut = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n\n[… {len(text) - MAX_SHOWN} characters more]"
    rendered: str = _markdown().render(visible(cut))
    return rendered.replace("<a href=", '<a rel="noreferrer noopener" href=')
