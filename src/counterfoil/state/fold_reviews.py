"""Reviews: each a record with revisions on its call; held results; what people have seen of a concern."""

from __future__ import annotations

from counterfoil import events as ev
from counterfoil.errors import FoldError
from counterfoil.identity import result_digest, review_id
from counterfoil.state.row import Row, open_call
from counterfoil.state.session import OpenCall, ReviewMark, SessionState

REMEMBERED_REVIEWS = 256
_SETTLED = frozenset({"withheld", "denied"})


def review_recorded(s: SessionState, record: ev.HookRecord, row: Row) -> None:
    """Keep the newest revision with its call. Its id must be the one of this call and job."""
    review = record.review
    if review is None:
        return
    if record.hook_id != review.review_id:
        raise FoldError(f"record {record.hook_id} carries review {review.review_id} (offset {row.offset})")
    if record.tool_call_id is None or review.review_id != review_id(record.tool_call_id, review.job):
        raise FoldError(f"review {review.review_id} isn't of its call and job (offset {row.offset})")
    call = open_call(s, record.tool_call_id, row)
    before = call.reviews.get(review.job)
    if before is not None and before.review is not None and before.review.state in _SETTLED:
        raise FoldError(f"review {review.review_id} changes after {before.review.state} (offset {row.offset})")
    call.reviews[review.job] = record
    seen = s.reviews.pop(review.review_id, None)
    acknowledged = 0 if seen is None else seen.acknowledged
    mark = ReviewMark(revision=record.revision, tool_call_id=record.tool_call_id, acknowledged=acknowledged)
    s.reviews[review.review_id] = mark
    while len(s.reviews) > REMEMBERED_REVIEWS:
        del s.reviews[next(iter(s.reviews))]
    _count(s, review)


def _count(s: SessionState, review: ev.Review) -> None:
    """What the check cost counts apart; refusals of the permission job count for its limit."""
    if review.state != review.finding:
        return
    run = s.run
    if review.usage is not None:
        s.review_usage += review.usage
        if run is not None:
            run.review_usage += review.usage
    if run is not None and review.job == "permission" and review.finding != "clear":
        run.permission_refusals += 1


def acknowledged(s: SessionState, e: ev.ReviewAcknowledged, row: Row) -> None:
    """A person saw a revision that was published."""
    mark = s.reviews.get(e.review_id)
    if mark is None:
        return
    if e.revision > mark.revision or e.tool_call_id != mark.tool_call_id:
        raise FoldError(f"review {e.review_id} is acknowledged at a revision it never had (offset {row.offset})")
    mark.acknowledged = max(mark.acknowledged, e.revision)


def call_held(s: SessionState, e: ev.CallHeld, row: Row) -> None:
    """The result is there and kept back, exactly."""
    call = open_call(s, e.tool_call_id, row)
    if call.phase != "started":
        raise FoldError(f"call {e.tool_call_id} is held in phase {call.phase} (offset {row.offset})")
    held = row.private
    if not isinstance(held, ev.HeldResult) or result_digest(held.parts) != e.result_digest:
        raise FoldError(f"the held result of call {e.tool_call_id} isn't the one it names (offset {row.offset})")
    call.phase, call.held, call.held_digest, call.held_size = "held", held, e.result_digest, e.size
    call.receipt = None


def leave_hold(call: OpenCall, e: ev.CallFinished, row: Row) -> None:
    """What a held call may finish as: its exact result where nothing keeps it back, else nothing of it."""
    if e.status in ("withheld", "cancelled", "interrupted"):
        return
    held = call.held
    if held is None or (e.status, e.parts, e.executed) != (held.status, held.parts, held.executed):
        raise FoldError(f"call {e.tool_call_id} finishes with another result than the held one (offset {row.offset})")
    released = call.receipt is not None and call.receipt.verdict == "release"
    record = call.reviews.get("inbound")
    state = record.review.state if record is not None and record.review is not None else "pending"
    if not released and state in ("pending", "asked", "held", "withheld", "withdrawn"):
        raise FoldError(f"call {e.tool_call_id} finishes while its result is held back (offset {row.offset})")


def may_start(call: OpenCall, row: Row) -> None:
    """Raise `FoldError` where a review stands between the call and its start."""
    for record in call.reviews.values():
        if record.review is not None and record.review.state in ("pending", "denied"):
            why = f"while its {record.review.job} review is {record.review.state}"
            raise FoldError(f"call {call.tool_call_id} starts {why} (offset {row.offset})")
