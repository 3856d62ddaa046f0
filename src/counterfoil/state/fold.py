"""`SessionState = fold(events)`: a table of small functions, total over kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.events.codec import KINDS, decode_private, event_of
from counterfoil.identity import Offset, derive
from counterfoil.state.bounds import for_model
from counterfoil.state.history import HistoryCall, HistoryResult, PromptItem, TurnItem
from counterfoil.state.session import Grant, LastRun, Meta, OpenCall, OpenTurn, RunState, SessionState


class Row:
    """What the fold reads of one stored row."""

    __slots__ = ("event", "offset", "private", "recorded_at", "run_id", "seq", "session_id")

    def __init__(self, stored: ev.StoredEvent, entry: ev.Entry | None = None) -> None:
        """`entry` is what `stored` was made from, where it is at hand: then nothing is decoded again."""
        self.event = event_of(stored) if entry is None else entry.event
        self.private = decode_private(stored.private) if entry is None else entry.private
        self.session_id = stored.session_id
        self.offset = stored.offset
        self.run_id = stored.run_id
        self.seq = stored.seq
        self.recorded_at = stored.recorded_at


def fold(rows: Iterable[ev.StoredEvent], state: SessionState | None = None) -> SessionState:
    """The state after all of `rows`, from the start or on top of a snapshot's `state`.

    Raises `FoldError` where a row can't follow, or where there is nothing to fold.
    """
    for stored in rows:
        state = apply(state, Row(stored))
    if state is None:
        raise FoldError("the session's log is empty", hint="it can't be driven; delete it")
    return state


def apply(state: SessionState | None, row: Row) -> SessionState:
    """Return the state after `row`. `state` itself is changed: it has one owner. Raises `FoldError`."""
    event = row.event
    if state is None:
        if not isinstance(event, ev.SessionCreated):
            kind = type(event).__name__
            raise FoldError(f"the log begins with {kind} and not with session.created (offset {row.offset})")
        state = _created(event, row)
    elif isinstance(event, ev.SessionCreated):
        raise FoldError(f"a second session.created at offset {row.offset}")
    if row.offset != state.offset + 1:
        raise FoldError(f"offset {row.offset} follows {state.offset}")
    if row.session_id != state.meta.session_id:
        raise FoldError(f"the row at offset {row.offset} is of session {row.session_id}")
    reducer = _REDUCERS.get(type(event))
    if reducer is not None:
        reducer(state, event, row)
    state.offset = row.offset
    state.meta.updated_at = row.recorded_at
    if state.run is not None and row.seq is not None:
        state.run.last_seq = max(state.run.last_seq, row.seq)
    return state


def _created(e: ev.SessionCreated, row: Row) -> SessionState:
    meta = Meta(
        session_id=e.session_id,
        kind=e.session_kind,
        relationship=e.relationship,
        owner=e.owner,
        title=e.title,
        workspace=e.workspace,
        provider=e.provider,
        model=e.model,
        mode=e.mode,
        limits=e.limits,
        created_at=row.recorded_at,
    )
    return SessionState(meta=meta)


def _updated(s: SessionState, e: ev.SessionUpdated, row: Row) -> None:
    for name in ("title", "provider", "model", "mode", "limits"):
        value = getattr(e, name)
        if value is not None:
            setattr(s.meta, name, value)


def _run_started(s: SessionState, e: ev.RunStarted, row: Row) -> None:
    if s.run is not None:
        raise FoldError(f"run {e.run_id} starts while run {s.run.run_id} is open (offset {row.offset})")
    if s.open_turn is not None:
        raise FoldError(f"run {e.run_id} starts while calls have no result (offset {row.offset})")
    s.run = RunState(run_id=e.run_id)
    s.status = "running"
    s.receipts.clear()
    s.withdrawn.clear()
    s.runs += 1


_STATUS_OF_STOP: dict[str, ev.SessionStatus] = {
    "end_turn": "completed",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
    "hook_stopped": "completed",
}


def status_after(stop: ev.StopReason) -> ev.SessionStatus:
    """What a session is after a run that ended so."""
    return _STATUS_OF_STOP.get(stop, "failed")


def _run_finished(s: SessionState, e: ev.RunFinished, row: Row) -> None:
    if s.run is None or s.run.run_id != e.run_id:
        raise FoldError(f"run {e.run_id} finishes and isn't the open one (offset {row.offset})")
    if s.open_turn is not None:
        raise FoldError(f"run {e.run_id} finishes while calls have no result (offset {row.offset})")
    _flush_inbox(s)
    s.last_run = LastRun(run_id=e.run_id, stop_reason=e.stop_reason, text=e.text, usage=e.usage)
    s.status = status_after(e.stop_reason)
    s.run = None


def _user_prompt(s: SessionState, e: ev.UserPrompt, row: Row) -> None:
    in_turn = s.open_turn is not None or (s.run is not None and s.run.turn_open)
    if in_turn:
        s.inbox.append((row.offset, e))
    else:
        s.history.append(PromptItem(offset=row.offset, parts=e.parts, source=e.source))


def _flush_inbox(s: SessionState) -> None:
    for offset, prompt in s.inbox:
        s.history.append(PromptItem(offset=offset, parts=prompt.parts, source=prompt.source))
    s.inbox.clear()


def _turn_started(s: SessionState, e: ev.TurnStarted, row: Row) -> None:
    run = _run(s, row)
    if s.open_turn is not None:
        raise FoldError(f"turn {e.turn} starts while calls have no result (offset {row.offset})")
    run.turn, run.attempt, run.turn_open = e.turn, e.attempt, True


def _turn_rejected(s: SessionState, e: ev.TurnRejected, row: Row) -> None:
    run = _run(s, row)
    if s.open_turn is not None:
        raise FoldError(f"turn {e.turn} is rejected after it was accepted (offset {row.offset})")
    run.turn_open = False
    _count_usage(s, run, e.usage)
    _flush_inbox(s)


def _turn_finished(s: SessionState, e: ev.TurnFinished, row: Row) -> None:
    run = _run(s, row)
    run.turn_open = False
    _count_usage(s, run, e.usage)
    if s.open_turn is not None and not s.open_calls():
        _close_turn(s, run)
    elif s.open_turn is None:
        _flush_inbox(s)


def _count_usage(s: SessionState, run: RunState, usage: ev.Usage) -> None:
    run.usage += usage
    s.usage += usage
    if usage.input_tokens:
        s.last_input_tokens = usage.input_tokens + usage.output_tokens


def _assistant_message(s: SessionState, e: ev.AssistantMessage, row: Row) -> None:
    run = _run(s, row)
    if s.open_turn is not None:
        raise FoldError(f"a message comes while calls have no result (offset {row.offset})")
    replay = row.private if isinstance(row.private, ev.AssistantReplay) else None
    s.open_turn = OpenTurn(offset=row.offset, turn=e.turn, text=e.text, replay=replay)
    if e.text:
        run.last_text = e.text


def _call_accepted(s: SessionState, e: ev.CallAccepted, row: Row) -> None:
    run = _run(s, row)
    if s.open_turn is None:
        raise FoldError(f"call {e.tool_call_id} is accepted outside a turn (offset {row.offset})")
    if s.call(e.tool_call_id) is not None:
        raise FoldError(f"call {e.tool_call_id} is accepted twice (offset {row.offset})")
    replay = row.private if isinstance(row.private, ev.CallReplay) else None
    s.open_turn.calls.append(
        OpenCall(
            tool_call_id=e.tool_call_id,
            turn=e.turn,
            position=e.position,
            tool=e.tool,
            arguments=e.arguments,
            arguments_digest=e.arguments_digest,
            read_only=e.read_only,
            problem=e.problem,
            replay=replay,
        )
    )
    run.tool_calls += 1


def _call_effective(s: SessionState, e: ev.CallEffective, row: Row) -> None:
    call = _open_call(s, e.tool_call_id, row)
    if call.phase != "accepted":
        raise FoldError(f"arguments of call {e.tool_call_id} change in phase {call.phase} (offset {row.offset})")
    if call.original is None:
        call.original = call.arguments
    call.arguments, call.arguments_digest, call.receipt = e.arguments, e.arguments_digest, None


def _call_started(s: SessionState, e: ev.CallStarted, row: Row) -> None:
    call = _open_call(s, e.tool_call_id, row)
    if e.arguments_digest != call.arguments_digest:
        raise FoldError(f"call {e.tool_call_id} starts with other arguments than its own (offset {row.offset})")
    if call.phase == "asked":
        raise FoldError(f"call {e.tool_call_id} starts while its ask is open (offset {row.offset})")
    if call.phase == "held" or call.problem is not None:
        raise FoldError(f"call {e.tool_call_id} starts and may not run (offset {row.offset})")
    if call.receipt is not None and call.receipt.verdict == "deny":
        raise FoldError(f"call {e.tool_call_id} starts and was denied (offset {row.offset})")
    if e.attempt <= call.attempt:
        raise FoldError(f"call {e.tool_call_id} starts twice as attempt {e.attempt} (offset {row.offset})")
    call.phase, call.attempt = "started", e.attempt


def _call_held(s: SessionState, e: ev.CallHeld, row: Row) -> None:
    call = _open_call(s, e.tool_call_id, row)
    if call.phase != "started":
        raise FoldError(f"call {e.tool_call_id} is held in phase {call.phase} (offset {row.offset})")
    call.phase = "held"


def _call_finished(s: SessionState, e: ev.CallFinished, row: Row) -> None:
    run = _run(s, row)
    call = _open_call(s, e.tool_call_id, row)
    if call.ask_id in s.asks:
        raise FoldError(f"call {e.tool_call_id} finishes while its ask is open (offset {row.offset})")
    call.phase = "finished"
    call.result = HistoryResult(tool_call_id=e.tool_call_id, status=e.status, parts=for_model(e.parts))
    run.consecutive_failures = 0 if e.status == "ok" else run.consecutive_failures + 1
    if not s.open_calls() and not run.turn_open:
        _close_turn(s, run)


def _close_turn(s: SessionState, run: RunState) -> None:
    """All results are there: the turn enters history, and what waited for its end follows."""
    turn = s.open_turn
    assert turn is not None
    calls = tuple(
        HistoryCall(
            tool_call_id=c.tool_call_id,
            tool=c.tool,
            arguments=c.arguments if c.original is None else c.original,
            replay=c.replay,
        )
        for c in turn.calls
    )
    results = tuple(cast(HistoryResult, c.result) for c in turn.calls)
    s.history.append(TurnItem(offset=turn.offset, text=turn.text, calls=calls, results=results, replay=turn.replay))
    _count_repeats(run, turn)
    s.open_turn = None
    _flush_inbox(s)


def _count_repeats(run: RunState, turn: OpenTurn) -> None:
    if not turn.calls:
        run.signature, run.repeats = "", 0
        return
    parts: list[str] = []
    for c in turn.calls:
        assert c.result is not None
        parts += [c.tool, c.arguments_digest, c.result.status, ev.text_of(c.result.parts)]
    signature = derive("counterfoil/turn-signature/v1", *parts)
    run.repeats = run.repeats + 1 if signature == run.signature else 1
    run.signature = signature


def _hook_recorded(s: SessionState, e: ev.HookRecorded, row: Row) -> None:
    s.revision = max(s.revision, e.record.revision)


def _ask_opened(s: SessionState, e: ev.AskOpened, row: Row) -> None:
    ask = e.ask
    call = _open_call(s, ask.tool_call_id, row)
    if ask.origin_session_id != s.meta.session_id and s.meta.kind is not ev.SessionKind.FORK:
        raise FoldError(f"ask {ask.ask_id} is of another session (offset {row.offset})")
    if call.phase not in ("accepted", "held"):
        raise FoldError(f"ask {ask.ask_id} opens on a call in phase {call.phase} (offset {row.offset})")
    if call.ask_id in s.asks or ask.ask_id in s.receipts or ask.ask_id in s.withdrawn:
        raise FoldError(f"ask {ask.ask_id} opens a second time, or beside another (offset {row.offset})")
    if (ask.tool, ask.arguments_digest, ask.arguments) != (call.tool, call.arguments_digest, call.arguments):
        raise FoldError(f"ask {ask.ask_id} shows other arguments than the call's (offset {row.offset})")
    s.asks[ask.ask_id] = ask
    if call.phase == "accepted":
        call.phase = "asked"
    call.ask_id, call.receipt = ask.ask_id, None
    s.status = "awaiting"


def _ask_withdrawn(s: SessionState, e: ev.AskWithdrawn, row: Row) -> None:
    ask = _close_ask(s, e.ask_id, row)
    if (e.tool_call_id, e.origin_session_id) != (ask.tool_call_id, ask.origin_session_id):
        raise FoldError(f"ask {e.ask_id} is withdrawn for another call (offset {row.offset})")
    s.withdrawn[e.ask_id] = e.reason


def _ask_settled(s: SessionState, e: ev.AskSettled, row: Row) -> None:
    receipt = e.receipt
    ask = _close_ask(s, receipt.ask_id, row)
    if _about(receipt) != _about(ask):
        raise FoldError(f"the receipt of ask {ask.ask_id} is about another call (offset {row.offset})")
    s.receipts[receipt.ask_id] = receipt
    call = s.call(receipt.tool_call_id)
    if call is not None:
        call.receipt = receipt


def _about(of: ev.Ask | ev.Receipt) -> tuple[object, ...]:
    """What an ask and its receipt have to agree on."""
    return of.origin_session_id, of.tool_call_id, of.review_id, of.arguments_digest


def _close_ask(s: SessionState, ask_id: Any, row: Row) -> ev.Ask:
    ask = s.asks.pop(ask_id, None)
    if ask is None:
        raise FoldError(f"ask {ask_id} ends and isn't open (offset {row.offset})")
    call = s.call(ask.tool_call_id)
    if call is not None and call.ask_id == ask_id and call.phase == "asked":
        call.phase = "accepted"
    if not s.asks:
        s.status = "running" if s.run is not None else "idle"
    return ask


def _compaction_done(s: SessionState, e: ev.CompactionDone, row: Row) -> None:
    try:
        s.history.compact(e.replaced_through, e.summary)
    except ValueError as fault:
        raise FoldError(f"the compaction at offset {row.offset} replaces nothing") from fault
    s.usage += e.usage
    s.last_input_tokens = 0


def _grant_changed(s: SessionState, e: ev.GrantChanged, row: Row) -> None:
    s.grants = [g for g in s.grants if g.rule != e.rule]
    if not e.revoked:
        s.grants.append(Grant(rule=e.rule, scope=e.scope, ask_id=e.ask_id))


def _unknown(s: SessionState, e: ev.UnknownEvent, row: Row) -> None:
    s.unknown_events += 1
    known = KINDS.get(e.original_kind)
    if known is ev.HookRecorded:
        s.revision = max(s.revision, _revision_of(e, row))
    elif known is not None and _REDUCERS.get(known, _nothing) is not _nothing:
        raise FoldError(f"{e.original_kind} at offset {row.offset} has a content that this version doesn't know")


class _Numbered(msgspec.Struct):
    revision: int


class _NumberedRecord(msgspec.Struct):
    record: _Numbered


def _revision_of(e: ev.UnknownEvent, row: Row) -> int:
    """The revision of a record that can't be read otherwise: what is published next has to be above it."""
    try:
        return msgspec.json.decode(e.body, type=_NumberedRecord).record.revision
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise FoldError(f"the record at offset {row.offset} has no revision that can be read") from fault


