"""Variables that hooks set for the commands of one session, kept beside its outputs: a restart keeps them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.small_files import read_small
from counterfoil.tools.environment import refusal, scrubbed
from counterfoil.tools.exports import MAX_CHARACTERS, parse_exports

MAX_BYTES = 4 * MAX_CHARACTERS
_SHOWN = 8


class SessionVariables:
    """What SessionStart hooks set. `environment` is what commands start from without them.

    What may not be set is refused when it is heard, and again when it is read: the file may have been changed.
    """

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._base = scrubbed(environment)
        self._heard: dict[str, str] = {}

    def take(self, text: str) -> tuple[Sequence[str], Sequence[str]]:
        """Keep what the exports in `text` set. The names that are set now, and what wasn't taken, for people.

        Raises `OSError` where it can't be kept, and `ToolFailure` where what was kept can't be read.
        """
        found = parse_exports(text[:MAX_CHARACTERS], {**self._base, **self._heard})
        taken, warnings = {}, []
        if len(text) > MAX_CHARACTERS:
            warnings.append(f"variables: only the first {MAX_CHARACTERS} characters were read")
        if found.others:
            lines = ", ".join(map(str, found.others[:_SHOWN])) + (", …" if len(found.others) > _SHOWN else "")
            warnings.append(f"variables: no plain assignment, so not taken: line {lines}")
        for name, value in found.values.items():
            why = refusal(name, value)
            if why is None:
                taken[name] = value
            elif self._base.get(name) != value:
                warnings.append(f"variables: {name[:100]} is not taken: it {why}")
        if len(warnings) > _SHOWN:
            warnings = [*warnings[:_SHOWN], f"variables: {len(warnings) - _SHOWN} more were not taken"]
        changed = {name: value for name, value in taken.items() if self._base.get(name) != value}
        if changed:
            self._heard |= changed
            self._keep({**self.current(), **changed})
        return tuple(changed), warnings

    def current(self) -> dict[str, str]:
        """What is set. Raises `ToolFailure` where it can't be read: a command must not run without it unseen."""
        try:
            return {name: value for name, value in self._read().items() if refusal(name, value) is None}
        except (OSError, msgspec.DecodeError) as fault:
            raise ToolFailure(
                f"the variables that hooks set for this session can't be read: {fault}",
                executed="no",
                hint=f"remove {self._file}",
            ) from fault

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(read_small(self._file, MAX_BYTES), type=dict[str, str])
        except FileNotFoundError:
            return {}

    def _keep(self, values: dict[str, str]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._file.with_suffix(".new")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(values))
        partial.replace(self._file)


__all__ = ["SessionVariables"]
