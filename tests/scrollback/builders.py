"""Makes events, and the envelopes that they are published in."""

from __future__ import annotations

from typing import Any

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import (
    AskID,
    HookID,
    Offset,
    Revision,
    RunID,
    SessionID,
    ToolCallID,
    arguments_digest,
)
from counterfoil.scrollback import (
    EvidenceEntry,
    Scrollback,
)

ROOT, CHILD, RUN = SessionID("ses_root"), SessionID("ses_child"), RunID("run_1")
LOCAL = ev.Principal(kind="local", name="ann")


class Log:
    """Gives events their envelopes, as the publisher does."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.seq = 0
        self.offsets: dict[SessionID, int] = {}

    def add(self, *events: ev.Event, session: SessionID = ROOT) -> None:
        for event in events:
            self.seq += 1
            offset = None
            if type(event) not in ev.TRANSIENT:
                self.offsets[session] = offset = self.offsets.get(session, 0) + 1
            self.envelopes.append(
                Envelope(
                    session_id=session,
                    run_id=RUN,
                    seq=self.seq,
                    offset=None if offset is None else Offset(offset),
                    recorded_at=1_000_000 + self.seq,
                    event=event,
                )
            )


def created() -> ev.SessionCreated:
    return ev.SessionCreated(session_id=ROOT, owner=LOCAL, workspace="/w", provider="p", model="m", title="t")


def accepted(call: str, tool: str = "Read", **arguments: Any) -> ev.CallAccepted:
    return ev.CallAccepted(
        tool_call_id=ToolCallID(call),
        turn=1,
        position=0,
        tool=tool,
        arguments=arguments,
        arguments_digest=arguments_digest(arguments),
    )


def finished(call: str, status: ev.CallStatus = "ok", text: str = "done") -> ev.CallFinished:
    return ev.CallFinished(
        tool_call_id=ToolCallID(call), status=status, parts=ev.text_parts(text), executed="yes", duration_ms=7
    )


def record(
    hook: str, revision: int = 1, call: str | None = "call_a", origin: SessionID = ROOT, **fields: Any
) -> ev.HookRecorded:
    fields.setdefault("severity", "notable")
    return ev.HookRecorded(
        record=ev.HookRecord(
            hook_id=HookID(hook),
            revision=Revision(revision),
            phase="PreToolUse",
            origin_session_id=origin,
            tool_call_id=None if call is None else ToolCallID(call),
            definition=ev.Definition(name="h"),
            outcome="notice",
            **fields,
        )
    )


def asked(ask: str, call: str = "call_a", origin: SessionID = ROOT, **arguments: Any) -> ev.AskOpened:
    return ev.AskOpened(
        ask=ev.Ask(
            ask_id=AskID(ask),
            origin_session_id=origin,
            tool_call_id=ToolCallID(call),
            tool="Read",
            arguments=arguments,
            arguments_digest=arguments_digest(arguments),
            reason="because",
        )
    )


def settled(
    ask: str, call: str = "call_a", verdict: ev.Verdict = "allow", origin: SessionID = ROOT, **arguments: Any
) -> ev.AskSettled:
    return ev.AskSettled(
        receipt=ev.Receipt(
            ask_id=AskID(ask),
            origin_session_id=origin,
            tool_call_id=ToolCallID(call),
            verdict=verdict,
            decided_by=LOCAL,
            decided_at=5,
            arguments_digest=arguments_digest(arguments),
        )
    )


def see(*events: ev.Event) -> Scrollback:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN), *events)
    return Scrollback(ROOT).extend(log.envelopes)


def the_evidence(seen: Scrollback) -> EvidenceEntry:
    (entry,) = seen.evidence
    return entry
