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
from counterfoil.ports.store import EventStore, Head, Holder, Lease, SessionSummary, Stamped
from counterfoil.ports.tool import PathUse, Targets, Tool, ToolContext, ToolOutput, Toolset, ToolSpec

__all__ = [
    "CallChunk",
    "Clock",
    "EventStore",
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
    "ProposedCall",
    "Provider",
    "ReasoningChunk",
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
