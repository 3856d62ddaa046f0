"""Asks for one line of text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label


class NameScreen(ModalScreen[None]):
    """One line: enter takes it, esc goes back."""

    DEFAULT_CSS = """
    NameScreen { align: center middle; }
    NameScreen Vertical { height: auto; width: 70%; border: heavy $primary; background: $surface; }
    NameScreen Label { width: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back", priority=True)]

    def __init__(self, what: str, taken: Callable[[str], Awaitable[None]]) -> None:
        super().__init__()
        self._what = what
        self._taken = taken

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._what, markup=False)
            yield Input()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it."""
        event.stop()
        self.dismiss()
        if event.value.strip():
            await self._taken(event.value)
