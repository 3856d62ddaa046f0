"""What the terminal client costs, however long the session is.

    python benchmarks/terminal.py [ENTRIES …]

For sessions of 10, 1 000 and 10 000 entries, each in a process of its own: the time until it is open and painted,
from a key in the prompt and in the scrollback to its paint, for a resize, and the memory. Then a streamed answer of
50 KB: what a delta costs at its beginning and at its end. The driver is headless: nothing is written to a terminal.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from textual import events
from textual.geometry import Size

from counterfoil import events as ev
from counterfoil.tui.app import CounterfoilApp
from tests.tui.played import RUN, SESSION, Played, accepted, begun, finished, said

COUNTS = (10, 1_000, 10_000)
KEYS = 40
ROUNDS = 3
WORDS = "Some **words** of an answer with `code` in it, and a list:\n\n* one\n* two\n\n"


def session(count: int) -> list[ev.Event]:
    made: list[ev.Event] = begun()
    for number in range(count // 3):
        name = str(number)
        made += [
            ev.UserPrompt(parts=ev.text_parts(f"Prompt {number}")),
            said(WORDS * 2, number + 1),
            accepted(name, "Bash", {"command": f"make test-{number}"}),
            finished(name, "line\n" * 30),
        ]
    return made


class Watched(CounterfoilApp):
    """The client, which says when it has painted."""

    def __init__(self, link: Played) -> None:
        super().__init__(link, session=SESSION)
        self.painted = asyncio.Event()

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.painted.set()


async def to_paint(app: Watched, widget: Any, event: events.Event) -> float:
    """Milliseconds from an event to the paint that it makes."""
    await asyncio.sleep(0.02)
    app.painted.clear()
    begun_at = time.perf_counter()
    widget.post_message(event)
    await asyncio.wait_for(app.painted.wait(), 5)
    return (time.perf_counter() - begun_at) * 1000


async def typed(app: Watched, widget: Any, *keys: str) -> float:
    """The median over rounds of the median key."""
    widget.focus()
    await asyncio.sleep(0.2)
    rounds = []
    for _ in range(ROUNDS):
        pressed = [events.Key(key, key if len(key) == 1 else None) for _ in range(KEYS // len(keys)) for key in keys]
        rounds.append(statistics.median([await to_paint(app, app, key) for key in pressed]))
    return statistics.median(rounds)


async def resized(app: Watched) -> float:
    """Milliseconds from a resize of the window to its paint."""
    times = []
    for number in range(6):
        size = Size(120 if number % 2 else 100, 40)
        app._driver._size = size  # type: ignore[union-attr]
        times.append(await to_paint(app, app, events.Resize(size, size)))
        await asyncio.sleep(0.3)
    return statistics.median(times)


async def measured(count: int) -> dict[str, float]:
    link = Played(session(count))
    app = Watched(link)
    began = time.perf_counter()
    async with app.run_test(size=(120, 40)):
        while not (link.taken and app.feed.count() >= count // 3 * 3):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        app.settle()
        app.painted.clear()
        await asyncio.wait_for(app.painted.wait(), 5)
        opened = time.perf_counter() - began
        return {
            "entries": app.feed.count(),
            "open": opened,
            "key": await typed(app, app.prompt, "x"),
            "move": await typed(app, app.view, "up", "down"),
            "resize": await resized(app),
            "memory": resident(),
        }


def resident() -> float:
    """MB that the process has in memory now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def streamed() -> tuple[float, float, float]:
    """Microseconds of one delta of a 50 KB answer: over its first and last tenth; and seconds of all."""
    answer = (WORDS + "```python\ndef f():\n    return 1\n```\n\n" + "A long line of prose. " * 20 + "\n\n") * 80
    app = CounterfoilApp(Played(begun()), session=SESSION)
    costs = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.2)
        app.feed.apply(
            ev.Envelope(session_id=SESSION, run_id=RUN, event=ev.TurnStarted(turn=1, provider="p", model="m"))
        )
        for seq, at in enumerate(range(0, 50_000, 25), 1):
            delta = ev.MessageDelta(turn=1, text=answer[at : at + 25])
            begun_at = time.perf_counter()
            app.feed.apply(ev.Envelope(session_id=SESSION, run_id=RUN, seq=seq, event=delta))
            app.view.changed()
            for y in range(app.view.size.height):
                app.view.render_line(y)
            costs.append(time.perf_counter() - begun_at)
    tenth = len(costs) // 10
    return statistics.mean(costs[:tenth]) * 1e6, statistics.mean(costs[-tenth:]) * 1e6, sum(costs)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(asyncio.run(measured(int(sys.argv[2])))))
        return
    counts = [int(text) for text in sys.argv[1:]] or COUNTS
    print(f"{'entries':>8} {'open, s':>8} {'key, ms':>8} {'move, ms':>9} {'resize, ms':>11} {'RSS, MB':>8}")
    rows = []
    for count in counts:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(count)], check=True, capture_output=True, text=True
        )
        row = json.loads(done.stdout)
        rows.append(row)
        print(
            f"{row['entries']:>8} {row['open']:>8.2f} {row['key']:>8.1f} {row['move']:>9.1f} "
            f"{row['resize']:>11.1f} {row['memory']:>8.0f}",
            flush=True,
        )
    for name in ("key", "move"):
        print(f"{name}: the longest session costs {rows[-1][name] / rows[0][name]:.2f} × the shortest")
    first, last, whole = asyncio.run(streamed())
    print(
        f"50 KB streamed in 2 000 deltas, each painted: {first:.0f} µs at first, {last:.0f} µs at last, {whole:.1f} s"
    )


if __name__ == "__main__":
    main()
