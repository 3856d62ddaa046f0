"""`counterfoil run`: one prompt, driven to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import options

_Prompt = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="What is to be done. `-` reads it from stdin.", show_default=False),
]
_MaxTurns = Annotated[
    int | None, typer.Option("--max-turns", min=0, help="Turns of the model; 0 for no limit.", show_default=False)
]
_PatchFile = Annotated[
    Path | None,
    typer.Option("--patch", metavar="FILE", help="Write what the run changed, as a git patch.", show_default=False),
]
_Resume = Annotated[
    str | None,
    typer.Option("--resume", metavar="SESSION", help="Give the prompt to this session.", show_default=False),
]
_Continue = Annotated[bool, typer.Option("--continue", help="Give the prompt to this folder's last session.")]


def run(
    prompt: _Prompt = None,
    output: options.Output = options.OutputFormat.text,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    script: options.Script = None,
    mode: options.Mode = None,
    max_turns: _MaxTurns = None,
    ask: options.Ask = None,
    ask_timeout: options.AskTimeout = 60.0,
    allow: options.Allow = None,
    deny: options.Deny = None,
    compat_claude: options.CompatClaude = None,
    patch: _PatchFile = None,
    resume: _Resume = None,
    continue_: _Continue = False,
    connect: options.Connect = None,
    workspace: options.Workspace = None,
    state_dir: options.StateDir = None,
) -> int:
    """Do what the prompt says. Text: the answer on stdout, progress on a terminal."""
    import asyncio

    from counterfoil.cli import running
    from counterfoil.config import Flags
    from counterfoil.errors import UsageError

    if resume is not None and continue_:
        raise UsageError("--resume and --continue exclude each other")
    if connect is not None:
        from counterfoil.cli import over, remote_run

        over.refuse(base_url=base_url, script=script, allow=allow, deny=deny, patch=patch, state_dir=state_dir)
        over.refuse(compat_claude=compat_claude is not None, continue_=continue_)
        wanted = remote_run.Wanted(
            workspace="" if workspace is None else str(workspace),
            provider=provider or "",
            model=model or "",
            mode=None if mode is None else mode.value,
            max_turns=max_turns,
            resume=resume,
        )
        return remote_run.prompt(connect, prompt, wanted, output=output.value, ask=ask, ask_timeout=ask_timeout)
    flags = Flags(
        state_dir=state_dir,
        provider=provider,
        model=model,
        base_url=base_url,
        script=None if script is None else str(script),
        mode=None if mode is None else mode.value,
        max_turns=max_turns,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
        compat_claude=compat_claude,
    )
    plan = running.plan(
        prompt,
        flags,
        workspace,
        output=output.value,
        ask=ask,
        ask_timeout=ask_timeout,
        patch=patch,
        resume=resume,
        continue_=continue_,
    )
    return asyncio.run(running.execute(plan))
