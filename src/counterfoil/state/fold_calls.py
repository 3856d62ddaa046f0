"""Calls: from accepted to finished, and no step that the one before does not allow."""

from __future__ import annotations

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.state.bounds import for_model
from counterfoil.state.fold_reviews import leave_hold, may_start
from counterfoil.state.fold_runs import close_turn
from counterfoil.state.history import HistoryResult
from counterfoil.state.row import Row, open_call, run_of
from counterfoil.state.session import OpenCall, SessionState


def call_accepted(s: SessionState, e: ev.CallAccepted, row: Row) -> None:
    """One more call of the turn in hand."""
    run = run_of(s, row)
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


def call_effective(s: SessionState, e: ev.CallEffective, row: Row) -> None:
    """A hook changed what would run: any approval of the old arguments is void."""
    call = open_call(s, e.tool_call_id, row)
    if call.phase != "accepted":
        raise FoldError(f"arguments of call {e.tool_call_id} change in phase {call.phase} (offset {row.offset})")
    if call.receipt is not None and call.receipt.verdict == "deny":
        raise FoldError(f"arguments of call {e.tool_call_id} change after it was denied (offset {row.offset})")
    if call.original is None:
        call.original = call.arguments
    call.arguments, call.arguments_digest, call.receipt = e.arguments, e.arguments_digest, None


def hook_spoke(s: SessionState, record: ev.HookRecord) -> None:
    """Keep what a hook said of a call, or of the run."""
    if s.run is not None and record.outcome == "stopped":
        s.run.stopped = record.message
    if s.run is not None and record.phase == "Stop" and record.outcome in ("blocked", "added_context"):
        s.run.stop_continuations += 1
    call = s.call(record.tool_call_id) if record.tool_call_id is not None else None
    if call is None or record.phase != "PreToolUse" or record.origin_session_id != s.meta.session_id:
        return
    call.hooked = True
    if record.outcome in ("blocked", "denied"):
        call.hook_blocked = record.message
    elif record.outcome == "asked":
        call.hook_asks = record.message
    elif record.outcome == "allowed":
        call.hook_allows = True


def call_started(s: SessionState, e: ev.CallStarted, row: Row) -> None:
    """The commit point: only the very arguments that the call has, and only once for each attempt."""
    call = open_call(s, e.tool_call_id, row)
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
    may_start(call, row)
    call.phase, call.attempt = "started", e.attempt


def call_finished(s: SessionState, e: ev.CallFinished, row: Row) -> None:
    """The final result. The last one of a turn closes the turn."""
    run = run_of(s, row)
    call = open_call(s, e.tool_call_id, row)
    if call.ask_id in s.asks:
        raise FoldError(f"call {e.tool_call_id} finishes while its ask is open (offset {row.offset})")
    if call.phase == "held":
        leave_hold(call, e, row)
    call.phase = "finished"
    call.result = HistoryResult(tool_call_id=e.tool_call_id, status=e.status, parts=for_model(e.parts))
    run.consecutive_failures = 0 if e.status == "ok" else run.consecutive_failures + 1
    if not s.open_calls() and not run.turn_open:
        close_turn(s, run)
