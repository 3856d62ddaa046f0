"""`counterfoil answer`: answer one open question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.cli.settling import Answered

_Key = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="The same verdict with the same key is one answer.", show_default=False),
]
_Wait = Annotated[
    float,
    typer.Option("--wait", metavar="SECONDS", min=0, help="How long another process has to take the answer."),
]


def answer(
    ask: Annotated[str, typer.Argument(metavar="ASK", help="The question's id, as `counterfoil asks` shows it.")],
    verdict: Annotated[options.Answer, typer.Argument(metavar="allow|deny", help="The verdict.")],
    note: Annotated[str, typer.Option("--note", help="Said to the model with a deny.", show_default=False)] = "",
    scope: Annotated[
        options.Scope, typer.Option("--scope", help="Allow for this once, or learn the rule that the question shows.")
    ] = options.Scope.once,
    rule: Annotated[
        str, typer.Option("--rule", metavar="RULE", help="Learn this in place of the rule shown.", show_default=False)
    ] = "",
    key: _Key = None,
    wait: _Wait = 30.0,
    connect: options.Connect = None,
    state_dir: options.StateDir = None,
) -> int:
    """Answer a question. A run that waits for it goes on; `counterfoil resume` goes on with one that was left."""
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.settling import Given, settle, settle_elsewhere

    given = Given(ask=ask, word=verdict.value, note=note, scope=scope.value, rule=rule, key=key, wait=wait)
    if connect is not None:
        from counterfoil.cli import over

        over.refuse(state_dir=state_dir)
        _tell(over.with_client(connect, lambda client: settle_elsewhere(client, given)))
        return exits.DONE
    _tell(with_service(state_settings(state_dir), lambda local: settle(local, given)))
    return exits.DONE


def _tell(answered: Answered) -> None:
    from counterfoil.cli.terminal import print_line

    receipt = answered.receipt
    print_line(f"{receipt.verdict}: {receipt.ask_id} for {receipt.tool_call_id}")
    if answered.driven:
        print_line("the process that drives the session goes on with it")
    else:
        print_line(f"go on with: counterfoil resume {answered.session_id}")
