"""How a run is shown while it goes on, and what is printed at its end."""

from __future__ import annotations

import sys
from typing import IO, Protocol

from counterfoil.cli.terminal import is_terminal, print_json
from counterfoil.engine import RunOutcome
from counterfoil.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    Envelope,
    MessageDelta,
    Notice,
    TurnRejected,
    TurnStarted,
)
from counterfoil.events.codec import encode_envelope
from counterfoil.scrollback import Scrollback, visible, visible_line


class Reporter(Protocol):
    """Shows one run."""

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """Something happened; `seen` knows of it already."""
        ...

    def clear(self) -> None:
        """Leave the cursor at the begin of an empty line: somebody else writes next."""
        ...

    def end(self, outcome: RunOutcome, seen: Scrollback) -> None:
        """The run is over, or parked."""
        ...


class Progress:
    """Progress for a person: text as it comes, one line for each call, on `out`, or nowhere."""

    def __init__(self, out: IO[str] | None) -> None:
        self.out = out
        self._column = False
        self._status = False
        self.streamed = False

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """Show one event."""
        if self.out is None:
            return
        event = envelope.event
        if isinstance(event, MessageDelta):
            self._text(event.text)
        elif isinstance(event, CallStarted):
            self._call_starts(event, seen)
        elif isinstance(event, CallProgress) and event.text:
            self._set_status(event.text)
        elif isinstance(event, CallFinished):
            self._call_ends(event, seen)
        elif isinstance(event, TurnStarted) and event.attempt > 1 and self.streamed:
            self.line("(the answer broke off; what stands above of it is void)")
        elif isinstance(event, TurnRejected):
            self.line(f"! turn rejected: {event.reason}")
        elif isinstance(event, Notice):
            self.line(f"! {event.text}")
        if isinstance(event, TurnStarted):
            self.streamed = False

    def _text(self, text: str) -> None:
        assert self.out is not None
        if not text:
            return
        self._drop_status()
        shown = visible(text)
        self.out.write(shown)
        self.out.flush()
        self._column = not shown.endswith("\n")
        self.streamed = True

    def _call_starts(self, event: CallStarted, seen: Scrollback) -> None:
        from counterfoil.cli import wording

        view = seen.call(event.tool_call_id)
        if view is not None:
            self._set_status(f"{view.tool} {wording.target(view)}")

    def _call_ends(self, event: CallFinished, seen: Scrollback) -> None:
        from counterfoil.cli import transcript

        view = seen.call(event.tool_call_id)
        if view is not None:
            mark = "●" if view.status == "ok" else "○"
            self.line(f"{mark} {transcript.call_line(view)}")

    def line(self, text: str) -> None:
        """One whole line."""
        if self.out is None:
            return
        self.clear()
        self.out.write(visible_line(text) + "\n")
        self.out.flush()

    def _set_status(self, text: str) -> None:
        """A line that the next one takes the place of."""
        from counterfoil.cli.terminal import coloured, width

        assert self.out is not None
        if not coloured(self.out):
            return
        self.clear()
        self.out.write(f"… {visible_line(text)}"[: width() // 2])
        self.out.flush()
        self._status = True

    def _drop_status(self) -> None:
        assert self.out is not None
        if self._status:
            self.out.write("\r\x1b[2K")
            self._status = False

    def clear(self) -> None:
        """Go to the begin of an empty line."""
        if self.out is None:
            return
        self._drop_status()
        if self._column:
            self.out.write("\n")
            self._column = False
        self.out.flush()


class TextReporter:
    """The final answer on stdout; progress where a person sees it."""

    def __init__(self) -> None:
        self._live = is_terminal(sys.stdout)
        self._progress = Progress(sys.stdout if self._live else sys.stderr if is_terminal(sys.stderr) else None)

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """Show progress."""
        self._progress.event(envelope, seen)

    def clear(self) -> None:
        """See `Reporter`."""
        self._progress.clear()

    def end(self, outcome: RunOutcome, seen: Scrollback) -> None:
        """The answer, where it isn't on the terminal already; then how to go on from anything but a plain end."""
        self._progress.clear()
        if outcome.text and not (self._live and self._progress.streamed):
            print(visible(outcome.text) if self._live else outcome.text, flush=True)


class ProgressReporter:
    """Progress on stdout, whatever that is."""

    def __init__(self) -> None:
        self._progress = Progress(sys.stdout)

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """Show progress."""
        self._progress.event(envelope, seen)

    def clear(self) -> None:
        """See `Reporter`."""
        self._progress.clear()

    def end(self, outcome: RunOutcome, seen: Scrollback) -> None:
        """Nothing but an empty line to write on."""
        self._progress.clear()


class JsonReporter:
    """One object at the end."""

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """Nothing."""

    def clear(self) -> None:
        """Nothing."""

    def end(self, outcome: RunOutcome, seen: Scrollback) -> None:
        """The object."""
        calls = [c for c in seen.calls if c.run_id == outcome.run_id]
        value = {
            "session_id": seen.root,
            "run_id": outcome.run_id,
            "stop_reason": outcome.stop_reason,
            "parked": outcome.parked,
            "text": outcome.text,
            "usage": outcome.usage,
            "calls": calls,
            "asks": [a.ask for a in seen.open_asks],
            "error": outcome.error,
        }
        print_json(value, indent=None)


class JsonlReporter:
    """One line for each envelope, as it comes."""

    def event(self, envelope: Envelope, seen: Scrollback) -> None:
        """The line."""
        sys.stdout.buffer.write(encode_envelope(envelope) + b"\n")
        sys.stdout.buffer.flush()

    def clear(self) -> None:
        """Nothing."""

    def end(self, outcome: RunOutcome, seen: Scrollback) -> None:
        """Nothing: `run.finished` was the last line."""


def reporter(output: str) -> Reporter:
    """The reporter for `--output`."""
    if output == "json":
        return JsonReporter()
    return JsonlReporter() if output == "jsonl" else TextReporter()
