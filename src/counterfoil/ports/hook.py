"""Hooks: what is fired, and what each configured hook answered."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from counterfoil.events import Definition
from counterfoil.events.base import Value
from counterfoil.identity import ToolCallID
from counterfoil.ports.tool import Targets

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
