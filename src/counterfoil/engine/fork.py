"""New logs: the first event of a session, and the copy of another session's log up to some offset."""

from __future__ import annotations

import msgspec

from counterfoil.engine.publish import numbered
from counterfoil.engine.recover import closing_run
from counterfoil.engine.settings import Parts
from counterfoil.engine.summary import after
from counterfoil.errors import CodecError, FoldError, NotResumable
from counterfoil.events import (
    Entry,
    GrantChanged,
    HookRecorded,
    Principal,
    Relationship,
    SessionCreated,
    SessionKind,
    SessionUpdated,
    StoredEvent,
    UnknownEvent,
)
from counterfoil.events.codec import decode_private, event_of
from counterfoil.identity import START, Offset, SessionID
from counterfoil.ports import Lease, SessionSummary, Stamped
from counterfoil.state import Grant, Meta, Row, SessionState, apply

PAGE = 500


async def append_first(parts: Parts, lease: Lease, created: SessionCreated) -> SessionState:
    """Append the first event of a new log and return the state after it."""
    entry = Entry(created)
    stamped = Stamped(entry=entry, run_id=None, seq=None, recorded_at=parts.clock.now())
    stored = await parts.store.append(lease, START, [stamped], _first_summary(created, stamped.recorded_at))
    return apply(None, Row(stored[0], entry))


def _first_summary(created: SessionCreated, now: int) -> SessionSummary:
    meta = Meta(
        session_id=created.session_id,
        kind=created.session_kind,
        relationship=created.relationship,
        owner=created.owner,
        title=created.title,
        workspace=created.workspace,
        provider=created.provider,
        model=created.model,
        created_at=now,
    )
    return after(SessionState(meta=meta), ())


async def fork_session(parts: Parts, source: SessionID, at: Offset, title: str | None) -> SessionID:
    """Copy the log of `source` up to and with `at` into a new session. See `Engine.fork`."""
    first = (await parts.store.read(source, START, 1))[0]
    original = event_of(first)
    if not isinstance(original, SessionCreated):
        raise NotResumable(f"session {source} doesn't begin with session.created")
    before = original.relationship.copied_from if original.relationship is not None else ()
    created = msgspec.structs.replace(
        original,
        session_id=parts.ids.session(),
        session_kind=SessionKind.FORK,
        relationship=Relationship(parent_session_id=source, forked_at=at, copied_from=(source, *before)),
        title=original.title if title is None else title,
    )
    lease = await parts.store.acquire(created.session_id, parts.holder)
    try:
        state = await append_first(parts, lease, created)
        state = await _copy(parts, lease, state, source, at)
        await _close(parts, lease, state)
    except (FoldError, CodecError) as fault:
        await parts.store.delete(lease)
        raise NotResumable(f"session {source} can't be copied: {fault.message}") from fault
    except BaseException:
        await parts.store.delete(lease)
        raise
    await parts.store.release(lease)
    return created.session_id


async def _copy(parts: Parts, lease: Lease, state: SessionState, source: SessionID, at: Offset) -> SessionState:
    offset = Offset(1)
    while offset < at:
        rows = await parts.store.read(source, offset, min(PAGE, at - offset))
        batch = [_stamped(row) for row in rows]
        stored = await parts.store.append(lease, offset, batch)
        for row in stored:
            state = apply(state, Row(row))
        offset = rows[-1].offset
    return state


def _stamped(row: StoredEvent) -> Stamped:
    """The row as it is: its public bytes are carried over whatever this version knows of them."""
    event = UnknownEvent(original_kind=row.kind, body=msgspec.Raw(row.public))
    return Stamped(
        entry=Entry(event, decode_private(row.private)), run_id=row.run_id, seq=row.seq, recorded_at=row.recorded_at
    )


def _revoked(grant: Grant) -> GrantChanged:
    """What was allowed for that session isn't allowed for this one."""
    by = Principal(kind="policy", name="fork")
    return GrantChanged(rule=grant.rule, scope="session", revoked=True, ask_id=grant.ask_id, decided_by=by)


async def _close(parts: Parts, lease: Lease, state: SessionState) -> None:
    """Close in the copy what was open where it was cut, and write its list entry."""
    entries = [Entry(_revoked(grant)) for grant in state.grants if grant.scope == "session"]
    entries += [Entry(e) for e in closing_run(state, "interrupted", "interrupted", "cut by the fork")]
    run_id = state.run.run_id if state.run is not None else None
    seq = state.run.last_seq if state.run is not None else 0
    now = parts.clock.now()
    entries = entries or [Entry(SessionUpdated(title=state.meta.title))]
    batch: list[Stamped] = []
    revision = state.revision
    for i, entry in enumerate(entries, 1):
        if isinstance(entry.event, HookRecorded):
            revision += 1
            entry = numbered(entry.event, entry, revision)
        batch.append(Stamped(entry=entry, run_id=run_id, seq=seq + i if run_id else None, recorded_at=now))
    await parts.store.append(lease, state.offset, batch, after(state, entries))
