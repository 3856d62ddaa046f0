"""What the terminal client needs of a server: a few typed calls. The embedded service is one; a remote one can be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol

import msgspec

from counterfoil.events import Ask, Envelope, Mode, Scope, SessionStatus, Usage, Verdict
from counterfoil.identity import AskID, SessionID

MODES: tuple[Mode, ...] = ("default", "accept_edits", "plan", "dont_ask", "bypass")


class SessionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list."""

    session_id: SessionID
    title: str
    workspace: str
    model: str
    status: SessionStatus
    open_asks: int
    updated_at: int


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a screen that only tells: a configured hook, a rule, a checker."""

    cells: tuple[str, ...]
    detail: str = ""
    revocable: str = ""


Notices = Literal["important", "all", "config"]
"""What the scrollback shows of what is benign: nothing, all, or what `ui.notices` of the configuration says."""
NOTICES: tuple[Notices, ...] = ("important", "all", "config")


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a new session begins with."""

    workspace: str
    provider: str
    model: str
    mode: Mode
    notices: Notices = "config"
    configured: Literal["important", "all"] = "important"
    theme: Literal["dark", "light"] = "dark"
    warnings: tuple[str, ...] = ()
    here: bool = True
    """Whether the workspace is a folder of this machine, so that its files can be named."""


class Link(Protocol):
    """The server, from the terminal's side. One session is open at a time."""

    defaults: Defaults
    connection: str
    """How the server is reached, in a word or two; `lost` in it where it isn't just now."""
    told: Callable[[], None]
    """Called whenever `connection` or `running` changed without an event."""

    async def sessions(self) -> list[SessionLine]:
        """All sessions, the newest first."""
        ...

    async def open(self, session: SessionID | None) -> SessionID:
        """Open a session, or a new one, and close the one before. Raises `CounterfoilError`; then that stays open."""
        ...

    def watch(self) -> AsyncIterator[Envelope]:
        """The open session: all that is recorded, then what comes. Ends when it is closed."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is being driven."""
        ...

    async def prompt(self, text: str) -> None:
        """Start a run, or steer the one that runs. Returns when it is taken."""
        ...

    async def resume(self) -> bool:
        """Go on with a run that was left open. False where there is none."""
        ...

    async def ended(self) -> None:
        """Wait for the end of the run in hand. Raises `CounterfoilError` for what the run couldn't record."""
        ...

    async def cancel(self) -> None:
        """Interrupt the run."""
        ...

    async def answer(
        self, ask: AskID, verdict: Verdict, *, scope: Scope = "once", note: str = "", rule: str = ""
    ) -> None:
        """Answer one ask. Raises `CounterfoilError` where it is closed already, or `rule` can't be learned from it."""
        ...

    async def preview(self, ask: Ask) -> str:
        """The beginning of the result that `ask` is about, where it may be shown; untrusted. Empty where it can't."""
        ...

    async def set_mode(self, mode: Mode) -> None:
        """Change the permission mode."""
        ...

    async def set_model(self, provider: str, model: str) -> None:
        """Ask another model from the next turn on."""
        ...

    async def compact(self) -> bool:
        """Have history told by a summary. False where there is nothing to replace."""
        ...

    async def rename(self, session: SessionID, title: str) -> None:
        """Give a session a title."""
        ...

    async def fork(self, session: SessionID) -> SessionID:
        """Copy a session."""
        ...

    async def delete(self, session: SessionID) -> None:
        """Delete a session for good."""
        ...

    async def export(self, path: str) -> None:
        """Write the public events of the open session to a file, as JSON lines."""
        ...

    async def hooks(self) -> list[Fact]:
        """The hooks that are configured."""
        ...

    async def rules(self) -> list[Fact]:
        """The permission rules: configured and learned."""
        ...

    async def revoke(self, rule: str) -> None:
        """Forget a rule that was learned."""
        ...

    async def checkers(self) -> list[Fact]:
        """Which checker reviews what."""
        ...

    async def diagnostics(self) -> list[tuple[str, str]]:
        """What helps to find a fault: versions, places, files that were read, warnings. Nothing secret."""
        ...

    def window(self, model: str) -> int:
        """The context window of a model in tokens."""
        ...

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """What that cost in dollars, or None where nobody knows."""
        ...

    async def keep(self, name: str, value: str) -> None:
        """Keep a setting of the person's: `notices` or `theme`."""
        ...

    async def close(self) -> None:
        """Close the session: what waits for an answer stays parked, what runs is interrupted."""
        ...
