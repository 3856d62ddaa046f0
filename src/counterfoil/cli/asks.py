"""`counterfoil asks`: the questions that wait for an answer, in all sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.ports import EventStore
    from counterfoil.scrollback import AskView


def asks(as_json: options.AsJson = False, connect: options.Connect = None, state_dir: options.StateDir = None) -> int:
    """List the open questions of all sessions."""
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.terminal import print_json

    found = with_store(state_dir, _open_asks) if connect is None else _elsewhere(connect, state_dir)
    if as_json:
        print_json(found)
    elif not found:
        print("no open asks")
    else:
        for view in found:
            _print(view)
    return exits.DONE


async def _open_asks(store: EventStore) -> list[AskView]:
    from counterfoil.cli.reading import read_scrollback
    from counterfoil.cli.reference import with_open_asks

    found: list[AskView] = []
    for summary in await with_open_asks(store):
        found += (await read_scrollback(store, summary.session_id)).open_asks
    return found


def _elsewhere(url: str, state_dir: str | None) -> list[AskView]:
    from counterfoil.cli import over
    from counterfoil.scrollback import AskView

    over.refuse(state_dir=state_dir)
    found = over.with_client(url, lambda client: client.list_asks())
    return [AskView(ask=one.ask, opened_at=one.opened_at) for one in found]


def _print(view: AskView) -> None:
    import json

    from counterfoil.cli import wording
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible_line

    ask = view.ask
    print_line(f"{ask.ask_id}  {visible_line(ask.tool)}: {visible_line(ask.reason)}")
    print_line(f"  session    {ask.origin_session_id}")
    print_line(f"  call       {ask.tool_call_id}")
    print_line(f"  since      {wording.when(view.opened_at)}")
    print_line(f"  choices    {', '.join(ask.choices)}")
    print_line(f"  arguments  {visible_line(json.dumps(ask.arguments, ensure_ascii=False))}")
