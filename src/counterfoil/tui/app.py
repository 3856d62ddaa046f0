"""The terminal client: one session on the screen, what comes of it, and what the person does."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.filter import Monochrome
from textual.timer import Timer
from textual.widgets import Static

from counterfoil import events as ev
from counterfoil.errors import CounterfoilError
from counterfoil.identity import SessionID
from counterfoil.scrollback import visible
from counterfoil.tui import commands, complete
from counterfoil.tui.asks import Asking
from counterfoil.tui.feed import Feed
from counterfoil.tui.link import Link, Notices
from counterfoil.tui.prompt import Prompt
from counterfoil.tui.status import Standing, StatusLine
from counterfoil.tui.themes import DARK, LIGHT, NAMES, NoColours
from counterfoil.tui.view import ScrollbackView

FRAME = 1 / 30
"""Seconds between two looks at what came: many events make one paint."""
AT_REST = 0.1
"""Seconds after the last change of the window's size."""
AGAIN = 2.0
"""Seconds in which a second ctrl+c quits."""


class CounterfoilApp(App[None]):
    """The client on one link."""

    TITLE = "counterfoil"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #offers { height: auto; max-height: 8; padding: 0 2; background: $panel; display: none; }
    #offers.open { display: block; }
    ToastRack { align: right top; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "all keys", priority=True),
        Binding("f9", "notices", "notices", priority=True),
        Binding("escape", "escape", "interrupt"),
        Binding("ctrl+g", "editor", "write in $EDITOR"),
        Binding("ctrl+c", "quit_twice", "quit", priority=True, show=False),
        Binding("ctrl+d", "quit_empty", "quit", show=False, priority=True),
        Binding("ctrl+t", "calls", "calls", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
    ]

    def __init__(
        self, link: Link, *, session: SessionID | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.link = link
        link.told = self._told
        self._connection = link.connection
        self.clock = clock
        self.feed = Feed(session or SessionID(""))
        self.asking = Asking(self)
        self.view = ScrollbackView(self.feed, id="scrollback")
        self.prompt = Prompt(id="prompt")
        self._offers_box = Static("", id="offers", markup=False)
        self._status = StatusLine(id="status")
        self._wanted = session
        self._opened = False
        self._scheduled = False
        self._settling: Timer | None = None
        self._filled = 0
        self._pressed = float("-inf")
        self._notices: Notices = "config"
        self._offers: list[tuple[str, str]] = []
        self._offered = 0
        self._files: list[str] | None = None
        if self.no_color:
            self._filters = [f for f in self._filters if not isinstance(f, Monochrome)] + [NoColours()]

    def compose(self) -> ComposeResult:
        yield self.view
        with Vertical(id="below"):
            yield self._offers_box
            yield self.prompt
            yield self._status

    async def on_mount(self) -> None:
        """Take theme and settings, and open the session that is wanted."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.view.styles.height = "1fr"
        self.query_one("#below").styles.height = "auto"
        self.set_theme(self.link.defaults.theme)
        self._notices = self.link.defaults.notices
        self.view.all_notices = self._all_notices()
        self.prompt.focus()
        for warning in self.link.defaults.warnings:
            self.say(warning, severity="warning")
        if self._wanted is not None:
            await self.open(self._wanted)
        self.settle()

    # ---- parts --------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is being driven."""
        return self._opened and self.link.running

    def say(self, text: str, *, severity: Any = "information") -> None:
        """Tell the person something that isn't in the log."""
        self.notify(visible(text), severity=severity, markup=False)

    def set_theme(self, name: str) -> None:
        """`dark` or `light`."""
        self.theme = NAMES[name]
        self.view.dark = name == "dark"
        self.refresh(layout=False)

    # ---- the session --------------------------------------------------------------------------------------------

    async def open(self, session: SessionID | None) -> None:
        """Open a session, or a new one, and follow it."""
        try:
            opened = await self.link.open(session)
        except CounterfoilError as fault:
            self.say(str(fault), severity="error")
            return
        self.workers.cancel_group(self, "follow")
        self.asking.forget()
        self.feed = Feed(opened)
        self._opened, self._filled = True, 0
        self.view.show(self.feed)
        self.follow()

    @work(group="follow", exclusive=True)
    async def follow(self) -> None:
        """Take what the session says, from its first event on."""
        feed = self.feed
        try:
            async for envelope in self.link.watch():
                if feed.apply(envelope):
                    self._came(envelope)
        except CounterfoilError as fault:
            self.say(str(fault), severity="error")
            self.settle()

    def _came(self, envelope: ev.Envelope) -> None:
        event = envelope.event
        if isinstance(event, ev.TurnFinished):
            self._filled = event.usage.input_tokens + event.usage.output_tokens
        self._told()

    def _told(self) -> None:
        """Something changed: many such make one paint. A connection that is lost, or back, is told over any screen."""
        if self.link.connection != self._connection and self.is_running:
            lost = "lost" in self.link.connection
            self._connection = self.link.connection
            self.say("the server is gone: reconnecting" if lost else "connected again", severity="warning")
        if not self._scheduled and self.is_running:
            self._scheduled = True
            self.set_timer(FRAME, self.settle)

    def settle(self) -> None:
        """Show how things stand."""
        self._scheduled = False
        if not self.is_running:
            return
        self.view.changed()
        self._status.standing = self.standing()
        self.asking.look()

    def standing(self) -> Standing:
        """What the status line says."""
        session, begin = self.feed.seen.session, self.link.defaults
        model = session.model or begin.model
        status = "running" if self.running and session.status != "awaiting" else session.status
        return Standing(
            session=self.feed.seen.root,
            title=session.title,
            model=model,
            mode=session.mode if session.complete else begin.mode,
            state=status,
            connection=self.link.connection,
            tokens=session.usage.input_tokens + session.usage.output_tokens,
            cost=self.link.cost(session.provider or begin.provider, model, session.usage),
            context=self._filled / self.link.window(model) if self._filled else None,
            asks=len(self.feed.open_asks),
            hidden=self.feed.hidden_count(),
            all_notices=self.view.all_notices,
        )

    async def ready(self) -> None:
        """Have a session open: a new one where none is."""
        if not self._opened:
            await self.open(None)

    async def guarded(self, work: Awaitable[object]) -> None:
        """Do `work`; where it is refused, say why."""
        try:
            await work
        except CounterfoilError as fault:
            self.say(str(fault), severity="error")

    async def send(self, text: str) -> None:
        """Give the session a prompt: it starts a run, or steers the one that runs."""
        await self.ready()
        await self.link.prompt(text)
        self.view.action_tail()
        self.wait_for_end()

    @work(group="end", exclusive=True)
    async def wait_for_end(self) -> None:
        """Say what a run couldn't record itself, and how things stand after it."""
        try:
            await self.link.ended()
        except CounterfoilError as fault:
            self.say(str(fault), severity="error")
        self.settle()

    # ---- the prompt ---------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    async def _sent(self, message: Prompt.Sent) -> None:
        try:
            if message.text.startswith("/") and not message.text.startswith("//"):
                await commands.run(self, message.text)
            else:
                await self.send(message.text)
        except CounterfoilError as fault:
            hint = f" ({fault.hint})" if fault.hint else ""
            self.say(f"{fault}{hint}", severity="error")
            if not self.prompt.text:
                self.prompt.put(message.text)

    @on(Prompt.Completing)
    def _completing(self, message: Prompt.Completing) -> None:
        offers: list[tuple[str, str]] = []
        if message.first and message.word.startswith("/"):
            offers = complete.commands(message.word, commands.known())
            if [text for text, _ in offers] == [message.word]:
                offers = []
        elif message.word.startswith("@") and len(message.word) > 1:
            if self._files is None:
                begin = self.link.defaults
                self._files = complete.workspace_files(Path(begin.workspace)) if begin.here else []
            offers = complete.files(message.word, self._files)
        self._offers, self._offered = offers, 0
        self._show_offers()

    @on(Prompt.Moved)
    def _moved(self, message: Prompt.Moved) -> None:
        whole = self.prompt.text.removeprefix("/") in dict(commands.known())
        if message.entered and (whole or not self._offers):
            self.prompt.send()
            return
        if not self._offers:
            return
        if message.step:
            self._offered = (self._offered + message.step) % len(self._offers)
            self._show_offers()
            return
        word, _ = self._offers[self._offered]
        self._offers = []
        self._show_offers()
        self.prompt.take(word)

    def _show_offers(self) -> None:
        self.prompt.offered = bool(self._offers)
        self._offers_box.set_class(bool(self._offers), "open")
        text = Text(no_wrap=True)
        for at, (word, what) in enumerate(self._offers):
            mark, style = ("❯", "bold") if at == self._offered else (" ", "")
            text.append(f"{mark} {word.strip():<14} ", style)
            text.append(f"{what}\n")
        self._offers_box.update(text)

    # ---- keys ---------------------------------------------------------------------------------------------------

    async def action_escape(self) -> None:
        """Close what is offered; else leave the scrollback; else interrupt the run."""
        if self._offers:
            self._offers = []
            self._show_offers()
        elif self.view.has_focus:
            self.view.selected = None
            self.view.action_tail()
            self.prompt.focus()
        elif self.running:
            await self.link.cancel()
            self.say("interrupted")

    async def action_notices(self) -> None:
        """What is benign: hidden, shown, or as configured. What warns, blocks or contradicts is always shown."""
        configured = self.link.defaults.configured
        other: Notices = "all" if configured == "important" else "important"
        following: dict[Notices, Notices] = {"important": "all", "all": "config", "config": other}
        self._notices = following[self._notices]
        self.view.all_notices = self._all_notices()
        if self._notices == "config":
            self.say(f"notices: as configured ({configured})")
        self.settle()
        await self.link.keep("notices", self._notices)

    def _all_notices(self) -> bool:
        return (self.link.defaults.configured if self._notices == "config" else self._notices) == "all"

    async def action_help(self) -> None:
        """Show all keys and commands."""
        await commands.run(self, "/help")

    async def action_calls(self) -> None:
        """Show all calls."""
        await commands.run(self, "/toolcalls")

    def action_page(self, direction: int) -> None:
        """Page the scrollback from the prompt."""
        self.view.action_page(direction)

    def action_quit_twice(self) -> None:
        """The first press clears the prompt; a second one soon after quits."""
        now = self.clock()
        if now - self._pressed < AGAIN:
            self.exit()
            return
        self._pressed = now
        self.prompt.put("")
        self.say("ctrl+c again quits" + (": the run is interrupted" if self.running else ""))

    def action_quit_empty(self) -> None:
        """Quit, where nothing is written."""
        if self.prompt.text or len(self.screen_stack) > 1:
            self.prompt.action_delete_right()
        else:
            self.exit()

    def action_editor(self) -> None:
        """Write the prompt in the person's editor."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.NamedTemporaryFile("w+", suffix=".md", encoding="utf-8") as file:
            file.write(self.prompt.whole())
            file.flush()
            with self.suspend():  # nothing may be raised in here: the terminal would stay as the editor has it
                fault = _edit(editor, file.name)
            written = Path(file.name).read_text(encoding="utf-8", errors="replace")
        if fault:
            self.say(f"{fault}: the prompt stays as it was", severity="warning")
        else:
            self.prompt.put(written.rstrip("\n"))

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew what is seen; and paint all of it once the window is at rest.

        A window that is back at its size before anybody looked counts as unchanged, and has lost what stood there.
        """
        self.view.changed()
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(AT_REST, self._repaint)

    def _repaint(self) -> None:
        self._settling = None
        for screen in self.screen_stack:
            screen.refresh()

    async def on_unmount(self) -> None:
        """Close the session in good order."""
        await self.link.close()


def _edit(editor: str, path: str) -> str:
    """Run the person's editor on a file. What went wrong, or nothing."""
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as fault:
        return f"$EDITOR {editor!r} can't be started ({fault})"
    return f"{editor} ended with {code}" if code else ""
