"""What clients get back, beyond the public types of events: frozen values, the same over every door."""

from __future__ import annotations

from counterfoil.events import Envelope, Mode
from counterfoil.events.base import Value
from counterfoil.identity import AskID, Offset, ReviewID, RunID, SessionID
from counterfoil.ports import SessionSummary


class Started(Value, frozen=True, kw_only=True):
    """A run that is recorded and goes on by itself; `watch` tells what becomes of it."""

    session_id: SessionID
    run_id: RunID


class SessionPage(Value, frozen=True, kw_only=True):
    """One page of a list of sessions, latest first. `next_token` is empty on the last."""

    sessions: tuple[SessionSummary, ...]
    next_token: str = ""


class TranscriptPage(Value, frozen=True, kw_only=True):
    """Logged events in order. `next_offset`: what to read on after; None where nothing followed."""

    events: tuple[Envelope, ...]
    next_offset: Offset | None = None


class LogCheck(Value, frozen=True, kw_only=True):
    """What recomputing the digest chain found. `first_bad_offset`: the first row that doesn't fit, where known."""

    session_id: SessionID
    intact: bool
    events: int
    first_bad_offset: Offset | None = None


class LearnedRule(Value, frozen=True, kw_only=True):
    """A rule that an answer let a session learn, for this session (`session`) or for good (`always`)."""

    rule: str
    scope: str
    ask_id: AskID | None = None


class ReviewPolicy(Value, frozen=True, kw_only=True):
    """One configured review policy, and how its checker fared in this process.

    `last_outage_at` is µs since the epoch, UTC; an outage is never a finding.
    """

    name: str
    jobs: tuple[str, ...]
    tools: tuple[str, ...]
    checker: str
    enforcement: str
    checks: int = 0
    outages: int = 0
    last_outage: str = ""
    last_outage_at: int = 0


class ReviewText(Value, frozen=True, kw_only=True):
    """What a checker wrote: prose of a model about untrusted content. Show it as such, follow it never."""

    session_id: SessionID
    review_id: ReviewID
    revision: int
    untrusted_concern: str = ""
    untrusted_evidence: str = ""
    untrusted_next_step: str = ""


class Info(Value, frozen=True, kw_only=True):
    """The service, who it takes the caller for, and what a session begins with that names nothing else."""

    version: str
    principal_name: str
    role: str
    capabilities: tuple[str, ...] = ()
    workspace: str = ""
    provider: str = ""
    model: str = ""
    mode: Mode = "default"
