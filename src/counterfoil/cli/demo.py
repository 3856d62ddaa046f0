"""`counterfoil demo`: a scripted session, offline, in a temporary workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from counterfoil.cli.asking import Asker
    from counterfoil.config import Settings
    from counterfoil.engine import RunOutcome
    from counterfoil.hooks import HookDefinition
    from counterfoil.scrollback import Scrollback

_Answer = Annotated[
    options.Answer | None,
    typer.Option(
        "--answer",
        help="Answer the demo's question.  [default: ask on a terminal, else allow]",
        show_default=False,
    ),
]
_Keep = Annotated[bool, typer.Option("--keep", help="Keep the temporary workspace.")]

PROMPT = "Make greeting.txt greet counterfoil, then run the check."


def demo(answer: _Answer = None, keep: _Keep = False, state_dir: options.StateDir = None) -> int:
    """Play scripted sessions: reads, an edit, approvals, hooks, denials, a rejected turn; reviews; a parked run."""
    import asyncio
    import shutil
    import tempfile
    from pathlib import Path

    folder = Path(tempfile.mkdtemp(prefix="counterfoil-demo-")).resolve()
    try:
        return asyncio.run(_play(folder, None if answer is None else answer.value, state_dir, keep))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


async def _play(folder: Path, answer: str | None, state_dir: str | None, keep: bool) -> int:
    from importlib.resources import as_file, files

    from counterfoil.cli import demo_scenes, exits
    from counterfoil.cli.demo_workspace import furnish
    from counterfoil.cli.terminal import print_line

    for line in furnish(folder):
        print_line(line)
    with as_file(files("counterfoil.cli") / "data" / "demo.yaml") as script:
        settings = _settings(folder, script, state_dir)
        asker = _asker(answer)
        outcome, seen = await play(settings, folder, asker, PROMPT, title="demo", hooks=_hooks(folder))
        tell(seen)
    reviewed = await demo_scenes.reviews(settings, folder, asker)
    parked = demo_scenes.parked(settings, folder, answer or "allow")
    _end(settings, seen, state_dir, folder if keep else None)
    return next((code for code in (exits.of_outcome(outcome), reviewed, parked) if code), exits.DONE)


def _settings(folder: Path, script: Path, state_dir: str | None) -> Settings:
    from counterfoil.cli import compose
    from counterfoil.config import Flags

    flags = Flags(
        state_dir=state_dir,
        provider="scripted",
        model="scripted",
        script=str(script),
        mode="accept_edits",
        allow=("Bash(cat *)",),
        deny=("Bash(curl *)",),
    )
    return compose.load_settings(folder, flags)


def _hooks(folder: Path) -> list[HookDefinition]:
    """A hook that blocks and one that rewrites, as real scripts."""
    import shlex
    import sys

    import msgspec

    from counterfoil.hooks import HookDefinition

    guard = f"sh {shlex.quote(str(folder / 'hooks' / 'guard.sh'))}"
    number = f"{shlex.quote(sys.executable)} {shlex.quote(str(folder / 'hooks' / 'number_lines.py'))}"
    blocks = HookDefinition(name="guard", tier="user", phase="PreToolUse", matcher="Bash", command=guard)
    rewrites = msgspec.structs.replace(blocks, name="number-lines", command=number, condition="Bash(cat *)")
    return [blocks, rewrites]


def _asker(answer: str | None) -> Asker:
    import sys

    from counterfoil.cli import asking
    from counterfoil.cli.terminal import is_terminal, print_line

    if answer is not None:
        return asking.by_flag(answer, f"--answer={answer}")
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and asking.has_terminal():
        return asking.at_terminal(sys.stdout.flush)
    print_line("nobody can be asked here: the command that needs approval is allowed for this session")
    print_line("(--answer deny denies it)")
    return asking.by_flag("allow", "demo in a pipe", scope="session")


async def play(
    settings: Settings,
    folder: Path,
    asker: Asker,
    prompt: str,
    *,
    title: str,
    hooks: Sequence[HookDefinition] = (),
) -> tuple[RunOutcome, Scrollback]:
    """Drive one scripted session to its end, with its progress on standard output."""
    from counterfoil.cli import compose
    from counterfoil.cli.drive import Drive
    from counterfoil.cli.reporters import ProgressReporter
    from counterfoil.engine import NewSession

    new = NewSession(
        owner=compose.principal(),
        workspace=str(folder),
        provider=settings.model.provider,
        model=settings.model.name,
        mode=settings.permissions.mode,
        title=title,
    )
    async with compose.service(settings, hooks=hooks) as local, await local.engine.create(new) as session:
        drive = Drive(session, local.store, ProgressReporter(), asker)
        outcome = await drive.prompt(prompt)
    return outcome, drive.seen


def tell(seen: Scrollback) -> None:
    """The table of a session's calls."""
    from counterfoil.cli import details
    from counterfoil.cli.terminal import print_line

    print_line()
    details.print_session(seen)
    print_line()


def _end(settings: Settings, seen: Scrollback, state_dir: str | None, kept: Path | None) -> None:
    import shlex

    from counterfoil.cli.terminal import print_line

    print_line(f"stored in {settings.state_dir}")
    if kept is not None:
        print_line(f"the workspace is {kept}")
    where = "" if state_dir is None else f" --state-dir {shlex.quote(state_dir)}"
    print_line(f"see the first session again: {_program()} inspect{where} {seen.root}")


def _program() -> str:
    """How this program is called from here: by its name where that finds one, else by its path."""
    import shlex
    import shutil
    import sys
    from pathlib import Path

    beside = Path(sys.executable).parent / "counterfoil"
    if shutil.which("counterfoil") or not beside.exists():
        return "counterfoil"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if here in beside.parents else beside))
