"""Commands at a server elsewhere, `--connect URL`: through a client that speaks for whom its token was made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from counterfoil.cli import reference
from counterfoil.errors import UsageError
from counterfoil.identity import START, SessionID
from counterfoil.scrollback import Scrollback

if TYPE_CHECKING:
    from counterfoil.client.interface import Client
    from counterfoil.ports import SessionSummary

T = TypeVar("T")
PAGE = 500


def with_client(url: str, work: Callable[[Client], Awaitable[T]]) -> T:
    """Do `work` with a client of the server at `url`."""
    import asyncio

    from counterfoil.client.connect import connect

    async def session() -> T:
        async with connect(url) as client:
            return await work(client)

    return asyncio.run(session())


def refuse(**given: Any) -> None:
    """Raise `UsageError` for options that only this machine's own engine could follow."""
    for name, value in given.items():
        if value:
            option = name.rstrip("_").replace("_", "-")
            raise UsageError(f"--{option} doesn't go with --connect", hint="it is for the server to decide")


async def every(client: Client, limit: int | None = None) -> list[SessionSummary]:
    """The caller's sessions, latest first."""
    found: list[SessionSummary] = []
    token = ""
    while True:
        page = await client.list_sessions(page_size=PAGE if limit is None else min(PAGE, limit), page_token=token)
        found += page.sessions
        token = page.next_token
        if not token or (limit is not None and len(found) >= limit):
            return found[:limit]


async def resolve(client: Client, session: str) -> SessionID:
    """The session that `session` means there. Raises `SessionNotFound`, `UsageError` where it isn't plain."""
    return reference.chosen(session, await every(client, 1 if session == "last" else None))


async def read_scrollback(client: Client, session: str) -> Scrollback:
    """The scrollback of the whole log of the session that `session` means."""
    found = await resolve(client, session)
    seen, after = Scrollback(found), START
    while True:
        page = await client.get_transcript(found, after)
        seen.extend(page.events)
        if page.next_offset is None:
            return seen
        after = page.next_offset


async def export(client: Client, session: str, format_: str, output: Path | None) -> None:
    """Write a session of the server as `format_`. A file appears whole or not at all."""
    import contextlib

    from counterfoil.cli.export import rendered, written

    if format_ != "jsonl":
        seen = await read_scrollback(client, session)
        with written(output) as file:
            file.write(rendered(seen, format_))
        return
    found = await resolve(client, session)
    with written(output) as file:
        async with contextlib.aclosing(client.export(found)) as chunks:
            async for chunk in chunks:
                file.write(chunk)
