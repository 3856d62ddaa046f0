"""Exit codes, the same for every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.engine import RunOutcome

DONE = 0
FAILED = 1
USAGE = 2
PARKED = 75
INTERRUPTED = 130

HELP = "Exit codes: 0 done, 1 failed, 2 usage or configuration, 75 parked on a question, 130 interrupted."


def of_outcome(outcome: RunOutcome) -> int:
    """The exit code for the end of a run. A prompt that a hook dropped, so that nothing was done, is a failure."""
    if outcome.parked:
        return PARKED
    if outcome.stop_reason == "hook_stopped" and not outcome.usage.requests:
        return FAILED
    if outcome.stop_reason in ("end_turn", "hook_stopped"):
        return DONE
    return INTERRUPTED if outcome.stop_reason == "cancelled" else FAILED


def of_error(error: BaseException) -> int:
    """The exit code for a typed error."""
    from counterfoil.errors import ConfigError, UsageError

    return USAGE if isinstance(error, (UsageError, ConfigError)) else FAILED
