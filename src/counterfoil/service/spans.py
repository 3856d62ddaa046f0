"""Events as spans of a trace: one for each run, turn, call, hook, review and ask. Pure: envelopes in, spans out.

Names and attributes are those of OpenTelemetry's semantic conventions for generative AI systems, and `counterfoil.*`
for what these don't have. Ids of traces and spans are made from the ids of the engine: the same run is the same trace,
whoever tells of it. No text of a person, a model or a tool is in a span.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from counterfoil import events as ev
from counterfoil.events import Envelope
from counterfoil.events.base import Value
from counterfoil.identity import RunID, SessionID, ToolCallID

_OPEN_REVIEWS = frozenset({"pending", "asked", "held"})
MOST_OPEN = 10_000


class Span(Value, frozen=True, kw_only=True):
    """Something that began and ended; times in µs since the epoch, UTC. `client`: a request to somebody else."""

    trace: int
    span: int
    parent: int | None
    name: str
    start: int
    end: int
    attributes: dict[str, str | int | float | bool]
    failed: str = ""
    client: bool = False


def trace_id(run: RunID) -> int:
    """128 bits, never 0."""
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=16).digest(), "big") or 1


def span_id(name: str) -> int:
    """64 bits, never 0."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") or 1


class Spans:
    """Follows the events of one session. What began before it looked begins, for it, with the first event of it."""

    def __init__(self, session: SessionID) -> None:
        self._session = session
        self._run: RunID | None = None
        self._began: dict[str, int] = {}
        self._model: tuple[str, str] = ("", "")
        self._tools: dict[ToolCallID, str] = {}
        self._told: set[str] = set()

    def feed(self, envelope: Envelope) -> list[Span]:
        """Take one event; the spans that end with it."""
        if envelope.run_id is None or envelope.offset is None or envelope.session_id != self._session:
            return []
        if envelope.run_id != self._run:
            self._run = envelope.run_id
            self._begin(f"run {self._run}", envelope.recorded_at)
        step = _STEPS.get(type(envelope.event))
        if step is None:
            return []
        found = step(self, envelope.event, envelope.recorded_at)
        return [found] if found is not None else []

    def _begin(self, key: str, at: int) -> None:
        self._began[key] = at
        while len(self._began) > MOST_OPEN:
            del self._began[next(iter(self._began))]

    def _span(
        self, key: str, name: str, end: int, parent: str | None, *, failed: str = "", client: bool = False, **more: Any
    ) -> Span:
        assert self._run is not None
        common = {"gen_ai.conversation.id": self._session, "counterfoil.run.id": self._run}
        attributes = common | {k.replace("__", "."): v for k, v in more.items() if v not in ("", None)}
        start = min(self._began.pop(key, end), end)
        return Span(
            trace=trace_id(self._run),
            span=span_id(key),
            parent=None if parent is None else span_id(parent),
            name=name,
            start=start,
            end=end,
            attributes=attributes,
            failed=failed,
            client=client,
        )

    def _call_key(self, call: ToolCallID | None) -> str:
        return f"call {call}" if call in self._tools else f"run {self._run}"

    # ---- what each event is -------------------------------------------------------------------------------------

    def run_finished(self, event: ev.RunFinished, at: int) -> Span:
        bad = event.error.code if event.error is not None else ""
        found = self._span(
            f"run {event.run_id}",
            "invoke_agent counterfoil",
            at,
            None,
            failed=bad,
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="counterfoil",
            gen_ai__usage__input_tokens=event.usage.input_tokens,
            gen_ai__usage__output_tokens=event.usage.output_tokens,
            counterfoil__stop_reason=event.stop_reason,
        )
        self._run, self._tools, self._told = None, {}, set()
        return found

    def turn_started(self, event: ev.TurnStarted, at: int) -> None:
        self._model = (event.provider, event.model)
        self._began.setdefault(self._turn_key(event.turn), at)

    def _turn_key(self, turn: int) -> str:
        return f"turn {self._run} {turn}"

    def turn_finished(self, event: ev.TurnFinished, at: int) -> Span:
        provider, asked = self._model
        return self._span(
            self._turn_key(event.turn),
            f"chat {asked}",
            at,
            f"run {self._run}",
            client=True,
            gen_ai__operation__name="chat",
            gen_ai__provider__name=provider,
            gen_ai__request__model=asked,
            gen_ai__response__model=event.model,
            gen_ai__usage__input_tokens=event.usage.input_tokens,
            gen_ai__usage__output_tokens=event.usage.output_tokens,
            counterfoil__turn=event.turn,
        )

    def call_accepted(self, event: ev.CallAccepted, at: int) -> None:
        self._tools[event.tool_call_id] = event.tool
        self._begin(f"call {event.tool_call_id}", at)

    def call_finished(self, event: ev.CallFinished, at: int) -> Span:
        tool = self._tools.get(event.tool_call_id, "")
        return self._span(
            f"call {event.tool_call_id}",
            f"execute_tool {tool}".rstrip(),
            at,
            f"run {self._run}",
            failed="" if event.status == "ok" else event.status,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=tool,
            gen_ai__tool__call__id=event.tool_call_id,
            gen_ai__tool__type="function",
            counterfoil__call__status=event.status,
            counterfoil__call__executed=event.executed,
        )

    def hook_recorded(self, event: ev.HookRecorded, at: int) -> Span | None:
        record = event.record
        review = record.review
        key = f"{'hook' if review is None else 'review'} {record.hook_id}"
        if key in self._told:
            return None
        if review is not None and review.state in _OPEN_REVIEWS:
            self._began.setdefault(key, at)
            return None
        self._told.add(key)
        self._began.setdefault(key, record.started_at or at - 1000 * record.duration_ms)
        name = f"hook {record.definition.name}" if review is None else f"review {review.job}"
        return self._span(
            key,
            name,
            at,
            self._call_key(record.tool_call_id),
            failed="" if record.outcome != "failed" else "hook failed",
            gen_ai__tool__call__id=record.tool_call_id,
            counterfoil__hook__id=record.hook_id,
            counterfoil__hook__revision=record.revision,
            counterfoil__hook__phase=record.phase,
            counterfoil__hook__outcome=record.outcome,
            counterfoil__severity=record.severity,
            counterfoil__review__state=None if review is None else review.state,
            counterfoil__review__checker=None if review is None else review.checker,
        )

    def ask_opened(self, event: ev.AskOpened, at: int) -> None:
        self._begin(f"ask {event.ask.ask_id}", at)

    def ask_settled(self, event: ev.AskSettled, at: int) -> Span:
        receipt = event.receipt
        return self._span(
            f"ask {receipt.ask_id}",
            "ask",
            at,
            self._call_key(receipt.tool_call_id),
            gen_ai__tool__call__id=receipt.tool_call_id,
            counterfoil__ask__id=receipt.ask_id,
            counterfoil__ask__verdict=receipt.verdict,
            counterfoil__ask__scope=receipt.scope,
            counterfoil__ask__decided_by=f"{receipt.decided_by.kind}/{receipt.decided_by.name}",
        )

    def ask_withdrawn(self, event: ev.AskWithdrawn, at: int) -> Span:
        return self._span(
            f"ask {event.ask_id}",
            "ask",
            at,
            self._call_key(event.tool_call_id),
            gen_ai__tool__call__id=event.tool_call_id,
            counterfoil__ask__id=event.ask_id,
            counterfoil__ask__verdict="withdrawn",
        )


_STEPS: dict[type[ev.Event], Callable[[Spans, Any, int], Span | None]] = {
    ev.RunFinished: Spans.run_finished,
    ev.TurnStarted: Spans.turn_started,
    ev.TurnFinished: Spans.turn_finished,
    ev.CallAccepted: Spans.call_accepted,
    ev.CallFinished: Spans.call_finished,
    ev.HookRecorded: Spans.hook_recorded,
    ev.AskOpened: Spans.ask_opened,
    ev.AskSettled: Spans.ask_settled,
    ev.AskWithdrawn: Spans.ask_withdrawn,
}
