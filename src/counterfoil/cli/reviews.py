"""`counterfoil reviews`: what checkers had to say, listed, shown and acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.cli.review_log import Kept, ReviewLog
    from counterfoil.ports import EventStore

app = typer.Typer(help="What checkers had to say.", no_args_is_help=True, rich_markup_mode=None)
_Review = Annotated[str, typer.Argument(metavar="REVIEW", help="A review's id: rev_…")]


@app.callback()
def reviews() -> None:
    """What checkers had to say."""


@app.command("list", epilog=exits.HELP)
def list_reviews(
    session: options.SessionRef = "last", as_json: options.AsJson = False, state_dir: options.StateDir = None
) -> int:
    """List the reviews of a session, each with its newest revision."""
    from counterfoil.cli import review_log
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.reference import resolve
    from counterfoil.cli.terminal import print_json, print_line

    async def read(store: EventStore) -> list[ReviewLog]:
        return await review_log.of_session(store, await resolve(store, session))

    found = with_store(state_dir, read)
    if as_json:
        print_json(found)
    elif not found:
        print_line("no call of this session was reviewed")
    else:
        for log in found:
            _line(log)
    return exits.DONE


@app.command(epilog=exits.HELP)
def show(review: _Review, as_json: options.AsJson = False, state_dir: options.StateDir = None) -> int:
    """Show one review: every revision, and the checker's own words where the log keeps them."""
    from counterfoil.cli import review_log
    from counterfoil.cli.compose import with_store
    from counterfoil.cli.terminal import print_json

    kept = with_store(state_dir, lambda store: review_log.find(store, review))
    if as_json:
        print_json(kept)
    else:
        _whole(kept)
    return exits.DONE


@app.command(epilog=exits.HELP)
def ack(
    review: _Review,
    revision: Annotated[
        int | None,
        typer.Option(
            "--revision", min=1, help="The revision that was seen.  [default: the newest]", show_default=False
        ),
    ] = None,
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds that another process has to take it.")] = 30.0,
    state_dir: options.StateDir = None,
) -> int:
    """Record that you saw a concern. It decides nothing, and doing it again changes nothing."""
    from counterfoil.cli import review_log
    from counterfoil.cli.compose import state_settings, with_service
    from counterfoil.cli.terminal import print_line

    settings = state_settings(state_dir)
    log = with_service(settings, lambda local: review_log.acknowledge(local, review, revision, wait))
    print_line(f"acknowledged: {log.record.hook_id} at revision {log.acknowledged}")
    return exits.DONE


def _line(log: ReviewLog) -> None:
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible_line

    record = log.record
    seen = f", acknowledged at {log.acknowledged}" if log.acknowledged else ""
    print_line(f"{record.hook_id}  {visible_line(record.message)}  (revision {record.revision}{seen})")
    print_line(f"  call {record.tool_call_id}, policy {visible_line(record.definition.name)}")


def _whole(kept: Kept) -> None:
    from counterfoil.cli.terminal import print_line
    from counterfoil.scrollback import visible

    log, review = kept.review, kept.review.record.review
    assert review is not None
    _line(log)
    rows = [
        ("session", log.session_id),
        ("checker", review.checker),
        ("enforcement", review.enforcement),
        ("reviewed", review.reviewed_digest or ""),
        ("ask", review.ask_id or ""),
        ("incomplete", ", ".join(review.incomplete)),
        ("revisions", ", ".join(f"{revision} {state}" for revision, state in log.revisions)),
    ]
    for name, value in rows:
        if value:
            print_line(f"  {name:<12}{visible(value)}")
    if kept.detail is None:
        print_line("  The checker's own words aren't kept in the log (reviews.keep_detail).")
        return
    print_line("  UNTRUSTED, written by a model about untrusted content:")
    for name in ("concern", "evidence", "next_step"):
        for line in visible(getattr(kept.detail, name)).split("\n") if getattr(kept.detail, name) else ():
            print_line(f"  | {name}: {line}")
