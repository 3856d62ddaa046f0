"""`counterfoil resume`: go on with a run that is parked on a question or was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import options

if TYPE_CHECKING:
    from counterfoil.cli.asking import Asker
    from counterfoil.cli.reporters import Reporter
    from counterfoil.config import Flags

_Answer = Annotated[
    options.Answer | None,
    typer.Option("--answer", help="Answer every question of the run so.", show_default=False),
]


def resume(
    session: options.SessionRef,
    output: options.Output = options.OutputFormat.text,
    ask: options.Ask = None,
    ask_timeout: options.AskTimeout = 60.0,
    answer: _Answer = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    script: options.Script = None,
    mode: options.Mode = None,
    allow: options.Allow = None,
    deny: options.Deny = None,
    compat_claude: options.CompatClaude = None,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Go on with a parked or interrupted run. Where nobody can be asked, what needs approval stays parked."""
    import asyncio

    from counterfoil.cli import asking, running
    from counterfoil.cli.reporters import reporter
    from counterfoil.config import Flags

    flags = Flags(
        state_dir=state_dir,
        provider=provider,
        model=model,
        base_url=base_url,
        script=None if script is None else str(script),
        mode=None if mode is None else mode.value,
        allow=tuple(allow or ()),
        deny=tuple(deny or ()),
        compat_claude=compat_claude,
    )
    shown = reporter(output.value)
    if answer is not None:
        asker = asking.by_flag(answer.value, f"--answer={answer.value}")
    else:
        asker = running.asker(ask, shown, otherwise="wait", timeout=ask_timeout)
    if connect is not None:
        from counterfoil.cli import over, remote_run

        over.refuse(provider=provider, model=model, base_url=base_url, script=script, mode=mode, state_dir=state_dir)
        over.refuse(allow=allow, deny=deny, compat_claude=compat_claude is not None)
        return remote_run.resume(connect, session, shown, asker)
    return asyncio.run(_go_on(session, flags, shown, asker))


async def _go_on(session: str, flags: Flags, shown: Reporter, asker: Asker) -> int:
    from counterfoil.cli import compose, reference, running
    from counterfoil.cli.drive import Drive

    settings = compose.load_settings(None, flags, warn=False)
    find = lambda store: reference.resolve(store, session)  # noqa: E731
    async with (
        compose.service_for(settings, flags, find) as (local, found),
        await local.engine.open(found) as opened,
    ):
        await running.adapt(opened, flags, local.settings)
        drive = Drive(opened, local.store, shown, asker)
        return running.told(await drive.resume(), drive.seen, flags)
