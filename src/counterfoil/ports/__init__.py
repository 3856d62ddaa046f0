"""The ports: what the engine needs from outside, as Protocols with their promises. Adapters live elsewhere."""

from counterfoil.ports.clock import Clock
from counterfoil.ports.hook import HookAnswer, HookCall, HookPhase, HookRunner
from counterfoil.ports.provider import (
    CallChunk,
    ModelRequest,
    ModelSettings,
    ModelTurn,
    ProposedCall,
    Provider,
    ReasoningChunk,
    StreamItem,
    TextChunk,
)
from counterfoil.ports.review import (
    Assessment,
    Checked,
    Evidence,
    Piece,
    Reviewer,
    ReviewRule,
    ReviewSubject,
)
from counterfoil.ports.store import EventStore, Head, Holder, Lease, SessionSummary, Stamped
from counterfoil.ports.tool import PathUse, Targets, Tool, ToolContext, ToolOutput, Toolset, ToolSpec

__all__ = [
    "Assessment",
    "CallChunk",
    "Checked",
    "Clock",
    "EventStore",
    "Evidence",
    "Head",
    "Holder",
    "HookAnswer",
    "HookCall",
    "HookPhase",
    "HookRunner",
    "Lease",
    "ModelRequest",
    "ModelSettings",
    "ModelTurn",
    "PathUse",
    "Piece",
    "ProposedCall",
    "Provider",
    "ReasoningChunk",
    "ReviewRule",
    "ReviewSubject",
    "Reviewer",
    "SessionSummary",
    "Stamped",
    "StreamItem",
    "Targets",
    "TextChunk",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolSpec",
    "Toolset",
]
