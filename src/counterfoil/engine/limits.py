"""When a run has had enough. Pure."""

from __future__ import annotations

from counterfoil.engine.context import Stop
from counterfoil.events import ErrorInfo, StopReason
from counterfoil.state import SessionState


def reached(state: SessionState) -> Stop | None:
    """The stop that the limits demand before the next turn, if any. A limit of zero is none."""
    run, limits = state.run, state.meta.limits
    if run is None:
        return None
    tokens = run.usage.input_tokens + run.usage.output_tokens
    checks: tuple[tuple[int, int, StopReason, str], ...] = (
        (run.turn, limits.max_turns, "max_turns", "turns"),
        (run.tool_calls, limits.max_tool_calls, "max_tool_calls", "tool calls"),
        (tokens, limits.max_tokens, "budget", "tokens"),
        (run.consecutive_failures, limits.max_consecutive_failures, "no_progress", "failed calls in a row"),
        (run.repeats, limits.max_repeated_turns, "no_progress", "equal turns with equal results in a row"),
    )
    for count, limit, reason, what in checks:
        if limit and count >= limit:
            message = f"the run had {count} {what}; the limit is {limit}"
            return Stop(reason=reason, error=ErrorInfo(code=reason, message=message, hint="raise the limit to go on"))
    return None
