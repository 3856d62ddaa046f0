"""`counterfoil answer`: answer one open question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.events import Receipt, Scope
    from counterfoil.service.local import LocalService


def answer(
    ask: Annotated[str, typer.Argument(metavar="ASK", help="The question's id, as `counterfoil asks` shows it.")],
    verdict: Annotated[options.Answer, typer.Argument(metavar="allow|deny", help="The verdict.")],
    note: Annotated[str, typer.Option("--note", help="Said to the model with a deny.", show_default=False)] = "",
    scope: Annotated[
        options.Scope, typer.Option("--scope", help="Allow for this once, or learn the rule that the question shows.")
    ] = options.Scope.once,
    state_dir: options.StateDir = None,
) -> int:
    """Answer a question of a parked run; `counterfoil resume` goes on with the run."""
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_line

    settings = state_settings(state_dir)
    receipt = with_service(settings, lambda local: _settle(local, ask, verdict.value, note, scope.value))
    print_line(f"{receipt.verdict}: {receipt.ask_id} for {receipt.tool_call_id}")
    print_line(f"go on with: counterfoil resume {receipt.origin_session_id}")
    return exits.DONE


async def _settle(local: LocalService, reference: str, verdict: str, note: str, scope: Scope) -> Receipt:
    from counterfoil.cli.asking import verdict_for
    from counterfoil.cli.compose import principal
    from counterfoil.cli.reference import session_of_ask
    from counterfoil.errors import AskNotFound
    from counterfoil.events.codec import clean_text
    from counterfoil.identity import AskID

    ask_id = AskID(reference)
    session_id = await session_of_ask(local.store, ask_id)
    if session_id is None:
        raise AskNotFound(f"no open ask {reference}", hint="`counterfoil asks` lists the open ones")
    async with await local.engine.open(session_id) as session:
        chosen = verdict_for(session.state.asks[ask_id], verdict)
        return await session.answer(ask_id, chosen, principal=principal(), note=clean_text(note), scope=scope)
