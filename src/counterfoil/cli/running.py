"""How `run` goes: everything is checked before anything runs, then the run is driven and its end told."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import asking, compose, exits, faults, program, reference
from counterfoil.cli.drive import Drive
from counterfoil.cli.patch import Patch
from counterfoil.cli.reporters import Reporter, reporter
from counterfoil.cli.stdin import prompt_text
from counterfoil.cli.trust import mention_unread
from counterfoil.config import (
    Bounds,
    Flags,
    Settings,
    api_key,
    bounds_of,
    find_provider,
    model_name,
    with_choice,
)
from counterfoil.engine import NewSession, RunOutcome, Session
from counterfoil.errors import UsageError
from counterfoil.identity import SessionID
from counterfoil.ports import EventStore
from counterfoil.scrollback import Scrollback, visible_line
from counterfoil.tools.environment import scrubbed

if TYPE_CHECKING:
    from counterfoil.service.local import LocalService


Find = Callable[[EventStore], Awaitable[SessionID]]


class Plan(msgspec.Struct, kw_only=True):
    """What is to be run, checked."""

    prompt: str
    flags: Flags
    settings: Settings
    workspace: Path
    output: str
    asker: asking.Asker
    reporter: Reporter
    patch: Path | None = None
    find: Find | None = None


def plan(
    prompt: str | None,
    flags: Flags,
    workspace: Path | None,
    *,
    output: str,
    ask: str | None,
    ask_timeout: float,
    patch: Path | None,
    resume: str | None,
    continue_: bool,
) -> Plan:
    """Check all that can be checked before a session is touched. Raises `UsageError`, `ConfigError`."""
    place = compose.folder(workspace)
    find = _find(resume, continue_, place)
    settings = compose.load_settings(workspace, flags, warn=find is None)
    if find is None:
        if output == "text":
            mention_unread(settings)
        settings = ready(settings)
    shown = reporter(output)
    return Plan(
        prompt=prompt_text(prompt),
        flags=flags,
        settings=settings,
        workspace=place,
        output=output,
        asker=asker(ask, shown, timeout=ask_timeout),
        reporter=shown,
        patch=None if patch is None else patch.expanduser().absolute(),
        find=find,
    )


def _find(resume: str | None, continue_: bool, workspace: Path) -> Find | None:
    """How the session to go on with is found; None for a new one."""
    if resume is not None:
        return lambda store: reference.resolve(store, resume)
    return (lambda store: reference.last_in(store, workspace)) if continue_ else None


def ready(settings: Settings) -> Settings:
    """`settings` with provider and model chosen, and a provider that can be asked. Raises `ConfigError`."""
    settings = with_choice(settings, os.environ)
    provider = find_provider(settings, settings.model.provider)
    api_key(provider, os.environ)
    if provider.wire == "scripted":
        from counterfoil.providers.script import load_script

        load_script(Path(provider.base_url))
    name = model_name(settings)
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, name=name))


def asker(policy: str | None, shown: Reporter, *, otherwise: str = "deny", timeout: float = 60.0) -> asking.Asker:
    """Who answers: as `--ask` says; by default the person, where there is one at a terminal, else `otherwise`.

    Raises `UsageError` where that can't be.
    """
    if policy is not None and policy.startswith(program.PREFIX):
        return program.by_program(policy.removeprefix(program.PREFIX), timeout, scrubbed(os.environ))
    if policy not in (None, "deny", "wait", "prompt"):
        raise UsageError(f"--ask={policy} is unknown", hint="deny, wait, prompt or command:PROGRAM")
    if policy == "prompt" and not asking.has_terminal():
        raise UsageError("--ask=prompt needs a terminal", hint="use --ask=deny or --ask=wait")
    if policy == "prompt" or (policy is None and asking.somebody_looks()):
        return asking.at_terminal(shown.clear)
    if (policy or otherwise) == "wait":
        return asking.wait
    return asking.by_flag("deny", "--ask=deny")


async def execute(plan: Plan) -> int:
    """Run the plan and return the exit code."""
    if plan.find is not None:
        async with compose.service_for(plan.settings, plan.flags, plan.find) as (local, found):
            with _picture(plan, Path((await local.store.summary(found)).workspace)) as picture:
                async with await local.engine.open(found) as session:
                    await adapt(session, plan.flags, local.settings)
                    await _mention_given_up(session)
                    return await _drive(local, session, plan, picture)
    with _picture(plan, plan.workspace) as picture:
        async with (
            compose.service(plan.settings) as local,
            await local.engine.create(_new(plan)) as session,
        ):
            return await _drive(local, session, plan, picture)


async def _drive(local: LocalService, session: Session, plan: Plan, picture: Patch | None) -> int:
    drive = Drive(session, local.store, plan.reporter, plan.asker)
    try:
        outcome = await drive.prompt(plan.prompt)
    finally:
        if picture is not None:
            picture.write()
    return told(outcome, drive.seen, plan.flags)


def _picture(plan: Plan, workspace: Path) -> contextlib.AbstractContextManager[Patch | None, bool | None]:
    if plan.patch is None:
        return contextlib.nullcontext()
    return Patch(workspace, plan.patch)


def _new(plan: Plan) -> NewSession:
    settings = plan.settings
    return NewSession(
        owner=compose.principal(),
        workspace=str(plan.workspace),
        provider=settings.model.provider,
        model=settings.model.name,
        base_url=settings.model.base_url,
        mode=settings.permissions.mode,
        limits=settings.limits,
        title=_title(plan.prompt),
    )


def _title(prompt: str) -> str:
    line = visible_line(prompt.strip().split("\n", 1)[0])
    return line if len(line) <= 80 else line[:79] + "…"


async def adapt(session: Session, flags: Flags, settings: Settings) -> None:
    """Give an existing session what the flags say, and check that its provider can be asked."""
    meta = session.state.meta
    provider, model = flags.provider or meta.provider, flags.model or meta.model
    recorded = meta.base_url if provider == meta.provider else ""
    api_key(find_provider(settings, provider, recorded), os.environ)
    base_url = settings.model.base_url or recorded
    if (provider, model, base_url) != (meta.provider, meta.model, meta.base_url):
        await session.set_model(provider, model, base_url=base_url)
    await _keep_within(session, flags, bounds_of(settings))


async def _keep_within(session: Session, flags: Flags, bounds: Bounds) -> None:
    """Give the session the mode and the limits that the flags say, and nothing that the operator's file forbids."""
    meta = session.state.meta
    wanted = flags.mode or meta.mode
    mode, back = bounds.within(wanted), bounds.within(meta.mode_before_plan)
    if mode != wanted:
        faults.say(f"mode {wanted} of this session is less strict than the operator's: {mode} holds from now on")
    if mode == meta.mode == "plan" and back != meta.mode_before_plan:
        await session.set_mode(back)  # where an approved plan leads back to
    if mode != session.state.meta.mode:
        await session.set_mode(mode)
    limits = meta.limits
    if flags.max_turns is not None:
        limits = msgspec.structs.replace(limits, max_turns=flags.max_turns)
    if bounds.bounded(limits) != meta.limits:
        await session.set_limits(bounds.bounded(limits))


