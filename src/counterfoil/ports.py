"""The ports: what the engine needs from outside, as Protocols with their promises. Adapters live elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from counterfoil.events import (
    Definition,
    Entry,
    Executed,
    Part,
    SessionKind,
    SessionStatus,
    StoredEvent,
    TurnStop,
    Usage,
)
from counterfoil.events.base import Value
from counterfoil.identity import START, Fence, Offset, RunID, SessionID, ToolCallID
from counterfoil.state.history import EncodedHistory, History

# ---- time ---------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time, injected."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Used for back-off alone, never as synchronisation."""
        ...


# ---- providers ----------------------------------------------------------------------------------------------


class ToolSpec(Value, frozen=True, kw_only=True):
    """What a tool is: `parameters` is a JSON Schema of type object; `timeout` is in seconds, 0 for none.

    `read_only`: changes nothing, may run beside others. `idempotent`: running it again is harmless.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False
    idempotent: bool = False
    timeout: float = 120.0


class ModelSettings(Value, frozen=True, kw_only=True):
    """What is asked of the model. `effort`: reasoning effort where the API has one. `max_tokens`: 0 = its default."""

    model: str
    max_tokens: int = 0
    temperature: float | None = None
    effort: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `memo` keeps the wire bytes of what was encoded for this session and provider before."""

    history: History
    system: str
    tools: tuple[ToolSpec, ...]
    settings: ModelSettings
    memo: EncodedHistory


class ProposedCall(Value, frozen=True, kw_only=True):
    """A call as the model wrote it. `pairing_id` is private and never empty: the adapter made one (`made`) where
    the wire had none. `arguments` is None where the text wasn't a JSON object; `problem` says why.
    """

    pairing_id: str
    made: bool = False
    tool: str
    arguments: dict[str, Any] | None
    problem: str | None = None

    def __repr__(self) -> str:
        """Without the pairing id: a repr ends in logs and error texts."""
        return f"<ProposedCall {self.tool}>"


class ModelTurn(Value, frozen=True, kw_only=True):
    """One whole turn of the model. `wire` is what the provider must get back, as private JSON (or None)."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ProposedCall, ...] = ()
    wire: msgspec.Raw | None = None
    usage: Usage = Usage()
    stop_reason: TurnStop = "end_turn"
    model: str = ""

    def __repr__(self) -> str:
        """Without what is private to the provider."""
        return f"<ModelTurn {self.stop_reason}, {len(self.calls)} calls>"


class TextChunk(Value, frozen=True, kw_only=True):
    """More text of the message."""

    text: str


class ReasoningChunk(Value, frozen=True, kw_only=True):
    """More text of the public reasoning."""

    text: str


class CallChunk(Value, frozen=True, kw_only=True):
    """More of the call at `position` (0, 1, …): its name, or a fragment of its arguments."""

    position: int
    tool: str = ""
    arguments_text: str = ""


StreamItem = TextChunk | ReasoningChunk | CallChunk | ModelTurn


class Provider(Protocol):
    """A model behind an API."""

    @property
    def name(self) -> str:
        """The configured name, public."""
        ...

    @property
    def origin(self) -> str:
        """Wire format and host: private replay data goes back only to the origin that it came from."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Ask once. Yields chunks and, last, the one whole `ModelTurn`.

        Raises `ProviderError`; then nothing of the turn may be accepted. Does not retry.
        """
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...


# ---- tools --------------------------------------------------------------------------------------------------


class ToolOutput(Value, frozen=True, kw_only=True):
    """What a tool gave back. `executed` says whether its side effects happened."""

    parts: tuple[Part, ...]
    is_error: bool = False
    executed: Executed = "yes"


class PathUse(Value, frozen=True, kw_only=True):
    """One path that a call would read or write: as given (absolute), and with symlinks resolved."""

    given: str
    resolved: str
    write: bool = False
    inside: bool = True


class Targets(Value, frozen=True, kw_only=True):
    """What a call would touch, for the permission decision: paths, one shell command line, one URL host."""

    paths: tuple[PathUse, ...] = ()
    command: str | None = None
    domain: str | None = None


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call runs. `progress` publishes a transient line. `output_dir` takes what is too long to record."""

    session_id: SessionID
    tool_call_id: ToolCallID
    workspace: Path
    output_dir: Path
    environment: Mapping[str, str]
    progress: Callable[[str], None]


class Tool(Protocol):
    """Something the model can call."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        ...

    def targets(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Targets:
        """What a call with these (valid) arguments would touch. Looks at the file system, changes nothing."""
        ...

    async def run(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run. `arguments` are valid by `spec.parameters`. Raises `ToolFailure` for what the model should read.

        On cancellation everything that was started is stopped before this returns.
        """
        ...


class Toolset(Protocol):
    """The tools of one session, with whatever they keep between calls (background shells, …)."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in a stable order."""
        ...

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        ...

    async def close(self) -> None:
        """Stop everything that was started in the background."""
        ...


# ---- hooks --------------------------------------------------------------------------------------------------

HookPhase = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "SessionEnd",
]


