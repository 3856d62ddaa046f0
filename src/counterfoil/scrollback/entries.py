"""Entries: what stands in the scrollback, in order. All are frozen values."""

from __future__ import annotations

from typing import Literal

from counterfoil.events import (
    AskWithdrawn,
    ErrorInfo,
    HookRecord,
    Part,
    PromptSource,
    Receipt,
    Severity,
    StopReason,
    Usage,
)
from counterfoil.events.base import Value
from counterfoil.identity import Offset, ToolCallID
from counterfoil.scrollback.views import AskView, Source


class PromptEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="prompt"):
    """Input for the model."""

    source: Source
    parts: tuple[Part, ...]
    prompt_source: PromptSource = "human"


class MessageEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="message"):
    """What the model said in one turn, with its public reasoning."""

    source: Source
    turn: int
    text: str = ""
    reasoning: str = ""


class ToolCard(Value, frozen=True, kw_only=True, tag_field="entry", tag="call"):
    """The place of one call; what is known of it is the `CallView` with this id."""

    source: Source
    tool_call_id: ToolCallID


class NoticeEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="notice"):
    """Something that people must see and that isn't about one call."""

    source: Source
    severity: Severity
    code: str
    text: str


class RunEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="run"):
    """A run finished."""

    source: Source
    stop_reason: StopReason
    usage: Usage = Usage()
    turns: int = 0
    error: ErrorInfo | None = None


class CompactionEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="compaction"):
    """What was before is told to the model by a summary from here on."""

    source: Source
    summary: str
    replaced_from: Offset
    replaced_through: Offset
    trigger: str = "auto"


class EvidenceEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="evidence"):
    """A record, ask, receipt or withdrawal that stands alone: joined to no card, for the reason given.

    Exactly one of `record`, `ask`, `receipt` and `withdrawal` is set.
    """

    source: Source
    why: Literal["unknown_call", "child_origin", "no_call", "no_identity", "conflict", "unmatched"]
    reason: str = ""
    record: HookRecord | None = None
    ask: AskView | None = None
    receipt: Receipt | None = None
    withdrawal: AskWithdrawn | None = None

    @property
    def severity(self) -> Severity:
        """How severe it is: conflicts above all, else as the record says."""
        if self.why == "conflict":
            return "conflict"
        return self.record.severity if self.record is not None else "notable"


class UnknownEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="unknown"):
    """An event that this version doesn't know, or that can't follow what came before it. Nothing is dropped."""

    source: Source
    kind: str
    body: str
    reason: str = ""


Entry = PromptEntry | MessageEntry | ToolCard | NoticeEntry | RunEntry | CompactionEntry | EvidenceEntry | UnknownEntry
