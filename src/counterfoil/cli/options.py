"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

StateDir = Annotated[
    str | None, typer.Option("--state-dir", metavar="DIR", help="Where sessions are stored.", show_default=False)
]
Workspace = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder to work in.  [default: this one]", show_default=False),
]
Connect = Annotated[
    str | None,
    typer.Option(
        "--connect",
        metavar="URL",
        help="Do it at this server: http://HOST:PORT, https://…, grpc://…, unix:PATH.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
SessionRef = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, a unique beginning of it, or `last`.")
]
Provider = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="A configured provider, or openai, openai_chat, anthropic, scripted.",
        show_default=False,
    ),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="The model to ask.", show_default=False)]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Where the provider's API is.", show_default=False)
]
Script = Annotated[
    Path | None,
    typer.Option("--script", metavar="FILE", help="Play a scripted model from this file.", show_default=False),
]


class OutputFormat(StrEnum):
    """How a run is printed."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


class ModeName(StrEnum):
    """The permission mode."""

    default = "default"
    accept_edits = "accept_edits"
    plan = "plan"
    dont_ask = "dont_ask"
    bypass = "bypass"


class Answer(StrEnum):
    """A verdict on a question."""

    allow = "allow"
    deny = "deny"


class Scope(StrEnum):
    """How far an allowing answer reaches."""

    once = "once"
    session = "session"
    always = "always"


Output = Annotated[OutputFormat, typer.Option("--output", help="Final text, one JSON object, or one line per event.")]
Ask = Annotated[
    str | None,
    typer.Option(
        "--ask",
        metavar="deny|wait|prompt|command:PROGRAM",
        help="When a call needs approval: deny it, leave the run parked, ask here, or have a program decide.  "
        "[default: prompt on a terminal, else deny]",
        show_default=False,
    ),
]
AskTimeout = Annotated[
    float, typer.Option("--ask-timeout", metavar="SECONDS", min=0.001, help="How long a program has to decide.")
]
Mode = Annotated[
    ModeName | None, typer.Option("--mode", help="The permission mode.  [default: default]", show_default=False)
]

CompatClaude = Annotated[
    bool | None,
    typer.Option(
        "--compat-claude/--no-compat-claude",
        help="Read rules and hooks of .claude/settings.json too, or not.",
        show_default=False,
    ),
]

Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="RULE",
        help="Allow a tool, `Bash(git log *)`, `mcp__server`. Repeatable.",
        show_default=False,
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        metavar="RULE",
        help="Deny a tool, `Bash(rm *)`, `Read(.env)`. Repeatable; deny always wins.",
        show_default=False,
    ),
]
