"""`CLAUDE_ENV_FILE`: the file into which a SessionStart hook writes variables for the session's commands."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from counterfoil.errors import CounterfoilError
from counterfoil.hooks.command import run_command
from counterfoil.hooks.definition import HookDefinition
from counterfoil.ports import HookAnswer
from counterfoil.small_files import read_small

MAX_BYTES = 256 * 1024
_NAMES = 20


class Variables(Protocol):
    """Where the variables of a session are kept."""

    def take(self, text: str) -> tuple[Sequence[str], Sequence[str]]:
        """Keep what these exports set: the names that are set now, and what wasn't taken, for people.

        Raises `OSError` or `CounterfoilError` where it can't be kept.
        """
        ...


class Written:
    """What the hooks of one session wrote. Each gets a file of its own: none can cut off what another wrote, and who
    wrote what is known.
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._texts: dict[tuple[str, ...], str | OSError] = {}

    async def run(
        self, definition: HookDefinition, payload: bytes, *, cwd: str, environment: dict[str, str]
    ) -> HookAnswer:
        """Run the command with a file, and keep what it wrote until it is taken."""
        with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
            file = Path(folder) / "env"
            file.touch(0o600)
            given = environment | {"CLAUDE_ENV_FILE": str(file)}
            said = await run_command(definition, payload, cwd=cwd, environment=given)
            try:
                self._texts[definition.handler] = read_small(file, MAX_BYTES).decode("utf-8", "replace")
            except OSError as fault:
                self._texts[definition.handler] = fault
            return said

    def taken(self, definition: HookDefinition, said: HookAnswer) -> HookAnswer:
        """The answer, with what became of the variables that its hook wrote."""
        text = self._texts.pop(definition.handler, "")
        if isinstance(text, OSError):
            return _warned(said, f"variables: CLAUDE_ENV_FILE can't be read: {text.strerror or text}")
        if not text.strip():
            return said
        if said.failure is not None:
            return _warned(said, "variables: not taken, because the hook failed")
        try:
            names, warnings = self._variables.take(text)
        except (OSError, CounterfoilError) as fault:
            return _warned(said, f"variables: can't be kept: {fault}")
        if not names:
            return _warned(said, *warnings)
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        told = f"sets for the session's commands: {', '.join(names[:_NAMES])}{more}"
        message = f"{said.system_message}\n{told}" if said.system_message else told
        return msgspec.structs.replace(_warned(said, *warnings), system_message=message)


def _warned(said: HookAnswer, *warnings: str) -> HookAnswer:
    return msgspec.structs.replace(said, warnings=(*said.warnings, *warnings))


__all__ = ["Variables", "Written"]
