"""Where the person writes: several lines, history, completion of commands and files, large pastes folded."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from counterfoil.scrollback import visible

LONG_PASTE = 1_000
LONG_LINES = 8
HISTORY = 500


class Prompt(TextArea):
    """The prompt. Enter sends; shift+enter, alt+enter, ctrl+j or a backslash at the end begin a new line."""

    DEFAULT_CSS = """
    Prompt { height: auto; min-height: 3; max-height: 10; border: round $panel; padding: 0 1; background: $background; }
    Prompt:focus { border: heavy $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+enter,alt+enter,ctrl+j", "newline", "new line", show=False),
        Binding("tab", "complete", "complete, or to the scrollback", show=False, priority=True),
    ]

    class Sent(Message):
        """The person sent a prompt."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Completing(Message):
        """The word before the cursor may be completed."""

        def __init__(self, word: str, *, first: bool) -> None:
            super().__init__()
            self.word = word
            self.first = first

    class Moved(Message):
        """A key that chooses among what is offered: -1, 1, or 0 to take it. `entered`: by the key that sends."""

        def __init__(self, step: int, *, entered: bool = False) -> None:
            super().__init__()
            self.step = step
            self.entered = entered

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, tab_behavior="focus", compact=False, show_line_numbers=False)
        self.said: list[str] = []
        self.offered = False
        self._at: int | None = None
        self._draft = ""
        self._folded: dict[str, str] = {}

    # ---- sending ------------------------------------------------------------------------------------------------

    def whole(self) -> str:
        """The text with what was folded."""
        text = self.text
        for label, content in self._folded.items():
            text = text.replace(label, content)
        return text

    def put(self, text: str) -> None:
        """Replace what stands there."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def typed(self, character: str) -> None:
        """A key that was meant for here and came elsewhere: it isn't lost."""
        self.insert(character)

    def send(self) -> None:
        """Send what stands there, if anything does."""
        text = self.whole()
        if not text.strip():
            return
        if not self.said or self.said[-1] != text:
            self.said = [*self.said, text][-HISTORY:]
        self._at, self._folded = None, {}
        self.load_text("")
        self.post_message(self.Sent(text))

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._enter()
        elif event.key in ("up", "down") and self._takes(event.key):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _enter(self) -> None:
        row, column = self.cursor_location
        if self.offered and self.text.startswith("/") and "\n" not in self.text:
            self.post_message(self.Moved(0, entered=True))
        elif column and self.document[row][:column].endswith("\\"):
            self.action_delete_left()
            self.insert("\n")
        else:
            self.send()

    def _takes(self, key: str) -> bool:
        """Whether up or down chooses or goes through the history, and doesn't move the cursor."""
        step = -1 if key == "up" else 1
        row, _ = self.cursor_location
        if self.offered:
            self.post_message(self.Moved(step))
            return True
        if (step < 0 and row == 0) or (step > 0 and row == self.document.line_count - 1 and self._at is not None):
            self._back(step)
            return True
        return False

    def _back(self, step: int) -> None:
        if not self.said:
            return
        if self._at is None:
            self._at, self._draft = len(self.said), self.text
        self._at += step
        if self._at >= len(self.said):
            self._at = None
            self.put(self._draft)
            return
        self._at = max(0, self._at)
        self.put(self.said[self._at])

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take what is offered; where nothing is, go to the scrollback."""
        if self.offered:
            self.post_message(self.Moved(0))
        else:
            self.screen.focus_next()

    # ---- pasting and completing ---------------------------------------------------------------------------------

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) <= LONG_PASTE and text.count("\n") < LONG_LINES:
            self.insert(visible(text))
            return
        label = f"[pasted {text.count(chr(10)) + 1} lines, {len(text)} characters #{len(self._folded) + 1}]"
        self._folded[label] = text
        self.insert(label)

    def word(self) -> tuple[str, bool]:
        """The word before the cursor, and whether it is the first of the text."""
        row, column = self.cursor_location
        before = self.document[row][:column]
        word = before.rsplit(" ", 1)[-1]
        return word, row == 0 and word == before

    def take(self, completed: str) -> None:
        """Put `completed` in the place of the word before the cursor."""
        row, column = self.cursor_location
        word, _ = self.word()
        self.replace(completed, (row, column - len(word)), (row, column), maintain_selection_offset=False)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Ask what may be offered."""
        word, first = self.word()
        self.post_message(self.Completing(word, first=first))
