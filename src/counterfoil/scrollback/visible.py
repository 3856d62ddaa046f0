"""Text that a terminal only shows and never executes: control characters made visible."""

from __future__ import annotations

from counterfoil.events.visible import visible


def visible_line(text: str) -> str:
    """`text` on one line: as `visible`, with newlines and tabs made visible too."""
    return visible(text).replace("\n", "␤").replace("\t", "␉")


__all__ = ["visible", "visible_line"]
