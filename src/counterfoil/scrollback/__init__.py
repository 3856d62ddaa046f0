"""What a person sees, computed from events alone: one pure reducer for live streams and for replay."""

from counterfoil.scrollback.entries import (
    CompactionEntry,
    Entry,
    EvidenceEntry,
    MessageEntry,
    NoticeEntry,
    PromptEntry,
    RunEntry,
    ToolCard,
    UnknownEntry,
)
from counterfoil.scrollback.reducer import Scrollback
from counterfoil.scrollback.views import AskView, CallView, ChildView, LiveView, SessionView, Source
from counterfoil.scrollback.visible import visible, visible_line

__all__ = [
    "AskView",
    "CallView",
    "ChildView",
    "CompactionEntry",
    "Entry",
    "EvidenceEntry",
    "LiveView",
    "MessageEntry",
    "NoticeEntry",
    "PromptEntry",
    "RunEntry",
    "Scrollback",
    "SessionView",
    "Source",
    "ToolCard",
    "UnknownEntry",
    "visible",
    "visible_line",
]
