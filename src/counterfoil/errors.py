"""The one tree of errors. Each says what was wrong and where, and ends with what to do (`hint`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from counterfoil.events import Receipt


class CounterfoilError(Exception):
    """Base of all typed errors. `code` is stable; `message` is one clear line; `hint` says what to do."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(CounterfoilError):
    """The command or the request can't be understood."""

    code = "usage"


class ConfigError(CounterfoilError):
    """A configuration file or value is wrong; the message names file, line and field."""

    code = "config"


class StoreError(CounterfoilError):
    """The store can't be read or written."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store's place can't be opened, is read-only, or is full."""

    code = "store_unavailable"


class Conflict(StoreError):
    """An append expected another end of the log. Nothing was written."""

    code = "conflict"


class StaleFence(StoreError):
    """The writer's lease has passed to another holder. Nothing was written."""

    code = "stale_fence"


class SessionHeld(StoreError):
    """Another process drives this session; the message says which."""

    code = "session_held"


class SessionNotFound(StoreError):
    """No session has this id."""

    code = "session_not_found"


class LogDamaged(StoreError):
    """The log's digest chain or a row's content doesn't fit; the message names the first bad offset."""

    code = "log_damaged"


class CodecError(CounterfoilError):
    """Bytes that aren't what they should be."""

    code = "codec"


class FoldError(CounterfoilError):
    """An event can't follow the state that it meets. The session stays readable and is not resumable."""

    code = "fold"


class NotResumable(CounterfoilError):
    """The session can be read but not driven; the message says why."""

    code = "not_resumable"


class SessionBusy(CounterfoilError):
    """The session is running already: steer it, or wait."""

    code = "session_busy"


class AnswerRefused(CounterfoilError):
    """An answer to an ask changed nothing."""

    code = "answer_refused"


class AskNotFound(AnswerRefused):
    """No such ask in this session (or none that this principal may know of)."""

    code = "ask_not_found"


class AskWithdrawn(AnswerRefused):
    """The ask was withdrawn before the answer came."""

    code = "ask_withdrawn"


class AskIsSettled(AnswerRefused):
    """The ask already has a verdict. Holds the receipt that won."""

    code = "ask_settled"

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(
            f"ask {receipt.ask_id} is settled already: {receipt.verdict} by {receipt.decided_by.name}",
            hint="nothing changed",
        )
        self.receipt = receipt


class TooSlow(CounterfoilError):
    """A request didn't come whole in time."""

    code = "too_slow"


class TooFast(CounterfoilError):
    """Too many requests in too short a time; `after` says in how many seconds there may be another one."""

    code = "rate_limited"

    def __init__(self, message: str, *, hint: str = "", after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.after = after


class ReviewNotFound(CounterfoilError):
    """No such review in this session (or none that this principal may know of), or nothing is kept of it."""

    code = "review_not_found"


class StaleReview(CounterfoilError):
    """The review was done again: what was seen isn't what stands now. Nothing changed."""

    code = "stale_review"


class Forbidden(CounterfoilError):
    """The caller is known, and its role may not do this."""

    code = "forbidden"


class Unauthenticated(CounterfoilError):
    """Nobody that is known is at the door."""

    code = "unauthenticated"


class TooMuch(CounterfoilError):
    """A request passes a bound: its size, a count, a rate."""

    code = "too_much"


class ShuttingDown(CounterfoilError):
    """The service takes no more and ends its streams; what waits stays parked. Try again, or watch again, later."""

    code = "shutting_down"


class Unreachable(CounterfoilError):
    """The server can't be reached, or broke off; the message says which and why. What was asked may have been done."""

    code = "unreachable"


class ToolFailure(CounterfoilError):
    """A tool ran and failed in a way that the model should read.

    `executed` says whether its side effects happened: `yes`, `no` or `unknown`.
    """

    code = "tool_failure"

    def __init__(self, message: str, *, executed: str = "yes", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.executed = executed


class ProviderError(CounterfoilError):
    """The model's API failed.

    `kind` is one of `auth`, `rate_limited`, `overloaded`, `unreachable`, `timeout`, `bad_request`,
    `context_length`, `stream_cut`, `not_found`, `malformed`, `script`. `permanent` says whether asking again
    can't help. `retry_after` is the provider's wish in seconds. The message never carries a key or a
    pairing id.
    """

    code = "provider_error"

    def __init__(
        self, kind: str, message: str, *, permanent: bool, retry_after: float | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.permanent = permanent
        self.retry_after = retry_after
