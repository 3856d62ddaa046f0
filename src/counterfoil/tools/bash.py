"""The tool that runs a command line."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from counterfoil.events import TextPart
from counterfoil.ports import Targets, ToolContext, ToolOutput
from counterfoil.tools import process
from counterfoil.tools.base import BuiltinTool
from counterfoil.tools.environment import scrubbed
from counterfoil.tools.output import Collector
from counterfoil.tools.process import Outcome
from counterfoil.tools.sandbox import sandboxed
from counterfoil.tools.text import clean

PROGRESS_EVERY = 0.25
Milliseconds = Annotated[float, Meta(gt=0)]


class BashArguments(msgspec.Struct, frozen=True, kw_only=True):
    """What Bash takes."""

    command: Annotated[str, Meta(description="The command line to run.", min_length=1)]
    description: Annotated[str | None, Meta(description="What it does, in five to ten words.")] = None
    timeout: Annotated[
        Milliseconds | None, Meta(description="Time-out in milliseconds (default 120000, at most 600000).")
    ] = None
    run_in_background: Annotated[
        bool, Meta(description="Return at once with an id; read the output with BashOutput.")
    ] = False


class Bash(BuiltinTool[BashArguments]):
    """Run a shell command. Each call starts afresh in the workspace's root: a `cd` or a variable doesn't last.

    Standard output and standard error come in one text, in the order written. There is no terminal and nothing to
    read from. When the command ends or times out, processes that it left behind are stopped: use
    run_in_background for what shall go on (a server, a watcher).
    """

    name = "Bash"
    arguments = BashArguments
    timeout = 0.0

    def touches(self, ctx: ToolContext, args: BashArguments) -> Targets:
        """The command line."""
        return Targets(command=args.command)

    async def call(self, ctx: ToolContext, args: BashArguments) -> ToolOutput:
        """Run it, in the background where that is asked."""
        options, workspace = self.session.options, self.session.workspace
        given = ctx.environment if self.session.environment is None else self.session.environment
        base = scrubbed(given, options.extra_environment)
        environment = {**base, **options.variables(), "PWD": str(workspace.root)}
        argv = process.shell_argv(args.command)
        if options.sandbox == "bwrap":
            argv = sandboxed(argv, roots=workspace.roots, network=options.sandbox_network)
        if args.run_in_background:
            shell = await self.session.shells.start(args.command, argv, workspace.root, environment)
            text = f"Started in the background as {shell.shell_id}. Read its output with BashOutput."
            return ToolOutput(parts=(TextPart(text=text),))
        seconds = min(args.timeout / 1000 if args.timeout else options.bash_timeout, options.bash_max_timeout)
        collector = Collector(ctx.output_dir / f"{ctx.tool_call_id}.txt")
        sink = _Sink(collector, ctx.progress)
        try:
            outcome = await process.run(argv, cwd=workspace.root, environment=environment, sink=sink, timeout=seconds)
        finally:
            collector.close()
        return _output(collector, outcome, seconds)


class _Sink:
    """Takes output into the collector, and now and then tells the last line."""

    def __init__(self, collector: Collector, progress: Callable[[str], None]) -> None:
        self._collector, self._progress = collector, progress
        self._told = 0.0

    async def __call__(self, chunk: bytes) -> None:
        if self._collector.long:
            await asyncio.to_thread(self._collector.feed, chunk)
        else:
            self._collector.feed(chunk)
        now = asyncio.get_running_loop().time()
        if now - self._told >= PROGRESS_EVERY:
            lines = clean(chunk[-2000:]).strip().rsplit("\n", 1)
            if lines[-1]:
                self._told = now
                self._progress(lines[-1][:500])


def _output(collector: Collector, outcome: Outcome, seconds: float) -> ToolOutput:
    kept = collector.text()
    text = kept.text.rstrip("\n")
    notes = []
    if outcome.timed_out:
        notes.append(f"[timed out after {seconds:g} s; the command and its children were stopped]")
    elif outcome.code:
        notes.append(f"[exit code {_code(outcome.code)}]")
    if outcome.left:
        notes.append("[processes that the command left behind were stopped; use run_in_background to keep them]")
    if not text and not notes:
        notes.append("[no output, exit code 0]")
    whole = "\n".join([text, *notes] if text else notes)
    parts = (TextPart(text=whole, truncated_bytes=kept.omitted),)
    return ToolOutput(parts=parts, is_error=outcome.timed_out or outcome.code != 0)


def _code(code: int) -> str:
    if code >= 0:
        return str(code)
    try:
        return f"{128 - code}, ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"{128 - code}, ended by signal {-code}"


__all__ = ["Bash", "BashArguments"]
