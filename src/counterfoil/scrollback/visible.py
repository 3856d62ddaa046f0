"""Text that a terminal only shows and never executes: what acts or hides made visible, over-long lines cut."""

from counterfoil.events.visible import visible, visible_line

LONGEST = 2_000
"""Characters of one line that are shown, where nobody says otherwise."""


def shown_lines(text: str, longest: int = LONGEST) -> list[str]:
    """`text` as lines that are safe to show, none much longer than `longest`: what is cut off is counted."""
    return [_cut(line, longest) for line in visible(text).split("\n")]


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[:longest]} … {len(line) - longest} more characters"


__all__ = ["LONGEST", "shown_lines", "visible", "visible_line"]
