"""The commands of the prompt: each a name, a line of help and a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from counterfoil.errors import UsageError
from counterfoil.tui import screens
from counterfoil.tui.link import MODES

if TYPE_CHECKING:
    from counterfoil.tui.app import CounterfoilApp

Run = Callable[["CounterfoilApp", str], Awaitable[None]]


class Command(msgspec.Struct, frozen=True):
    """One command."""

    name: str
    help: str
    run: Run


def known() -> list[tuple[str, str]]:
    """Names and lines of help, in order."""
    return [(c.name, c.help) for c in COMMANDS]


async def run(app: CounterfoilApp, text: str) -> None:
    """Do what the line says. Raises `UsageError` for a command that isn't there."""
    name, _, rest = text.strip().removeprefix("/").partition(" ")
    command = next((c for c in COMMANDS if c.name == name), None)
    if command is None:
        raise UsageError(f"there is no command /{name}", hint="/help lists all; // sends a prompt that begins with /")
    await command.run(app, rest.strip())


async def _mode(app: CounterfoilApp, rest: str) -> None:
    mode = next((m for m in MODES if m == rest), None)
    if mode is None:
        raise UsageError(f"there is no mode {rest!r}" if rest else "which mode?", hint=", ".join(MODES))
    await app.ready()
    await app.link.set_mode(mode)


async def _model(app: CounterfoilApp, rest: str) -> None:
    if not rest:
        session = app.feed.seen.session
        app.say(f"model {session.model or app.link.defaults.model}; /model NAME or /model PROVIDER/NAME changes it")
        return
    provider, slash, name = rest.partition("/")
    await app.ready()
    await app.link.set_model(provider if slash else "", name if slash else rest)


async def _compact(app: CounterfoilApp, rest: str) -> None:
    await app.ready()
    app.say("history is told by a summary from here on" if await app.link.compact() else "there is nothing to compact")


async def _clear(app: CounterfoilApp, rest: str) -> None:
    await app.open(None)


async def _resume(app: CounterfoilApp, rest: str) -> None:
    await app.ready()
    if await app.link.resume():
        app.wait_for_end()
    else:
        app.say("no run is open here; /sessions lists the others")


async def _asks(app: CounterfoilApp, rest: str) -> None:
    if not app.asking.again():
        app.say("no question is open")


async def _export(app: CounterfoilApp, rest: str) -> None:
    await app.ready()
    path = rest or f"{app.feed.seen.root}.jsonl"
    await app.link.export(path)
    app.say(f"written: {path}")


async def _theme(app: CounterfoilApp, rest: str) -> None:
    name = rest or ("light" if app.current_theme.dark else "dark")
    if name not in ("dark", "light"):
        raise UsageError(f"there is no theme {name!r}", hint="dark, light")
    app.set_theme(name)
    await app.link.keep("theme", name)


async def _quit(app: CounterfoilApp, rest: str) -> None:
    app.exit()


COMMANDS: tuple[Command, ...] = (
    Command("help", "all keys and commands", screens.help_),
    Command("toolcalls", "every call: state, executed, evidence, approval", screens.toolcalls),
    Command("evidence", "every hook record and what stands alone", screens.evidence),
    Command("asks", "ask again what was put off", _asks),
    Command("sessions", "list, open, fork, rename, delete", screens.sessions),
    Command("guardrails", "which checker reviews what, and its health", screens.guardrails),
    Command("hooks", "the configured hooks", screens.hooks),
    Command("permissions", "the rules that hold; d forgets a learned one", screens.permissions),
    Command("usage", "tokens and cost of this session", screens.usage),
    Command("diagnostics", "versions, places, files, warnings: for a report", screens.diagnostics),
    Command("model", "ask another model: NAME or PROVIDER/NAME", _model),
    Command("mode", "permission mode: " + ", ".join(MODES), _mode),
    Command("compact", "have history told by a summary", _compact),
    Command("clear", "begin a new session; this one stays stored", _clear),
    Command("resume", "go on with a run that was left open", _resume),
    Command("export", "write the session's events: FILE", _export),
    Command("theme", "dark or light", _theme),
    Command("quit", "leave; an open question stays open", _quit),
)
