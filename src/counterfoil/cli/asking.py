"""Who answers a question about a call: a flag, nobody for now, or the person at this terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from counterfoil.cli import compose
from counterfoil.cli.terminal import is_terminal
from counterfoil.errors import UsageError
from counterfoil.events import Ask, Principal, Scope, Verdict
from counterfoil.scrollback import visible, visible_line

TTY = "/dev/tty"
_YES: tuple[Verdict, ...] = ("allow", "release")
_NO: tuple[Verdict, ...] = ("deny", "withhold")
_SCOPES: dict[str, Scope] = {"s": "session", "session": "session", "a": "always", "always": "always"}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer and who gave it."""

    verdict: Verdict
    principal: Principal
    note: str = ""
    scope: Scope = "once"


Asker = Callable[[Ask], Awaitable[Reply | None]]
"""Answers an ask; None leaves it open and parks the run."""


def verdict_for(ask: Ask, word: str) -> Verdict:
    """The choice of `ask` that means `word` (allow or deny). Raises `UsageError` where it offers none."""
    for verdict in _YES if word == "allow" else _NO:
        if verdict in ask.choices:
            return verdict
    raise UsageError(f"ask {ask.ask_id} offers {', '.join(ask.choices)}; the answer was {word}")


def by_flag(word: str, flag: str, *, scope: Scope = "once") -> Asker:
    """Answers each ask as the flag says, in the flag's name; with a wider `scope` where the ask shows a rule."""

    async def reply(ask: Ask) -> Reply:
        reach: Scope = scope if ask.rule is not None else "once"
        return Reply(verdict=verdict_for(ask, word), principal=Principal(kind="policy", name=flag), scope=reach)

    return reply


async def wait(ask: Ask) -> Reply | None:
    """Leaves each ask open."""
    return None


def has_terminal() -> bool:
    """Whether a person can be asked: there is a controlling terminal, and this process is in its foreground."""
    try:
        fd = os.open(TTY, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


def somebody_looks() -> bool:
    """Whether a person can be asked and sees what goes on."""
    return (is_terminal(sys.stdout) or is_terminal(sys.stderr)) and has_terminal()


def describe(ask: Ask) -> str:
    """What a person must see before answering: tool, reason, and the exact arguments that would run."""
    lines = [f"? {visible_line(ask.tool)} needs your approval: {visible_line(ask.reason)}"]
    for name, value in ask.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = visible(text).split("\n")
        lines.append(f"    {visible_line(name)}: {first}")
        lines += [f"    {' ' * len(visible_line(name))}  {line}" for line in rest]
    if ask.result_digest is not None:
        lines.append(f"    it ran; its result is held back: {ask.result_size} bytes, {ask.result_digest}")
    if ask.rule is not None:
        lines.append(f"    rule that [s] and [a] would learn: {visible_line(ask.rule)}")
    lines.append(f"    (call {ask.tool_call_id}, {ask.ask_id})")
    return "\n".join(lines)


def at_terminal(before: Callable[[], None]) -> Asker:
    """Asks the person at the terminal. `before` clears what stands on the last line."""

    async def reply(ask: Ask) -> Reply | None:
        before()
        try:
            fd = os.open(TTY, os.O_RDWR | os.O_NOCTTY)
        except OSError as fault:
            raise UsageError("there is no terminal to ask on", hint="use --ask=deny or --ask=wait") from fault
        try:
            return await _dialogue(fd, ask)
        except asyncio.CancelledError:
            _write(fd, "\n")
            raise
        finally:
            os.close(fd)

    return reply


async def _dialogue(fd: int, ask: Ask) -> Reply | None:
    _write(fd, describe(ask) + "\n")
    _forget_typed(fd)
    yes, no = verdict_for(ask, "allow"), verdict_for(ask, "deny")
    while True:
        wider = "[s] this session  [a] always  " if ask.rule is not None else ""
        _write(fd, f"  [y] {yes}  {wider}[n] {no}  [e] {no} with a note  > ")
        line = await _line(fd)
        if line is None:
            _write(fd, "\n")
            return None
        word = line.strip().lower()
        if word in ("y", "yes", yes):
            return Reply(verdict=yes, principal=compose.principal())
        if ask.rule is not None and word in _SCOPES:
            return Reply(verdict=yes, principal=compose.principal(), scope=_SCOPES[word])
        if word in ("n", "no", no):
            return Reply(verdict=no, principal=compose.principal())
        if word == "e":
            _write(fd, "  note to the model > ")
            note = await _line(fd)
            if note is None:
                _write(fd, "\n")
                return None
            return Reply(verdict=no, principal=compose.principal(), note=note.strip())


def _write(fd: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(fd, data) :]


def _forget_typed(fd: int) -> None:
    """A key that was typed before the question stood there answers nothing."""
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(fd, termios.TCIFLUSH)


async def _line(fd: int) -> str | None:
    """One line from the terminal, None at its end. Can be cancelled: nothing is read behind the caller's back."""
    loop = asyncio.get_running_loop()
    got = bytearray()
    while not got.endswith(b"\n"):
        ready: asyncio.Future[Any] = loop.create_future()
        loop.add_reader(fd, lambda f=ready: f.done() or f.set_result(None))  # type: ignore[misc]
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        data = os.read(fd, 4096)
        if not data:
            return got.decode("utf-8", "replace") if got else None
        got += data
    return got.decode("utf-8", "replace")
