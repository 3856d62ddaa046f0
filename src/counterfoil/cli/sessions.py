"""`counterfoil sessions`: list, show, fork, rename, delete and export stored sessions."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.client.interface import Client
    from counterfoil.ports import EventStore, SessionSummary
    from counterfoil.scrollback import Scrollback
    from counterfoil.service.local import LocalService

app = typer.Typer(
    help="List, show, fork, rename, delete and export sessions.", no_args_is_help=True, rich_markup_mode=None
)


class ExportFormat(StrEnum):
    """What an export is written as."""

    jsonl = "jsonl"
    json = "json"
    markdown = "markdown"
    html = "html"


@app.command("list", epilog=exits.HELP)
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, latest first.")] = 50,
    as_json: options.AsJson = False,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """List the sessions, latest first."""
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.terminal import print_json

    if connect is None:
        found = with_store(state_dir, lambda store: store.sessions(limit=limit))
    else:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        found = over.with_client(connect, lambda client: over.every(client, limit))
    if as_json:
        print_json(found)
    elif not found:
        print("no sessions")
    else:
        _table(found)
    return exits.DONE


def _table(found: list[SessionSummary]) -> None:
    from counterfoil.cli import wording
    from counterfoil.cli.layout import Cell, Column, Row
    from counterfoil.cli.render import print_table
    from counterfoil.scrollback import visible_line

    columns = [
        Column(title="session", grows=True),
        Column(title="status"),
        Column(title="asks", right=True),
        Column(title="updated"),
    ]
    rows = [
        Row(
            above=Cell(s.session_id, "dim"),
            cells=(
                Cell(f"  {visible_line(s.title or s.workspace)}"),
                Cell(s.status),
                Cell(str(s.open_asks or "")),
                Cell(wording.when(s.updated_at)),
            ),
        )
        for s in found
    ]
    print_table(columns, rows)


@app.command(epilog=exits.HELP)
def show(
    session: options.SessionRef,
    as_json: options.AsJson = False,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Show what was said and done in a session, in order."""
    from counterfoil.cli import details, transcript
    from counterfoil.cli.terminal import print_json, print_line

    seen = _read(state_dir, session, connect)
    if as_json:
        print_json({"session": seen.session, "entries": seen.entries, "calls": seen.calls})
        return exits.DONE
    details.print_head(seen)
    for block in transcript.plain(seen):
        print_line()
        print_line(block)
    return exits.DONE


@app.command(epilog=exits.HELP)
def fork(
    session: options.SessionRef,
    at: Annotated[
        int | None, typer.Option("--at", min=1, help="Copy up to this offset.  [default: all]", show_default=False)
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="The copy's title.", show_default=False)] = None,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Copy a session into a new one, and print the new id."""
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.reference import resolve
    from counterfoil.identity import Offset

    if connect is not None:
        from counterfoil.cli import over

        async def elsewhere(client: Client) -> str:
            found = await over.resolve(client, session)
            return await client.fork(found, at=None if at is None else Offset(at), title=title)

        over.refuse(state_dir=state_dir)
        print(over.with_client(connect, elsewhere))
        return exits.DONE

    async def copy(local: LocalService) -> str:
        source = await resolve(local.store, session)
        return await local.engine.fork(source, at=None if at is None else Offset(at), title=title)

    print(with_service(state_settings(state_dir), copy))
    return exits.DONE


@app.command(epilog=exits.HELP)
def rename(
    session: options.SessionRef,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")],
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Give a session a title."""
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.reference import resolve
    from counterfoil.events.codec import clean_text

    if connect is not None:
        from counterfoil.cli import over

        async def elsewhere(client: Client) -> None:
            await client.rename(await over.resolve(client, session), clean_text(title))

        over.refuse(state_dir=state_dir)
        over.with_client(connect, elsewhere)
        return exits.DONE

    async def change(local: LocalService) -> None:
        async with await local.engine.open(await resolve(local.store, session)) as opened:
            await opened.rename(clean_text(title))

    with_service(state_settings(state_dir), change)
    return exits.DONE


@app.command(epilog=exits.HELP)
def delete(
    session: options.SessionRef,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Delete a session for good, with the long outputs that are kept beside it."""
    import shutil

    from counterfoil.cli.compose import state_settings, with_store
    from counterfoil.cli.reference import resolve
    from counterfoil.cli.terminal import is_terminal
    from counterfoil.errors import UsageError
    from counterfoil.ports import Holder

    if not yes and not is_terminal(sys.stdin):
        raise UsageError("deleting needs a yes", hint="use --yes where nobody can be asked")

    def sure(summary: SessionSummary) -> bool:
        return yes or typer.confirm(f"delete {summary.session_id} ({summary.title or summary.workspace}) for good?")

    async def elsewhere(client: Client) -> str | None:
        from counterfoil.cli import over

        found = await over.resolve(client, session)
        if not sure(await client.get(found)):
            return None
        await client.delete(found)
        return found

    async def remove(store: EventStore) -> str | None:
        import os
        import platform

        found = await resolve(store, session)
        if not sure(await store.summary(found)):
            return None
        await store.delete(await store.acquire(found, Holder(pid=os.getpid(), host=platform.node())))
        return found

    if connect is not None:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        deleted = over.with_client(connect, elsewhere)
    else:
        deleted = with_store(state_dir, remove)
    if deleted and connect is None:
        outputs = state_settings(state_dir, warn=False).state_dir / "outputs"
        shutil.rmtree(outputs / deleted, ignore_errors=True)
    print(f"deleted {deleted}" if deleted else "nothing was deleted")
    return exits.DONE


@app.command(epilog=exits.HELP)
def export(
    session: options.SessionRef,
    format_: Annotated[
        ExportFormat, typer.Option("--format", help="Every event, the views, a readable text, or a page.")
    ] = ExportFormat.jsonl,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here.  [default: stdout]")
    ] = None,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Write a session's public events, its views, or its text to a file."""
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.export import write

    if connect is not None:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        over.with_client(connect, lambda client: over.export(client, session, format_.value, output))
        return exits.DONE
    with_store(state_dir, lambda store: write(store, session, format_.value, output))
    return exits.DONE


def _read(state_dir: str | None, session: str, connect: str | None) -> Scrollback:
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.reading import read_scrollback
    from counterfoil.cli.reference import resolve

    if connect is not None:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        return over.with_client(connect, lambda client: over.read_scrollback(client, session))

    async def read(store: EventStore) -> Scrollback:
        return await read_scrollback(store, await resolve(store, session))

    return with_store(state_dir, read)