async def _mention_given_up(session: Session) -> None:
    """A new prompt ends the run that is open: say which questions nobody answers any more."""
    await session.read_mail()
    for ask in session.state.asks.values():
        faults.say(f"{ask.ask_id} about {ask.tool} is withdrawn: the new prompt ends the run that waited for it")


def told(outcome: RunOutcome, seen: Scrollback, flags: Flags) -> int:
    """Say on stderr how a run ended that didn't simply end, and return the exit code."""
    if outcome.parked:
        for view in seen.open_asks:
            ask = view.ask
            faults.say(f"parked: {ask.tool} waits for an answer to {ask.ask_id}: {ask.reason}")
            again = "".join(f" --deny {shlex.quote(rule)}" for rule in flags.deny)
            faults.say(f"`counterfoil answer {ask.ask_id} allow`, then `counterfoil resume {seen.root}{again}`")
        if flags.deny:
            faults.say("what --deny denied is denied by this command line alone: give it again, as shown")
    elif outcome.error is not None:
        hint = f" ({outcome.error.hint})" if outcome.error.hint else ""
        faults.say(f"{outcome.error.message}{hint}")
    elif outcome.stop_reason == "cancelled":
        faults.say(f"interrupted; `counterfoil run --resume {seen.root} PROMPT` goes on")
    elif exits.of_outcome(outcome) != exits.DONE:
        faults.say(f"the run stopped: {outcome.stop_reason}")
    return exits.of_outcome(outcome)
