"""`SessionState = fold(events)`: a table of small functions, total over kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.events.codec import KINDS
from counterfoil.identity import Offset
from counterfoil.state import fold_asks as asks
from counterfoil.state import fold_calls as calls
from counterfoil.state import fold_delegation as delegation
from counterfoil.state import fold_reviews as reviews
from counterfoil.state import fold_runs as runs
from counterfoil.state.row import Row
from counterfoil.state.session import Grant, Meta, SessionState


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
        base_url=e.base_url,
        mode=e.mode,
        limits=e.limits,
        authority=e.authority,
        created_at=row.recorded_at,
    )
    return SessionState(meta=meta)


def _updated(s: SessionState, e: ev.SessionUpdated, row: Row) -> None:
    if e.mode == "plan" and s.meta.mode != "plan":
        s.meta.mode_before_plan = s.meta.mode
    for name in ("title", "provider", "model", "base_url", "mode", "limits"):
        value = getattr(e, name)
        if value is not None:
            setattr(s.meta, name, value)


def _hook_recorded(s: SessionState, e: ev.HookRecorded, row: Row) -> None:
    s.revision = max(s.revision, e.record.revision)
    reviews.review_recorded(s, e.record, row)
    calls.hook_spoke(s, e.record)


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


_REDUCERS: dict[type[ev.Event], Callable[[SessionState, Any, Row], None]] = {
    ev.SessionCreated: _nothing,
    ev.SessionUpdated: _updated,
    ev.RunStarted: runs.run_started,
    ev.RunFinished: runs.run_finished,
    ev.UserPrompt: runs.user_prompt,
    ev.TurnStarted: runs.turn_started,
    ev.TurnFinished: runs.turn_finished,
    ev.TurnRejected: runs.turn_rejected,
    ev.AssistantMessage: runs.assistant_message,
    ev.CallAccepted: calls.call_accepted,
    ev.CallEffective: calls.call_effective,
    ev.CallStarted: calls.call_started,
    ev.CallHeld: reviews.call_held,
    ev.CallFinished: calls.call_finished,
    ev.HookRecorded: _hook_recorded,
    ev.AskOpened: asks.ask_opened,
    ev.AskWithdrawn: asks.ask_withdrawn,
    ev.AskSettled: asks.ask_settled,
    ev.ReviewAcknowledged: reviews.acknowledged,
    ev.DelegationStarted: delegation.delegation_started,
    ev.DelegationSurfaced: delegation.delegation_surfaced,
    ev.DelegationFinished: delegation.delegation_finished,
    ev.TeamTaskChanged: delegation.task_changed,
    ev.TeamMessageSent: delegation.message_sent,
    ev.CompactionDone: _compaction_done,
    ev.GrantChanged: _grant_changed,
    ev.Notice: _nothing,
    ev.UnknownEvent: _unknown,
}

__all__ = ["Offset", "Row", "apply", "fold"]
