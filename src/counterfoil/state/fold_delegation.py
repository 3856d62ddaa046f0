"""Children: started by a call, ended before their run is; and what a team shares."""

from __future__ import annotations

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.identity import START
from counterfoil.state.fold_asks import asked_or_not
from counterfoil.state.row import Row, open_call
from counterfoil.state.session import ChildRef, SessionState, Team

REMEMBERED_CHILDREN = 256


def delegation_started(s: SessionState, e: ev.DelegationStarted, row: Row) -> None:
    """A call starts a run of a child. A child that runs isn't started again, and none is its own parent."""
    call = open_call(s, e.tool_call_id, row)
    if call.phase != "started":
        raise FoldError(f"child {e.child_session_id} starts before its call does (offset {row.offset})")
    if e.child_session_id == s.meta.session_id:
        raise FoldError(f"session {e.child_session_id} is started as its own child (offset {row.offset})")
    known = s.children.pop(e.child_session_id, None)
    if known is not None and known.running:
        raise FoldError(f"child {e.child_session_id} starts while it runs (offset {row.offset})")
    if s.run is not None and known is None:
        s.run.children += 1
    s.children[e.child_session_id] = ChildRef(
        session_id=e.child_session_id,
        tool_call_id=e.tool_call_id,
        kind=e.session_kind,
        key=e.key,
        member=e.member,
        agent_type=e.agent_type,
        background=e.background,
        runs_before=e.runs_before,
        surfaced=known.surfaced if known is not None else START,
    )
    _forget_oldest(s)


def _forget_oldest(s: SessionState) -> None:
    """Those that ended are remembered, so that they can be given a follow-up, up to a number."""
    ended = [child.session_id for child in s.children.values() if not child.running]
    for child in ended[: max(0, len(s.children) - REMEMBERED_CHILDREN)]:
        del s.children[child]


def delegation_surfaced(s: SessionState, e: ev.DelegationSurfaced, row: Row) -> None:
    """What a child published stands here too; an ask of it makes this session wait as well."""
    child = s.children.get(e.child_session_id)
    if child is None or not child.running or child.tool_call_id != e.tool_call_id:
        raise FoldError(f"child {e.child_session_id} surfaces and doesn't run for this call (offset {row.offset})")
    if e.child_offset <= child.surfaced:
        raise FoldError(f"offset {e.child_offset} of child {child.session_id} surfaces twice (offset {row.offset})")
    child.surfaced = e.child_offset
    if e.ask is not None:
        s.child_asks[e.ask.ask_id] = child.session_id
    elif (ended := e.receipt or e.withdrawal) is not None:
        s.child_asks.pop(ended.ask_id, None)
    asked_or_not(s)


def delegation_finished(s: SessionState, e: ev.DelegationFinished, row: Row) -> None:
    """The child's run ended; what it used counts for the run here."""
    child = s.children.get(e.child_session_id)
    if child is None or not child.running or child.tool_call_id != e.tool_call_id:
        raise FoldError(f"child {e.child_session_id} ends and doesn't run for this call (offset {row.offset})")
    child.running, child.stop_reason, child.refused = False, e.stop_reason, e.refused
    child.preview = e.preview
    s.child_asks = {ask: session for ask, session in s.child_asks.items() if session != child.session_id}
    asked_or_not(s)
    s.child_usage += e.usage
    s.review_usage += e.review_usage
    if s.run is not None:
        s.run.child_usage += e.usage
        s.run.review_usage += e.review_usage
        s.run.child_calls += e.calls


def task_changed(s: SessionState, e: ev.TeamTaskChanged, row: Row) -> None:
    """The list of tasks of the team that this call is."""
    _team(s, e.tool_call_id, row).tasks[e.task.number] = e.task


def message_sent(s: SessionState, e: ev.TeamMessageSent, row: Row) -> None:
    """A message of the team, numbered from 1 without a gap."""
    team = _team(s, e.tool_call_id, row)
    if e.number != len(team.messages) + 1:
        raise FoldError(f"message {e.number} follows {len(team.messages)} (offset {row.offset})")
    team.messages.append(e)


def _team(s: SessionState, tool_call_id: ev.Event | str, row: Row) -> Team:
    call = open_call(s, tool_call_id, row)
    if call.team is None:
        call.team = Team()
    return call.team