def _nothing(s: SessionState, e: ev.Event, row: Row) -> None:
    """Kinds that are for readers and change no state."""


def _run(s: SessionState, row: Row) -> RunState:
    if s.run is None or row.run_id != s.run.run_id:
        raise FoldError(f"{type(row.event).__name__} at offset {row.offset} is outside the open run")
    return s.run


def _open_call(s: SessionState, tool_call_id: Any, row: Row) -> OpenCall:
    call = s.call(tool_call_id)
    if call is None or call.phase == "finished":
        raise FoldError(f"{type(row.event).__name__} at offset {row.offset} is about {tool_call_id}, which isn't open")
    return call


_REDUCERS: dict[type[ev.Event], Callable[[SessionState, Any, Row], None]] = {
    ev.SessionCreated: _nothing,
    ev.SessionUpdated: _updated,
    ev.RunStarted: _run_started,
    ev.RunFinished: _run_finished,
    ev.UserPrompt: _user_prompt,
    ev.TurnStarted: _turn_started,
    ev.TurnFinished: _turn_finished,
    ev.TurnRejected: _turn_rejected,
    ev.AssistantMessage: _assistant_message,
    ev.CallAccepted: _call_accepted,
    ev.CallEffective: _call_effective,
    ev.CallStarted: _call_started,
    ev.CallHeld: _call_held,
    ev.CallFinished: _call_finished,
    ev.HookRecorded: _hook_recorded,
    ev.AskOpened: _ask_opened,
    ev.AskWithdrawn: _ask_withdrawn,
    ev.AskSettled: _ask_settled,
    ev.DelegationStarted: _nothing,
    ev.DelegationFinished: _nothing,
    ev.CompactionDone: _compaction_done,
    ev.GrantChanged: _grant_changed,
    ev.Notice: _nothing,
    ev.UnknownEvent: _unknown,
}

__all__ = ["Offset", "Row", "apply", "fold"]
