"""A link that plays given events: for screens that a short script can't bring about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from counterfoil import events as ev
from counterfoil.errors import UsageError
from counterfoil.identity import AskID, Digest, HookID, Offset, Revision, RunID, SessionID, ToolCallID
from counterfoil.tui.link import Defaults, Fact, SessionLine

SESSION = SessionID("ses_played")
RUN = RunID("run_played")
ME = ev.Principal(kind="local", name="tester")
DIGEST = Digest("blake2b:00")
AT = 1_700_000_000_000_000


class Played:
    """Events of one session; answers are settled at once and kept in `answers`."""

    def __init__(self, events: Iterable[ev.Event], **defaults: Any) -> None:
        given: dict[str, Any] = {"workspace": "/work", "provider": "scripted", "model": "model-1", "mode": "default"}
        self.defaults = Defaults(**(given | defaults))
        self.kept: dict[str, str] = {}
        self.answers: list[tuple[AskID, str, str, str]] = []
        self.running = False
        self.connection = "embedded"
        self.told: Callable[[], None] = lambda: None
        self.previews: dict[AskID, str] = {}
        self.facts: dict[str, list[Fact]] = {}
        self.lines: list[SessionLine] = []
        self._queue: asyncio.Queue[ev.Envelope] = asyncio.Queue()
        self._asks: dict[AskID, ev.Ask] = {}
        self._offset = 0
        for event in events:
            self.add(event)

    def add(self, event: ev.Event) -> None:
        if isinstance(event, ev.AskOpened):
            self._asks[event.ask.ask_id] = event.ask
        durable = type(event) not in ev.TRANSIENT
        self._offset += durable
        self._queue.put_nowait(
            ev.Envelope(
                session_id=SESSION,
                run_id=RUN,
                offset=Offset(self._offset) if durable else None,
                recorded_at=AT + self._offset * 1_000_000,
                event=event,
            )
        )

    async def open(self, session: SessionID | None) -> SessionID:
        return SESSION

    async def watch(self) -> AsyncIterator[ev.Envelope]:
        while True:
            yield await self._queue.get()

    @property
    def taken(self) -> bool:
        """Whether everything that was added has been taken."""
        return self._queue.empty()

    async def answer(
        self, ask: AskID, verdict: ev.Verdict, *, scope: ev.Scope = "once", note: str = "", rule: str = ""
    ) -> None:
        if ask not in self._asks:
            raise UsageError("the ask is closed")
        self.answers.append((ask, verdict, scope, note or rule))
        of = self._asks.pop(ask)
        receipt = ev.Receipt(
            ask_id=ask,
            origin_session_id=of.origin_session_id,
            tool_call_id=of.tool_call_id,
            review_id=of.review_id,
            verdict=verdict,
            scope=scope,
            decided_by=ME,
            decided_at=AT,
            arguments_digest=of.arguments_digest,
            result_digest=of.result_digest,
            note=note,
        )
        self.add(ev.AskSettled(receipt=receipt))

    async def preview(self, ask: ev.Ask) -> str:
        return self.previews.get(ask.ask_id, "")

    async def sessions(self) -> list[SessionLine]:
        return self.lines

    async def hooks(self) -> list[Fact]:
        return self.facts.get("hooks", [])

    async def rules(self) -> list[Fact]:
        return self.facts.get("rules", [])

    async def checkers(self) -> list[Fact]:
        return self.facts.get("checkers", [])

    async def diagnostics(self) -> list[tuple[str, str]]:
        return [("counterfoil", "1"), ("connection", "played"), ("workspace", "/srv/space (trust: trusted)")]

    def window(self, model: str) -> int:
        return 200_000

    def cost(self, provider: str, model: str, usage: ev.Usage) -> float | None:
        return 0.25

    async def prompt(self, text: str) -> None:
        self.add(ev.UserPrompt(parts=ev.text_parts(text)))

    async def ended(self) -> None: ...

    async def keep(self, name: str, value: str) -> None:
        self.kept[name] = value

    async def cancel(self) -> None: ...

    async def resume(self) -> bool:
        return False

    async def compact(self) -> bool:
        return False

    async def set_mode(self, mode: ev.Mode) -> None: ...

    async def set_model(self, provider: str, model: str) -> None: ...

    async def rename(self, session: SessionID, title: str) -> None: ...

    async def fork(self, session: SessionID) -> SessionID:
        return session

    async def delete(self, session: SessionID) -> None: ...

    async def export(self, path: str) -> None: ...

    async def revoke(self, rule: str) -> None: ...

    async def close(self) -> None: ...


def begun(title: str = "A session") -> list[ev.Event]:
    created = ev.SessionCreated(
        session_id=SESSION, owner=ME, title=title, workspace="/work", provider="scripted", model="model-1"
    )
    return [created, ev.RunStarted(run_id=RUN)]


def said(text: str, turn: int = 1, reasoning: str = "") -> ev.Event:
    return ev.AssistantMessage(turn=turn, text=text, reasoning=reasoning)


def accepted(name: str, tool: str, arguments: dict[str, Any], *, position: int = 0) -> ev.Event:
    return ev.CallAccepted(
        tool_call_id=ToolCallID(f"call_{name}"),
        turn=1,
        position=position,
        tool=tool,
        arguments=arguments,
        arguments_digest=DIGEST,
    )


def finished(name: str, text: str, status: ev.CallStatus = "ok", duration_ms: int = 12) -> ev.Event:
    return ev.CallFinished(
        tool_call_id=ToolCallID(f"call_{name}"),
        status=status,
        parts=ev.text_parts(text),
        executed="no" if status in ("denied", "blocked") else "yes",
        duration_ms=duration_ms,
    )


def asks(name: str, tool: str, arguments: dict[str, Any], reason: str = "no rule allows it", **more: Any) -> ev.Event:
    ask = ev.Ask(
        ask_id=AskID(f"ask_{name}"),
        origin_session_id=more.pop("origin", SESSION),
        tool_call_id=ToolCallID(f"call_{name}"),
        tool=tool,
        arguments=arguments,
        arguments_digest=DIGEST,
        reason=reason,
        **more,
    )
    return ev.AskOpened(ask=ask)


def hook(name: str, call: str | None, severity: ev.Severity, outcome: Any, message: str = "", **more: Any) -> ev.Event:
    record = ev.HookRecord(
        hook_id=HookID(f"hook_{name}"),
        revision=Revision(more.pop("revision", 1)),
        phase=more.pop("phase", "PreToolUse"),
        origin_session_id=SESSION,
        tool_call_id=ToolCallID(f"call_{call}") if call is not None else None,
        definition=ev.Definition(name=name),
        outcome=outcome,
        severity=severity,
        message=message,
        **more,
    )
    return ev.HookRecorded(record=record)
