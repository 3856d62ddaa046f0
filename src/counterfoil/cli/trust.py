"""`counterfoil trust`: see what a project's own file would do here, and let it, or no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.config import Settings
    from counterfoil.config.trust import Offer


def trust(
    workspace: options.Workspace = None,
    compat_claude: options.CompatClaude = None,
    yes: Annotated[bool, typer.Option("--yes", help="Trust it without asking.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust this folder no more.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    state_dir: options.StateDir = None,
) -> int:
    """Show what this folder's own configuration would add, and trust it: until any of it changes."""
    import os

    from counterfoil.cli.compose import folder
    from counterfoil.cli.terminal import print_line
    from counterfoil.config import Flags
    from counterfoil.config.load import examine, fatal, project_offer
    from counterfoil.config.trust import Trust
    from counterfoil.scrollback import visible_line

    place = folder(workspace)
    read, settings = examine(place, os.environ, Flags(state_dir=state_dir, compat_claude=compat_claude))
    store = Trust(settings.state_dir)
    if listing:
        for trusted in sorted(store.folders()):
            print_line(visible_line(trusted))
        return exits.DONE
    if revoke:
        print_line("trusted no more" if store.take(place) else "this folder wasn't trusted")
        return exits.DONE
    if fault := fatal(settings):
        raise fault
    offer = project_offer(read, place)
    if offer is None:
        print_line("this folder's own configuration adds nothing that needs trust")
        return exits.DONE
    _show(place, offer)
    if store.holds(place, offer):
        print_line("it is trusted as it is")
        return exits.DONE
    if not (yes or _confirmed()):
        print_line("not trusted")
        return exits.FAILED
    store.give(place, offer)
    print_line("trusted, until any of this changes")
    return exits.DONE


def _show(place: Path, offer: Offer) -> None:
    from counterfoil.cli.terminal import print_line
    from counterfoil.config.explain import hook_text
    from counterfoil.scrollback import visible_line

    print_line(f"{visible_line(str(place))} would add:")
    for field, value in offer.settings:
        print_line(f"  {visible_line(field)} = {visible_line(value)}")
    for hook in offer.hooks:
        print_line(f"  hook {hook.phase} {visible_line(hook_text(hook))}")
        for name, value in hook.headers.items():
            print_line(f"    header {visible_line(name)}: {visible_line(value)}")
    for script in offer.scripts:
        print_line(f"  script {visible_line(script)}")
    if offer.hooks:
        print_line("what these programs load without naming it in one of these files is not covered")


def _confirmed() -> bool:
    """The person's yes at the terminal. Raises `UsageError` where there is none."""
    import sys

    from counterfoil.cli.terminal import is_terminal
    from counterfoil.errors import UsageError

    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("nobody can be asked here", hint="look at what it would add, then use --yes")
    return input("trust it? [y/n] ").strip().lower() in ("y", "yes")


def mention_unread(settings: Settings) -> None:
    """Say on a terminal, once for each file, that another tool's settings are there and not read.

    Not where somebody has decided it: `compat.claude = false` is an answer.
    """
    import contextlib
    import hashlib
    import sys

    from counterfoil.cli import faults
    from counterfoil.cli.terminal import is_terminal

    if not settings.unread or "compat.claude" in settings.sources or not is_terminal(sys.stderr):
        return
    folder = settings.state_dir / "mentioned"
    for path in settings.unread:
        mark = folder / hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            mark.touch(mode=0o600, exist_ok=False)
            faults.say(f"{path} isn't read: `[compat] claude = true` in your own configuration would read it")
