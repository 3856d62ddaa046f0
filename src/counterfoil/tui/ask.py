"""The overlay that asks: exactly what would run, why, for whom, and one key for each choice."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input, Label

from counterfoil.events import Ask, Scope, Verdict
from counterfoil.scrollback import CallView, visible_line
from counterfoil.scrollback.edits import of_values
from counterfoil.tui import words
from counterfoil.tui.guard import Guard
from counterfoil.tui.paint.card import COLOURS, Look, arguments, diff_lines, plain_lines
from counterfoil.tui.paint.flow import BLANK, styled, wrap
from counterfoil.tui.paint.palette import Name
from counterfoil.tui.sheet import Sheet


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An ask with what a person should know of it."""

    ask: Ask
    root: bool = True
    call: CallView | None = None
    preview: str = ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the person chose for one ask."""

    ask: Ask
    verdict: Verdict
    scope: Scope = "once"
    note: str = ""
    rule: str = ""


Wanted = Literal["note", "rule"]


_LINES: dict[Wanted, str] = {
    "note": "note to the model, enter sends it, esc goes back",
    "rule": "the rule that is learned, enter learns it, esc goes back",
}


def choices(ask: Ask) -> dict[str, tuple[Verdict, Scope | Wanted, str]]:
    """The keys that answer `ask`: verdict, scope or that a line is wanted, and what it is called."""
    if "release" in ask.choices or "withhold" in ask.choices:
        return {"r": ("release", "once", "release once"), "w": ("withhold", "once", "withhold")}
    found: dict[str, tuple[Verdict, Scope | Wanted, str]] = {"y": ("allow", "once", "yes, once")}
    if ask.rule is not None:
        found |= {"s": ("allow", "session", "this session"), "a": ("allow", "always", "always")}
        found |= {"t": ("allow", "rule", "other rule")}
    return found | {"n": ("deny", "once", "no"), "e": ("deny", "note", "no, with a note")}


def body(question: Question, look: Look) -> list[Strip]:
    """What a person must see before answering."""
    ask = question.ask
    held = "release" in ask.choices
    whole = msgspec.structs.replace(look, level=2)
    origin = "this session" if question.root else f"child {ask.origin_session_id}"
    facts: list[tuple[str, str, Name]] = [("tool", ask.tool, "strong"), ("why", ask.reason, "warn")]
    facts.append(("origin", origin, "text"))
    if ask.rule is not None:
        facts.append(("s and a would learn", ask.rule, "accent"))
    lines = [strip for name, text, colour in facts for strip in _fact(name, text, colour, look)]
    lines += _concerns(question, look)
    lines += _fact("exactly this", "", "muted", look) + arguments(ask.tool, ask.arguments, whole)
    call = question.call
    if call is not None and call.effective is not None:
        lines += _fact("changed by hooks", "", "accent", look)
        lines += diff_lines(of_values(call.arguments, call.effective), whole)
    if held:
        lines += _held(question, whole)
    return [*lines, *_fact("call", f"{ask.tool_call_id}  {ask.ask_id}", "muted", look)]


def _fact(name: str, text: str, colour: Name, look: Look) -> list[Strip]:
    return wrap(
        styled((f"{name}: ", look.palette["muted"]), (visible_line(text), look.palette[colour])),
        look.width,
        indent=2,
        first=0,
    )


def _concerns(question: Question, look: Look) -> list[Strip]:
    """What reviews of this call found, most severe first."""
    if question.call is None:
        return []
    lines: list[Strip] = []
    for record in words.sorted_records(question.call):
        if record.review is not None:
            about = ", ".join(record.review.categories)
            text = words.record(record) + (f" ({about})" if about else "")
            lines += _fact("review", text, COLOURS[record.severity], look)
    return lines


def _held(question: Question, look: Look) -> list[Strip]:
    size = question.ask.result_size
    lines = _fact("held", f"the result exists and is kept back: {size} bytes", "warn", look)
    if not question.preview:
        return [*lines, *_fact("preview", "none can be shown here", "muted", look)]
    head = _fact("preview", "UNTRUSTED: it comes from outside; the beginning of it:", "bad", look)
    return [*lines, BLANK, *head, *plain_lines(question.preview, look)]


class AskScreen(ModalScreen[Said | None]):
    """Puts one question. Ends with what was chosen, or with None where it stays open."""

    DEFAULT_CSS = """
    AskScreen { align: center bottom; background: $background 30%; }
    AskScreen Vertical { height: auto; max-height: 85%; width: 1fr; border: heavy $warning; background: $surface; }
    AskScreen Label { width: 1fr; padding: 0 1; background: $surface; }
    AskScreen #title { text-style: bold; color: $warning; }
    AskScreen #keys { text-style: bold; }
    AskScreen Sheet { height: auto; max-height: 100%; background: $surface; }
    AskScreen Input { display: none; border: heavy $primary; }
    AskScreen Input.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", "up"),
        Binding("down", "scroll(1)", "down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("pagedown", "page(1)", "page down"),
    ]
    AUTO_FOCUS = ""

    def __init__(
        self,
        question: Question,
        place: tuple[int, int],
        *,
        clock: Callable[[], float] = time.monotonic,
        typed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self.question = question
        self._place = place
        self._keys = choices(question.ask)
        self._guard = Guard(clock)
        self._typed = typed
        self._shown_at = float("inf")
        self._over = False
        self._wanted: Wanted | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._heading(), id="title", markup=False)
            yield Sheet(lambda look: body(self.question, look))
            yield Input(id="line", select_on_focus=False)
            yield Label(self._offer(), id="keys", markup=False)

    def on_mount(self) -> None:
        """From the first paint on the question counts as shown."""
        self.call_after_refresh(self._now_shown)

    def _now_shown(self) -> None:
        self._shown_at = time.monotonic()
        self._guard.shown()

    def _heading(self) -> str:
        what = "a result is held" if "r" in self._keys else "needs your approval"
        at, of = self._place
        return f"{visible_line(self.question.ask.tool)}: {what}   {at} of {of}"

    def _offer(self) -> str:
        offers = [*(f"[{key}] {name}" for key, (_, _, name) in self._keys.items()), "[esc] later"]
        at = next((n for n, key in enumerate(self._keys) if key == "n"), 0) if "a" in self._keys else 0
        return "\n".join("  ".join(line) for line in (offers[:at], offers[at:]) if line)

    def requeue(self, at: int, of: int) -> None:
        """Say how many questions wait."""
        self._place = (at, of)
        self.query_one("#title", Label).update(self._heading())

    # ---- keys ---------------------------------------------------------------------------------------------------

    async def on_key(self, event: events.Key) -> None:
        """A key that answers, if it was typed after the question could be read."""
        if self._writing:
            if event.key == "escape":
                event.stop()
                self._write(None)
            return
        if event.key not in self._keys and event.key not in ("escape", "enter") and not event.is_printable:
            return
        event.stop()
        stray = event.key not in self._keys and event.key not in ("escape", "enter")
        if stray:
            self._guard.typing()
        if stray or event.time < self._shown_at or not self._guard.admits():
            if event.is_printable and event.character and self._typed is not None:
                self._typed(event.character)
            return
        if event.key == "escape":
            self._end(None)
        elif event.key in self._keys:
            self._choose(event.key)

    def _choose(self, key: str) -> None:
        verdict, scope, _ = self._keys[key]
        if scope == "note" or scope == "rule":
            self._write(scope)
        else:
            self._end(Said(ask=self.question.ask, verdict=verdict, scope=scope))

    def _end(self, said: Said | None) -> None:
        """One question gets one answer."""
        if not self._over:
            self._over = True
            self.dismiss(said)

    def close_elsewhere(self) -> None:
        """The question was settled or withdrawn by others."""
        self._end(None)

    @property
    def over(self) -> bool:
        """Whether it was answered or closed."""
        return self._over

    @property
    def _writing(self) -> bool:
        return self.query_one(Input).has_class("open")

    def _write(self, wanted: Wanted | None) -> None:
        """Open the line for a note or a rule, or close it."""
        self._wanted = wanted
        line = self.query_one(Input)
        line.set_class(wanted is not None, "open")
        if wanted is None:
            self.set_focus(None)
            return
        line.placeholder = _LINES[wanted]
        line.value = (self.question.ask.rule or "") if wanted == "rule" else ""
        line.cursor_position = len(line.value)
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny with the note, or allow with the rule as it was written."""
        event.stop()
        ask, text = self.question.ask, event.value.strip()
        if self._wanted == "note":
            self._end(Said(ask=ask, verdict="deny", note=text))
        elif text:
            self._end(Said(ask=ask, verdict="allow", scope="always", rule=text))

    def action_scroll(self, lines: int) -> None:
        """Some lines up or down."""
        self.query_one(Sheet).move(lines)

    def action_page(self, direction: int) -> None:
        """A screen up or down."""
        self.query_one(Sheet).action_page(direction)
