"""Entries: what stands in the scrollback, in order. All are frozen values, each with a key that stays."""

from __future__ import annotations

from typing import Literal

import msgspec

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
from counterfoil.scrollback.views import AskView, EntryKey, Source, refuses

_UNPLACED = EntryKey("")


class PromptEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="prompt"):
    """Input for the model."""

    key: EntryKey = _UNPLACED
    source: Source
    parts: tuple[Part, ...]
    prompt_source: PromptSource = "human"


class MessageEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="message"):
    """What the model said in one turn. Its reasoning is a `ReasoningEntry` of its own, before it."""

    key: EntryKey = _UNPLACED
    source: Source
    turn: int
    text: str = ""
    reasoning: str = ""


class ReasoningEntry(MessageEntry, frozen=True, kw_only=True, tag_field="entry", tag="reasoning"):
    """The public reasoning of one turn: a message without text, so that whoever shows messages shows it too."""


class ToolCard(Value, frozen=True, kw_only=True, tag_field="entry", tag="call"):
    """The place of one call; what is known of it is the snapshot with this id. The key is the call's id."""

    key: EntryKey = _UNPLACED
    source: Source
    tool_call_id: ToolCallID


class SubagentCard(ToolCard, frozen=True, kw_only=True, tag_field="entry", tag="subagent"):
    """The place of a call that starts one child. A tool card in all else, like the other two."""


class TeamCard(ToolCard, frozen=True, kw_only=True, tag_field="entry", tag="team"):
    """The place of a call that starts named members."""


class ParallelCard(ToolCard, frozen=True, kw_only=True, tag_field="entry", tag="parallel"):
    """The place of a call that starts branches."""


class NoticeEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="notice"):
    """Something that people must see and that isn't about one call."""

    key: EntryKey = _UNPLACED
    source: Source
    severity: Severity
    code: str
    text: str


class RunEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="run"):
    """A run finished."""

    key: EntryKey = _UNPLACED
    source: Source
    stop_reason: StopReason
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    turns: int = 0
    error: ErrorInfo | None = None


class CompactionEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="compaction"):
    """What was before is told to the model by a summary from here on."""

    key: EntryKey = _UNPLACED
    source: Source
    summary: str
    replaced_from: Offset
    replaced_through: Offset
    trigger: str = "auto"


class EvidenceEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="evidence"):
    """A record, ask, receipt or withdrawal that stands alone: joined to no card, for the reason given.

    Exactly one of `record`, `ask`, `receipt` and `withdrawal` is set.
    """

    key: EntryKey = _UNPLACED
    source: Source
    why: Literal["unknown_call", "child_origin", "no_call", "no_identity", "conflict", "unmatched"]
    reason: str = ""
    record: HookRecord | None = None
    ask: AskView | None = None
    receipt: Receipt | None = None
    withdrawal: AskWithdrawn | None = None

    def detached(self) -> EvidenceEntry:
        """The same, with nothing that can be changed for others too."""
        return self if self.ask is None else msgspec.structs.replace(self, ask=self.ask.detached())

    @property
    def severity(self) -> Severity:
        """How severe it is: conflicts above all, a refusal blocks, else as the record says, and never benign unsaid."""
        if self.why == "conflict":
            return "conflict"
        if self.record is not None:
            return self.record.severity
        if self.ask is not None:
            return self.ask.severity
        return "blocking" if refuses(self.receipt) else "notable"


class UnknownEntry(Value, frozen=True, kw_only=True, tag_field="entry", tag="unknown"):
    """An event that this version doesn't know, or that can't follow what came before it. Nothing is dropped."""

    key: EntryKey = _UNPLACED
    source: Source
    kind: str
    body: str
    reason: str = ""


Entry = (
    PromptEntry
    | MessageEntry
    | ReasoningEntry
    | ToolCard
    | SubagentCard
    | TeamCard
    | ParallelCard
    | NoticeEntry
    | RunEntry
    | CompactionEntry
    | EvidenceEntry
    | UnknownEntry
)
