"""Small things that the tests of stores append."""

from __future__ import annotations

import msgspec

from counterfoil.events import CallReplay, Entry, Notice, SessionCreated
from counterfoil.events.base import Event
from counterfoil.events.kinds import UnknownEvent
from counterfoil.events.values import Principal
from counterfoil.identity import RandomIds, RunID, SessionID
from counterfoil.ports import Holder, SessionSummary, Stamped

IDS = RandomIds()
RUN = RunID("run_" + "1" * 26)
ME = Holder(pid=4242, host="attic", program="counterfoil run")
YOU = Holder(pid=4343, host="cellar", program="counterfoil serve")


def new_id() -> SessionID:
    """A session id that nothing has."""
    return IDS.session()


def note(text: str, *, at: int = 1, run: RunID | None = RUN, seq: int | None = 1, pairing: str = "") -> Stamped:
    """A stamped notice; with `pairing`, beside a private half."""
    private = CallReplay(origin="o", pairing_id=pairing) if pairing else None
    event = Notice(severity="notable", code="test", text=text)
    return Stamped(entry=Entry(event, private), run_id=run, seq=seq, recorded_at=at)


def stamped(event: Event, *, at: int = 1) -> Stamped:
    """Any event, outside a run."""
    return Stamped(entry=Entry(event), run_id=None, seq=None, recorded_at=at)


def created(session: SessionID, *, at: int = 1) -> Stamped:
    """The first event of a log."""
    owner = Principal(kind="local", name="tester")
    return stamped(
        SessionCreated(session_id=session, owner=owner, workspace="/work", provider="scripted", model="m"), at=at
    )


def unknown(kind: str, body: bytes) -> Stamped:
    """An event of a kind that this version doesn't know."""
    return stamped(UnknownEvent(original_kind=kind, body=msgspec.Raw(body)))


def summary_of(session: SessionID, title: str = "a title") -> SessionSummary:
    """A list entry."""
    return SessionSummary(session_id=session, owner="local:tester", title=title, workspace="/work")
