"""Text that would like to be executed: whatever a tool, a hook or a model says, a terminal only shows it."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from textual.strip import Strip

from counterfoil import events as ev
from counterfoil.scrollback.edits import of_edit
from counterfoil.tui.app import CounterfoilApp
from counterfoil.tui.feed import Feed
from counterfoil.tui.paint.card import Look
from counterfoil.tui.paint.diff import summary
from counterfoil.tui.paint.palette import palette
from tests.tui.played import RUN, SESSION, Played, accepted, asks, begun, finished, hook, said
from tests.tui.rig import SetTime, until

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
SEQUENCES = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;AAAA\x1b\\",
    "\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x9b31m",
    "\x1b[?1049l",
    "\x1b[6n",
    "\r\x1b[K",
    "a\b\b\b",
]
BIDI = "".join(map(chr, [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
WIDE = "漢字かな👩‍👩‍👧‍👦🇩🇪ｆｕｌｌ" * 40
RTL = "שלום عليكم " * 40
LONG = "x" * 10_000
HOSTILE = {
    "controls": CONTROLS,
    "sequences": " ".join(SEQUENCES),
    "bidi": f"safe{BIDI}exe.txt",
    "wide": WIDE,
    "right to left": RTL,
    "long": LONG,
    "lone surrogates": "\ud800 \udfff",
    "combining": "z" + "\u0301" * 200,
    "markup": "[red]x[/red] [link=http://x]y[/link] [@click=app.quit]z[/]",
}
BAD = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def everywhere(text: str) -> list[ev.Event]:
    """Every kind of entry, with `text` in each field that somebody else writes."""
    arguments = {"file_path": text, "old_string": text, "new_string": text + "!", "command": text, text[:50]: [text]}
    return [
        *begun(text[:200]),
        ev.UserPrompt(parts=ev.text_parts(text)),
        ev.UserPrompt(parts=(ev.ImagePart(media_type="image/png", data="", name=text),)),
        said(text, reasoning=text),
        said(f"# {text}\n\n```{text}\n{text}\n```\n\n* {text}\n\n[a]({text}) `{text}`", 2),
        accepted("a", text[:60] or "x", arguments),
        hook("one", "a", "blocking", "blocked", text, diff=f"-{text}\n+{text}"),
        asks("a", "Edit", arguments, text, rule=text),
        accepted("b", "Edit", arguments, position=1),
        finished("b", text, "error"),
        hook("two", None, "conflict", "notice", text),
        ev.Notice(severity="warning", code="x", text=text),
        ev.RunFinished(run_id=RUN, stop_reason="provider_error", error=ev.ErrorInfo(code="x", message=text, hint=text)),
    ]


def check(strips: list[Strip], width: int) -> None:
    for strip in strips:
        assert not BAD.search(strip.text), repr(strip.text)
        assert cell_len(strip.text) <= width, repr(strip.text)
        for segment in strip:
            assert segment.control is None
            assert segment.style is None or (segment.style.link is None and not segment.style.meta)


@pytest.mark.parametrize("width", [20, 77, 117])
@pytest.mark.parametrize("name", HOSTILE)
def test_every_entry_shows_it_harmlessly_at_any_width_and_level(name: str, width: int) -> None:
    feed = Feed(SESSION)
    link = Played(everywhere(HOSTILE[name]))
    while not link.taken:
        feed.apply(link._queue.get_nowait())
    assert feed.count() >= 9
    for level in (0, 1, 2):
        look = Look(width=width, palette=palette(dark=True), level=level, all_notices=True)
        for position in range(feed.count() + 1):
            check(feed.paint(position, look), width)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "lone surrogates"])
async def test_the_screen_keeps_its_layout_and_sends_no_control_of_theirs(name: str) -> None:
    link = Played(everywhere(HOSTILE[name]))
    app = CounterfoilApp(link, session=SESSION, clock=SetTime())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: link.taken and len(app.screen_stack) == 2)
        compositor = app.screen._compositor
        for strip in compositor.render_strips():
            assert strip.cell_length == 80
            assert not BAD.search(strip.text), repr(strip.text)
        await pilot.press("f1")
        await until(pilot, lambda: len(app.screen_stack) == 3)


async def test_a_toast_shows_markup_as_text() -> None:
    app = CounterfoilApp(Played(begun()), session=SESSION)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.say("[@click=app.quit]x[/] \x1b[2J")

        def screen() -> str:
            return "\n".join(strip.text for strip in app.screen._compositor.render_strips())

        await until(pilot, lambda: "[@click=app.quit]x[/] ␛[2J" in screen())
        assert "\x1b" not in screen()


@pytest.mark.parametrize(
    ("content", "lines", "counted"),
    [
        ("hello\n", ["+hello"], "+1 −0"),
        ("a\n\nb", ["+a", "+", "+b", "\\ no line end at the end"], "+3 −0"),
        ("\n", ["+"], "+1 −0"),
        ("", ["\\ no line end at the end"], "+0 −0"),
    ],
)
def test_a_written_file_is_counted_by_its_lines(content: str, lines: list[str], counted: str) -> None:
    found = of_edit("Write", {"file_path": "a", "content": content})
    assert found == lines and summary(found) == counted
