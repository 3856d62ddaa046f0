"""`SessionState` as a fold over events, provider history as a projection of it, and the snapshot codec."""

from counterfoil.state.fold import Row, apply, fold
from counterfoil.state.history import (
    EncodedHistory,
    History,
    HistoryCall,
    HistoryItem,
    HistoryResult,
    PromptItem,
    SummaryItem,
    TurnItem,
)
from counterfoil.state.session import ChildRef, Grant, Meta, OpenCall, OpenTurn, RunState, SessionState, Team
from counterfoil.state.snapshot import decode_snapshot, encode_snapshot

__all__ = [
    "ChildRef",
    "EncodedHistory",
    "Grant",
    "History",
    "HistoryCall",
    "HistoryItem",
    "HistoryResult",
    "Meta",
    "OpenCall",
    "OpenTurn",
    "PromptItem",
    "Row",
    "RunState",
    "SessionState",
    "SummaryItem",
    "Team",
    "TurnItem",
    "apply",
    "decode_snapshot",
    "encode_snapshot",
    "fold",
]