class HookAnswer(Value, frozen=True, kw_only=True):
    """What one configured hook said when it was fired once.

    `failure` says why the hook itself failed (couldn't start, crash, time-out, bad output); then `on_failure` decides.
    `blocked` with `reason`: it blocks what the phase is about. `proceed` False: it stops the whole run.
    `permission`: a PreToolUse decision. `request`: a PermissionRequest answer. `updated_input`: the whole new
    arguments. `updated_output`: what the model sees instead. Times: µs since the epoch, milliseconds.
    """

    definition: Definition
    on_failure: Literal["block", "allow"] = "allow"
    started_at: int = 0
    duration_ms: int = 0
    exit_code: int | None = None
    failure: str | None = None
    blocked: bool = False
    reason: str = ""
    proceed: bool = True
    stop_reason: str = ""
    suppress_output: bool = False
    system_message: str = ""
    permission: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_reason: str = ""
    request: Literal["allow", "deny"] | None = None
    request_message: str = ""
    interrupt: bool = False
    updated_input: dict[str, Any] | None = None
    updated_output: str | None = None
    additional_context: str = ""
    retry: bool = False
    warnings: tuple[str, ...] = ()


class HookCall(msgspec.Struct, frozen=True, kw_only=True):
    """One firing: the phase, the contract's JSON input, and what matchers and `if` look at.

    `match` is what the matcher is held against (a tool name, a source, …). `targets` of the call, for `if`.
    """

    phase: HookPhase
    payload: dict[str, Any]
    match: str | None = None
    tool_call_id: ToolCallID | None = None
    targets: Targets | None = None


class HookRunner(Protocol):
    """The configured hooks of one session."""

    def wants(self, phase: HookPhase) -> bool:
        """Whether any hook is configured for `phase`; cheap, so that nothing is built for nobody."""
        ...

    async def fire(self, call: HookCall) -> list[HookAnswer]:
        """Run every matching hook, concurrently, and return their answers in configuration order.

        A hook's own fault is an answer with `failure`, never an exception. On cancellation every process that was
        started is gone before this returns.
        """
        ...

    async def close(self) -> None:
        """Wait for, or end, what still runs in the background."""
        ...


# ---- store --------------------------------------------------------------------------------------------------


class Holder(Value, frozen=True, kw_only=True):
    """Who drives a session, for people: process, host and program."""

    pid: int
    host: str
    program: str = "counterfoil"


class Lease(Value, frozen=True, kw_only=True):
    """The right to write one session: each new lease has a higher fence."""

    session_id: SessionID
    fence: Fence
    holder: Holder


class SessionSummary(Value, frozen=True, kw_only=True):
    """The list entry of a session: a cached fold, written with the events that changed it."""

    session_id: SessionID
    kind: SessionKind = SessionKind.MAIN
    parent_session_id: SessionID | None = None
    owner: str
    title: str = ""
    workspace: str = ""
    provider: str = ""
    model: str = ""
    status: SessionStatus = "idle"
    open_asks: int = 0
    created_at: int = 0
    updated_at: int = 0


class Head(Value, frozen=True, kw_only=True):
    """The end of a session's log: last offset (0 when empty) and last digest (empty bytes when empty)."""

    offset: Offset
    digest: bytes


class Stamped(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with the place in its run's stream and its time, as the publisher stamps it."""

    entry: Entry
    run_id: RunID | None
    seq: int | None
    recorded_at: int


class EventStore(Protocol):
    """The system of record: one append-only, digest-chained log per session, and caches of its fold."""

    async def acquire(self, session: SessionID, holder: Holder) -> Lease:
        """Take the right to write, for a new or an existing session.

        Raises `SessionHeld` (the message names the holder) while a live holder has it; a holder that died
        has lost it. Raises `StoreUnavailable`.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give the right back; the lease writes nothing any more. Releasing twice, or a lease that has passed on,
        does nothing.
        """
        ...

    async def append(
        self, lease: Lease, expected: Offset, batch: Sequence[Stamped], summary: SessionSummary | None = None
    ) -> list[StoredEvent]:
        """Append all or nothing, durably, after `expected`; with `summary`, replace the list entry with it.

        Raises `StaleFence` or `Conflict`: then nothing was written. Raises `StoreUnavailable`.
        """
        ...

    async def read(self, session: SessionID, after: Offset = START, limit: int = 1000) -> list[StoredEvent]:
        """Up to `limit` rows with an offset over `after`, in order. Raises `SessionNotFound`."""
        ...

    async def head(self, session: SessionID) -> Head:
        """The end of the log. Raises `SessionNotFound`."""
        ...

    async def load_snapshot(self, session: SessionID) -> tuple[Offset, bytes] | None:
        """The latest snapshot and the offset that it goes up to. None where there is none, or no such session."""
        ...

    async def save_snapshot(self, lease: Lease, offset: Offset, data: bytes) -> None:
        """Replace the snapshot. Raises `StaleFence`."""
        ...

    async def sessions(self, *, limit: int = 1000) -> list[SessionSummary]:
        """All list entries, latest first."""
        ...

    async def summary(self, session: SessionID) -> SessionSummary:
        """One list entry. Raises `SessionNotFound`."""
        ...

    async def delete(self, lease: Lease) -> None:
        """Remove the session for good: log, snapshot, list entry. Gives the lease back."""
        ...

    async def close(self) -> None:
        """Finish what was begun and give up everything."""
        ...
