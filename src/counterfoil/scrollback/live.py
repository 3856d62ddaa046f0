"""What streams just now: fed by transient events, emptied by the durable ones that replace them."""

from __future__ import annotations

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import RunID, SessionID, ToolCallID
from counterfoil.scrollback.cards import bounded
from counterfoil.scrollback.views import LiveView


class Live:
    """Text in flight. Nothing here outlives the durable event that says the same for good."""

    def __init__(self) -> None:
        self._run: RunID | None = None
        self._seq = 0
        self._turn = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._drafts: dict[int, tuple[str, str]] = {}
        self.progress: dict[ToolCallID, str] = {}
        self.previews: dict[SessionID, str] = {}

    def apply(self, envelope: Envelope) -> bool:
        """Take one transient event. False where it is late, applied already, or of another run."""
        if envelope.run_id is None or envelope.run_id != self._run:
            return False
        if envelope.seq is not None:
            if envelope.seq <= self._seq:
                return False
            self._seq = envelope.seq
        event = envelope.event
        if isinstance(event, ev.CallProgress):
            self.progress[event.tool_call_id] = bounded(event.text)
            return True
        if isinstance(event, ev.DelegationProgress):
            self.previews[event.child_session_id] = bounded(event.preview)
            return True
        if isinstance(event, (ev.MessageDelta, ev.ReasoningDelta, ev.CallDelta)):
            return event.turn == self._turn and self._delta(event)
        return False

    def _delta(self, event: ev.MessageDelta | ev.ReasoningDelta | ev.CallDelta) -> bool:
        if isinstance(event, ev.MessageDelta):
            self._text.append(event.text)
        elif isinstance(event, ev.ReasoningDelta):
            self._reasoning.append(event.text)
        else:
            tool, text = self._drafts.get(event.position, ("", ""))
            self._drafts[event.position] = (tool or event.tool, bounded(text + event.arguments_text))
        return True

    def durable(self, envelope: Envelope) -> bool:
        """Take one durable event: what it says for good no longer streams. Whether that changed anything."""
        event = envelope.event
        before = bool(self._text or self._reasoning or self._drafts)
        if isinstance(event, ev.RunStarted):
            self._run, self._seq = event.run_id, 0
            self._clear()
        elif isinstance(event, ev.TurnStarted):
            self._turn = event.turn
            self._clear()
        elif isinstance(event, (ev.AssistantMessage, ev.TurnRejected, ev.TurnFinished, ev.RunFinished)):
            self._clear()
        elif isinstance(event, ev.CallFinished):
            self.progress.pop(event.tool_call_id, None)
        elif isinstance(event, ev.DelegationFinished):
            self.previews.pop(event.child_session_id, None)
        if isinstance(event, ev.RunFinished):
            self._run = None
        elif envelope.seq is not None and envelope.run_id == self._run:
            self._seq = max(self._seq, envelope.seq)
        return before and not (self._text or self._reasoning or self._drafts)

    def _clear(self) -> None:
        self._text, self._reasoning, self._drafts = [], [], {}

    def view(self) -> LiveView:
        """A detached view."""
        if not (self._text or self._reasoning or self._drafts):
            return LiveView()
        return LiveView(
            turn=self._turn,
            text=_joined(self._text),
            reasoning=_joined(self._reasoning),
            drafts=tuple(draft for _, draft in sorted(self._drafts.items())),
        )


def _joined(pieces: list[str]) -> str:
    """The text of `pieces`, which are one piece from here on: looking again doesn't join them again."""
    text = "".join(pieces)
    pieces[:] = [text]
    return text
