"""Markdown as lines: growing text gives the lines of the whole, and costs only what is new."""

from __future__ import annotations

import pytest

from counterfoil.tui.paint.markdown import MarkdownLines
from counterfoil.tui.paint.palette import palette

TEXT = """# A head

A paragraph with `code`, **bold** words
that goes on, <b>html</b> and [a link](http://example.invalid/x).

1. one
2. two
   - nested

```python
def f():

    return 1
```
after the code

| a | b |
|---|---|
| 1 | 2 |

> a quote

* loose

* items
"""


def lines_of(flow: MarkdownLines, text: str) -> list[str]:
    return [strip.text for strip in flow.update(text)]


def fresh(width: int = 60) -> MarkdownLines:
    return MarkdownLines(width, palette(dark=True))


@pytest.mark.parametrize("width", [20, 60, 100])
@pytest.mark.parametrize("step", [1, 7, 50])
def test_growing_text_ends_with_the_lines_of_the_whole(width: int, step: int) -> None:
    growing = fresh(width)
    for end in range(0, len(TEXT), step):
        growing.update(TEXT[:end])
    assert lines_of(growing, TEXT) == lines_of(fresh(width), TEXT)


def test_html_is_shown_as_text_and_links_with_their_address() -> None:
    shown = "\n".join(lines_of(fresh(), TEXT))
    assert "<b>html</b>" in shown
    assert "http://example.invalid/x" in shown


def test_no_line_is_wider_than_the_screen() -> None:
    wide = TEXT + "\n\n" + "漢字" * 300 + "\n\n```\n" + "x" * 900 + "\n```\n"
    for width in (10, 33, 80):
        assert max(strip.cell_length for strip in fresh(width).update(wide)) <= width


@pytest.mark.parametrize(
    "answer",
    [(TEXT + "\n") * 120, "word " * 10_000, "```\n" + "x = 1\n" * 8_000, "* an item of a list\n" * 2_500],
    ids=["mixed", "one paragraph", "one code block", "one list"],
)
def test_a_delta_costs_the_same_at_the_end_of_a_long_answer(answer: str) -> None:
    flow = fresh(100)
    looked: list[int] = []
    for end in range(0, 50_000, 250):
        before = flow.parsed
        flow.update(answer[:end])
        looked.append(flow.parsed - before)
    assert max(looked[-50:]) <= max(max(looked[:50]), 2_750)


def test_another_text_starts_anew() -> None:
    flow = fresh()
    flow.update("# One\n\ntext")
    assert lines_of(flow, "other") == ["other"]
