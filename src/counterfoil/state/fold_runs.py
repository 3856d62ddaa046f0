"""Runs and turns: how a turn opens, fills, and enters history when all of its calls have results."""

from __future__ import annotations

from typing import cast

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.identity import derive
from counterfoil.state.history import HistoryCall, HistoryResult, PromptItem, TurnItem
from counterfoil.state.row import Row, run_of
from counterfoil.state.session import LastRun, OpenTurn, RunState, SessionState

REMEMBERED_PROMPTS = 3
PROMPT_KEPT = 16_000


def run_started(s: SessionState, e: ev.RunStarted, row: Row) -> None:
    """A run begins; none may be open."""
    if s.run is not None:
        raise FoldError(f"run {e.run_id} starts while run {s.run.run_id} is open (offset {row.offset})")
    if s.open_turn is not None:
        raise FoldError(f"run {e.run_id} starts while calls have no result (offset {row.offset})")
    s.run = RunState(run_id=e.run_id)
    s.status = "running"
    s.runs += 1


def run_finished(s: SessionState, e: ev.RunFinished, row: Row) -> None:
    """The open run ends; no call may be open."""
    if s.run is None or s.run.run_id != e.run_id:
        raise FoldError(f"run {e.run_id} finishes and isn't the open one (offset {row.offset})")
    if s.open_turn is not None:
        raise FoldError(f"run {e.run_id} finishes while calls have no result (offset {row.offset})")
    if s.running_children():
        raise FoldError(f"run {e.run_id} finishes while a child of it runs (offset {row.offset})")
    flush_inbox(s)
    s.last_run = LastRun(
        run_id=e.run_id,
        stop_reason=e.stop_reason,
        text=e.text,
        usage=e.usage,
        review_usage=e.review_usage,
        child_usage=e.child_usage,
    )
    s.status = ev.status_after(e.stop_reason)
    s.run = None


def user_prompt(s: SessionState, e: ev.UserPrompt, row: Row) -> None:
    """Input joins history, or waits in the inbox while a turn is open."""
    if s.run is not None:
        s.run.prompted = True
    s.team_message = max(s.team_message, e.team_message)
    if e.source in ("human", "steer"):
        s.prompts = [*s.prompts, _bounded(ev.text_of(e.parts))][-REMEMBERED_PROMPTS:]
    in_turn = s.open_turn is not None or (s.run is not None and s.run.turn_open)
    if in_turn:
        s.inbox.append((row.offset, e))
    else:
        s.history.append(PromptItem(offset=row.offset, parts=e.parts, source=e.source))


def _bounded(text: str) -> str:
    """The head and the tail of a long prompt, with what is missing said between."""
    if len(text) <= PROMPT_KEPT:
        return text
    half = PROMPT_KEPT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def flush_inbox(s: SessionState) -> None:
    """What waited for the end of a turn joins history."""
    for offset, prompt in s.inbox:
        s.history.append(PromptItem(offset=offset, parts=prompt.parts, source=prompt.source))
    s.inbox.clear()


def turn_started(s: SessionState, e: ev.TurnStarted, row: Row) -> None:
    """A request goes out: no call may be open."""
    run = run_of(s, row)
    if s.open_turn is not None:
        raise FoldError(f"turn {e.turn} starts while calls have no result (offset {row.offset})")
    run.turn, run.attempt, run.turn_open = e.turn, e.attempt, True


def turn_rejected(s: SessionState, e: ev.TurnRejected, row: Row) -> None:
    """Nothing of the turn enters history; its tokens count all the same."""
    run = run_of(s, row)
    if s.open_turn is not None:
        raise FoldError(f"turn {e.turn} is rejected after it was accepted (offset {row.offset})")
    run.turn_open = False
    count_usage(s, run, e.usage)
    flush_inbox(s)


def turn_finished(s: SessionState, e: ev.TurnFinished, row: Row) -> None:
    """The model's part is done; a turn without calls enters history now."""
    run = run_of(s, row)
    run.turn_open = False
    count_usage(s, run, e.usage)
    if s.open_turn is not None and not s.open_calls():
        close_turn(s, run)
    elif s.open_turn is None:
        flush_inbox(s)


def count_usage(s: SessionState, run: RunState, usage: ev.Usage) -> None:
    """Add to what the run and the session have used."""
    run.usage += usage
    s.usage += usage
    if usage.input_tokens:
        s.last_input_tokens = usage.input_tokens + usage.output_tokens


def assistant_message(s: SessionState, e: ev.AssistantMessage, row: Row) -> None:
    """The message opens the turn that its calls and results will fill."""
    run = run_of(s, row)
    if s.open_turn is not None:
        raise FoldError(f"a message comes while calls have no result (offset {row.offset})")
    replay = row.private if isinstance(row.private, ev.AssistantReplay) else None
    s.open_turn = OpenTurn(offset=row.offset, turn=e.turn, text=e.text, replay=replay)
    if e.text:
        run.last_text = e.text


def close_turn(s: SessionState, run: RunState) -> None:
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
    flush_inbox(s)


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
