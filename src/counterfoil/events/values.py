"""Values that several events carry: limits, usage, principals, kinds and states of a session."""

from __future__ import annotations

import enum
from typing import Literal

from counterfoil.events.base import Value
from counterfoil.identity import SessionID, ToolCallID

Mode = Literal["default", "accept_edits", "plan", "dont_ask", "bypass"]
SessionStatus = Literal["idle", "running", "awaiting", "completed", "failed", "cancelled"]
StopReason = Literal[
    "end_turn",
    "max_turns",
    "max_tool_calls",
    "budget",
    "cancelled",
    "malformed_turn",
    "provider_error",
    "hook_stopped",
    "no_progress",
    "store_error",
    "interrupted",
    "deferred",
]
TurnStop = Literal["end_turn", "tool_use", "max_tokens", "refusal", "content_filter", "other"]
_STATUS_OF_STOP: dict[str, SessionStatus] = {
    "end_turn": "completed",
    "hook_stopped": "completed",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}


def status_after(stop: StopReason) -> SessionStatus:
    """What a session is after a run that ended so: any other reason is a failure."""
    return _STATUS_OF_STOP.get(stop, "failed")


CallStatus = Literal["ok", "error", "denied", "blocked", "cancelled", "withheld", "interrupted"]
Executed = Literal["yes", "no", "unknown"]
PromptSource = Literal["human", "steer", "harness"]
Severity = Literal["benign", "notable", "warning", "blocking", "conflict"]


class SessionKind(enum.StrEnum):
    """What a session is. A kind that this version doesn't know restores as `unknown`: read, never resumed."""

    MAIN = "main"
    SUBAGENT = "subagent"
    TEAM_MEMBER = "team_member"
    PARALLEL_BRANCH = "parallel_branch"
    FORK = "fork"
    IMPORTED = "imported"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> SessionKind:
        return cls.UNKNOWN


class Principal(Value, frozen=True, kw_only=True):
    """Who did something, as verified at the door that it came through; never what a client says of itself.

    `kind`: `local` (the process's user), `policy` (a rule or flag decided), `program`, `user` (authenticated).
    """

    kind: Literal["local", "policy", "program", "user"]
    name: str


class Relationship(Value, frozen=True, kw_only=True):
    """How a session came out of another one. Parent call, child session and child call are three things.

    `copied_from`: for a fork, every session that part of its log was written in, nearest first.
    """

    parent_session_id: SessionID
    parent_tool_call_id: ToolCallID | None = None
    member: str | None = None
    forked_at: int | None = None
    copied_from: tuple[SessionID, ...] = ()


class Authority(Value, frozen=True, kw_only=True):
    """What a child session was started with: it only ever narrows what its parent may.

    `tools`: the names that it may use. `instructions`: of its type, for its system
    prompt. `depth`: 1 for a child of a root. `root_session_id`: the session that a person drives.
    """

    agent_type: str = ""
    tools: tuple[str, ...] = ()
    instructions: str = ""
    depth: int = 1
    root_session_id: SessionID


TaskState = Literal["open", "claimed", "done", "dropped"]


class TeamTask(Value, frozen=True, kw_only=True):
    """One entry of the task list that the members of a team share. `after`: the numbers of tasks that come first."""

    number: int
    title: str
    text: str = ""
    state: TaskState = "open"
    owner: str = ""
    after: tuple[int, ...] = ()
    result: str = ""


class Limits(Value, frozen=True, kw_only=True):
    """Bounds of one run; zero means none. Tokens count input and output of the run together.

    `max_repeated_turns`: so many turns in a row with equal calls and equal results end the run as
    `no_progress`.
    """

    max_turns: int = 250
    max_tool_calls: int = 2_000
    max_consecutive_failures: int = 20
    max_tokens: int = 20_000_000
    max_repeated_turns: int = 8


class Usage(Value, frozen=True, kw_only=True):
    """Tokens as the provider counted them. `input_tokens` includes those read from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            requests=self.requests + other.requests,
        )


class ErrorInfo(Value, frozen=True, kw_only=True):
    """A typed error as events carry it. `permanent`: trying the same again can't help."""

    code: str
    message: str
    hint: str = ""
    permanent: bool = False
