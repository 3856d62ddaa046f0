"""The virtual scrollback: what is painted, what is kept, where it stands."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from counterfoil.tui.paint.card import Look
from counterfoil.tui.paint.flow import styled, wrap
from counterfoil.tui.view import ScrollbackView


class Numbers:
    """Entries of two lines each, of which every tenth is a benign notice."""

    def __init__(self, count: int) -> None:
        self.names = [f"entry {n}" for n in range(count)]
        self.versions = [0] * count
        self.streaming = ""
        self.asked = 0

    def count(self) -> int:
        return len(self.names)

    def key(self, position: int) -> Hashable:
        return position

    def position(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) and key < len(self.names) else None

    def version(self, position: int) -> Hashable:
        self.asked += 1
        return self.versions[position]

    def hidden(self, position: int, *, all_notices: bool) -> bool:
        return position % 10 == 9 and not all_notices

    def paint(self, position: int, look: Look) -> list[Strip]:
        if position == len(self.names):
            return wrap(styled((self.streaming, look.palette["text"])), look.width) if self.streaming else []
        more = ["opened"] if look.level else []
        text = "\n".join([self.names[position], "second line", *more])
        return wrap(styled((text, look.palette["text"])), look.width)

    def add(self, name: str) -> None:
        self.names.append(name)
        self.versions.append(0)


class Rig(App[None]):
    def __init__(self, source: Numbers) -> None:
        super().__init__()
        self.source = source

    def compose(self) -> ComposeResult:
        yield ScrollbackView(self.source)

    @property
    def view(self) -> ScrollbackView:
        return self.query_one(ScrollbackView)


def screen(view: ScrollbackView) -> list[str]:
    return [view.render_line(y).text.rstrip(" ┃") for y in range(view.size.height)]


async def test_it_follows_the_end_until_somebody_scrolls_up_and_then_counts_what_is_new() -> None:
    source = Numbers(8)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        assert screen(view)[-2:] == ["  entry 7", "  second line"]
        view.move(-3)
        top = screen(view)[:5]
        source.add("entry 8")
        source.add("entry 9")
        view.changed()
        assert screen(view)[:5] == top
        assert screen(view)[-1].endswith("↓ 2 new")
        view.move(100)
        assert view.following
        assert "new" not in screen(view)[-1]


async def test_what_streams_stands_at_the_end() -> None:
    source = Numbers(30)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        source.streaming = "as it comes"
        view.changed()
        assert screen(view)[-1] == "  as it comes"


@pytest.mark.parametrize("count", [20, 20_000])
async def test_a_key_costs_the_same_however_much_there_is(count: int) -> None:
    source = Numbers(count)
    async with Rig(source).run_test(size=(40, 20)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        view.focus()
        await pilot.pause()
        assert view.cache.painted <= 12
        source.asked = 0
        await pilot.press("up")
        assert source.asked < 200


async def test_an_entry_is_painted_once_for_each_version_and_width() -> None:
    source = Numbers(100)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        await pilot.pause()
        before = view.cache.painted
        for _ in range(5):
            view.changed()
            await pilot.pause()
        assert view.cache.painted == before
        source.versions[99 - 1] += 1
        view.changed()
        view.rows()
        assert view.cache.painted == before + 1


async def test_a_resize_wraps_what_is_seen_and_keeps_the_place() -> None:
    source = Numbers(5_000)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        view.move(-1_000)
        first = screen(view)[0]
        before = view.cache.painted
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        assert screen(view)[0] == first
        assert view.cache.painted - before < 40


async def test_enter_opens_and_closes_the_selected_entry() -> None:
    source = Numbers(100)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        view.focus()
        await pilot.press("up", "up", "enter")
        assert "  opened" not in screen(view)
        assert "▌ opened" in screen(view)
        await pilot.press("enter")
        assert "▌ opened" not in screen(view)


async def test_a_click_opens_the_entry_under_it() -> None:
    source = Numbers(3)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        await pilot.click(ScrollbackView, offset=(5, 2))
        assert screen(view)[2:5] == ["▌ entry 1", "▌ second line", "▌ opened"]


async def test_hidden_notices_take_no_room_and_come_back() -> None:
    source = Numbers(10)
    async with Rig(source).run_test(size=(40, 30)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        assert "  entry 9" not in screen(view)
        view.all_notices = True
        assert "  entry 9" in screen(view)


async def test_the_cache_is_bounded() -> None:
    source = Numbers(3_000)
    async with Rig(source).run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(ScrollbackView)
        view.cache._most = 100
        view.action_top()
        for _ in range(300):
            view.move(9)
            view.rows()
        assert view.cache.lines <= 100
