"""The entry point: the commands, and how each way of ending becomes an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from counterfoil import __version__
from counterfoil.cli import (
    answer,
    asks,
    config,
    demo,
    exits,
    faults,
    models,
    options,
    permissions,
    resume,
    reviews,
    run,
    serve,
    sessions,
    terminal,
    token,
    trust,
    verify,
)
from counterfoil.cli import inspect as inspect_command

app = typer.Typer(
    name="counterfoil",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exits.HELP,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"counterfoil {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def counterfoil(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    connect: Annotated[
        str | None,
        typer.Option("--connect", metavar="URL", help="The terminal client, on this server.", show_default=False),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="With --connect: open this session.", show_default=False),
    ] = None,
) -> None:
    """An agent harness that keeps a numbered stub of everything that happens to a call."""
    from counterfoil.errors import UsageError

    if ctx.invoked_subcommand is not None:
        if connect is not None or session is not None:
            raise UsageError(
                "--connect and --session before a command belong to the terminal client",
                hint=f"write `counterfoil {ctx.invoked_subcommand} --connect URL …`",
            )
        return
    if connect is None:
        raise UsageError("--session needs --connect", hint="`counterfoil` opens a new one; /sessions lists the others")
    raise typer.Exit(_client_at(connect, session))


def export(
    session: options.SessionRef,
    html: Annotated[bool, typer.Option("--html", help="As one self-contained page instead of JSON lines.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here.  [default: stdout]")
    ] = None,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Write a session's public events as JSON lines, or what they show as a page."""
    return sessions.export(session, sessions.ExportFormat("html" if html else "jsonl"), output, connect, state_dir)


_COMMANDS: list[tuple[str, Callable[..., Any]]] = [
    ("run", run.run),
    ("resume", resume.resume),
    ("demo", demo.demo),
    ("inspect", inspect_command.inspect),
    ("export", export),
    ("verify", verify.verify),
    ("asks", asks.asks),
    ("answer", answer.answer),
    ("serve", serve.serve),
    ("models", models.models),
    ("trust", trust.trust),
]
for _name, _function in _COMMANDS:
    app.command(_name, epilog=exits.HELP)(_function)
app.add_typer(sessions.app, name="sessions")
app.add_typer(config.app, name="config")
app.add_typer(permissions.app, name="permissions")
app.add_typer(reviews.app, name="reviews")
app.add_typer(token.app, name="token")


def main() -> None:
    """The console script."""
    code = call(sys.argv[1:])
    sys.exit(code)


def call(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Nothing is raised."""
    terminal.prepare()
    try:
        if not arguments and terminal.is_terminal(sys.stdin) and terminal.is_terminal(sys.stdout):
            return _client()
        code = app(args=arguments, prog_name="counterfoil", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _quiet()
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except typer.Abort:
        return exits.INTERRUPTED
    except Exception as error:
        return _failed(error)
    return code if isinstance(code, int) else exits.DONE


def _client() -> int:
    """No arguments, at a terminal: the terminal client, in this folder."""
    from counterfoil.cli.compose import folder
    from counterfoil.tui.entry import open_client

    return open_client(folder(None))


def _client_at(url: str, session: str | None) -> int:
    """The terminal client on a server elsewhere."""
    from counterfoil.cli.compose import load_settings
    from counterfoil.errors import UsageError
    from counterfoil.identity import SessionID
    from counterfoil.tui.entry import open_remote

    if not (terminal.is_terminal(sys.stdin) and terminal.is_terminal(sys.stdout)):
        raise UsageError("the terminal client needs a terminal", hint="`counterfoil run --connect URL` needs none")
    found = None
    if session is not None:
        from counterfoil.cli import over

        found = SessionID(over.with_client(url, lambda client: over.resolve(client, session)))
    return open_remote(url, load_settings(None, warn=False), found)


def _quiet() -> int:
    """Nobody reads any more: say nothing, here or when the interpreter flushes its streams."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return exits.FAILED


def _failed(error: Exception) -> int:
    show = getattr(error, "format_message", None)
    if show is not None:
        return _usage(error, str(show()))
    try:
        from counterfoil.cli.compose import last_state_dir

        return faults.report(error, last_state_dir())
    except BrokenPipeError:
        return _quiet()


def _usage(error: Exception, message: str) -> int:
    """What the parser of the command line refused."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message)
        return exits.USAGE
    path = context.command_path if context is not None else "counterfoil"
    faults.say(f"{' '.join(message.split()).rstrip('.')} (`{path} --help` says more)")
    return exits.USAGE


if __name__ == "__main__":
    main()
