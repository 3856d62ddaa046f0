"""`run` and `resume` at a server elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import over, running
from counterfoil.cli.reporters import reporter
from counterfoil.cli.stdin import prompt_text
from counterfoil.events import Limits, Mode
from counterfoil.scrollback import visible_line

if TYPE_CHECKING:
    from counterfoil.cli.asking import Asker
    from counterfoil.cli.reporters import Reporter
    from counterfoil.client.interface import Client
    from counterfoil.identity import SessionID


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the session is to be; what is left out is the server's default. `resume`: an existing one."""

    workspace: str = ""
    provider: str = ""
    model: str = ""
    mode: Mode | None = None
    max_turns: int | None = None
    resume: str | None = None


def prompt(url: str, given: str | None, wanted: Wanted, *, output: str, ask: str | None, ask_timeout: float) -> int:
    """Give a session at the server a prompt, follow its run, and return the exit code."""
    shown = reporter(output)
    asker = running.asker(ask, shown, timeout=ask_timeout)
    text = prompt_text(given)

    async def drive(client: Client) -> int:
        from counterfoil.cli.remote_drive import RemoteDrive, told

        session = await _session(client, wanted, text)
        found = RemoteDrive(client, session, shown, asker)
        return told(await found.prompt(text), found.seen, url)

    return over.with_client(url, drive)


async def _session(client: Client, wanted: Wanted, text: str) -> SessionID:
    limits = None if wanted.max_turns is None else Limits(max_turns=wanted.max_turns)
    if wanted.resume is None:
        title = visible_line(text.strip().split("\n", 1)[0])[:80]
        made = await client.create(
            workspace=wanted.workspace,
            provider=wanted.provider,
            model=wanted.model,
            mode=wanted.mode,
            title=title,
            limits=limits,
        )
        return made.session_id
    over.refuse(workspace=wanted.workspace, max_turns=limits)
    session = await over.resolve(client, wanted.resume)
    if wanted.mode is not None:
        await client.set_mode(session, wanted.mode)
    if wanted.model or wanted.provider:
        now = await client.get(session)
        await client.set_model(session, wanted.provider or now.provider, wanted.model or now.model)
    return session


def resume(url: str, session: str, shown: Reporter, asker: Asker) -> int:
    """Go on with the open run of a session at the server, and return the exit code."""

    async def drive(client: Client) -> int:
        from counterfoil.cli.remote_drive import RemoteDrive, told

        found = RemoteDrive(client, await over.resolve(client, session), shown, asker)
        return told(await found.resume(), found.seen, url)

    return over.with_client(url, drive)
