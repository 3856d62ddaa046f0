"""What a session's log says of its reviews: the newest revision of each, what people saw, and the prose where kept."""

from __future__ import annotations

import asyncio

import msgspec

from counterfoil.cli import compose
from counterfoil.cli.reading import rows
from counterfoil.cli.reference import MANY
from counterfoil.engine.mail import AcknowledgeLetter, encode_letter, heard
from counterfoil.errors import LogDamaged, ReviewNotFound, SessionHeld
from counterfoil.events import HookRecord, HookRecorded, ReviewAcknowledged, ReviewDetail, StoredEvent
from counterfoil.events.codec import decode_private, event_of
from counterfoil.identity import ReviewID, Revision, SessionID
from counterfoil.ports import EventStore
from counterfoil.service.local import LocalService

_KINDS = frozenset({"hook.recorded", "review.acknowledged"})


class ReviewLog(msgspec.Struct, kw_only=True):
    """One review as its session's log has it. `acknowledged` is the newest revision that a person saw, 0 for none."""

    session_id: SessionID
    record: HookRecord
    revisions: list[tuple[Revision, str]] = msgspec.field(default_factory=list)
    acknowledged: int = 0


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One review, and the checker's prose where the log keeps it, in its private half."""

    review: ReviewLog
    detail: ReviewDetail | None = None


async def of_session(store: EventStore, session: SessionID) -> list[ReviewLog]:
    """The reviews of a session, in the order in which they began."""
    found: dict[ReviewID, ReviewLog] = {}
    async for row in rows(store, session):
        if row.kind in _KINDS:
            _take(found, session, row)
    return list(found.values())


def _take(found: dict[ReviewID, ReviewLog], session: SessionID, row: StoredEvent) -> None:
    event = event_of(row)
    if isinstance(event, ReviewAcknowledged) and event.review_id in found:
        found[event.review_id].acknowledged = max(found[event.review_id].acknowledged, event.revision)
    if not isinstance(event, HookRecorded) or event.record.review is None:
        return
    record = event.record
    log = found.setdefault(record.hook_id, ReviewLog(session_id=session, record=record))
    if record.revision >= log.record.revision:
        log.record = record
    assert record.review is not None
    log.revisions.append((record.revision, record.review.state))


async def find(store: EventStore, review: str) -> Kept:
    """The review of this id, in whichever session. Raises `ReviewNotFound`; `LogDamaged` where it may be unreadable."""
    damaged: LogDamaged | None = None
    for summary in await store.sessions(limit=MANY):
        try:
            kept = await _in(store, summary.session_id, review)
        except LogDamaged as fault:
            damaged = fault
            continue
        if kept is not None:
            return kept
    if damaged is not None:
        raise damaged
    raise ReviewNotFound(f"no review {review}", hint="`counterfoil reviews list SESSION` shows those of a session")


async def _in(store: EventStore, session: SessionID, review: str) -> Kept | None:
    found: dict[ReviewID, ReviewLog] = {}
    detail: ReviewDetail | None = None
    name = review.encode()
    async for row in rows(store, session):
        if row.kind not in _KINDS or name not in row.public:
            continue
        _take(found, session, row)
        private = decode_private(row.private)
        if isinstance(private, ReviewDetail):
            detail = private
    log = found.get(ReviewID(review))
    return None if log is None else Kept(review=log, detail=detail)


async def acknowledge(local: LocalService, review: str, revision: int | None, wait: float) -> ReviewLog:
    """Record that the person saw the review: here, or by letter where another process drives its session.

    Raises `ReviewNotFound`, `StaleReview`, `SessionHeld`.
    """
    kept = (await find(local.store, review)).review
    seen = kept.record.revision if revision is None else revision
    person = compose.principal()
    try:
        async with await local.engine.open(kept.session_id) as session:
            await session.acknowledge(kept.record.hook_id, seen, principal=person)
    except SessionHeld as held:
        letter = AcknowledgeLetter(review_id=kept.record.hook_id, revision=seen, principal=person)
        number = await local.store.post(kept.session_id, encode_letter(letter))
        try:
            async with asyncio.timeout(wait):
                heard(await local.store.wait_reply(kept.session_id, number))
        except TimeoutError:
            hint = "it is kept: that process, or whichever opens the session next, reads it"
            raise SessionHeld(f"{held.message} and has not read this yet", hint=hint) from held
    kept.acknowledged = seen
    return kept
