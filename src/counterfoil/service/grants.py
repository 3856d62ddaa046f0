"""Standing grants: rules that people let be learned for good, by workspace, in one file of the state directory.

The record of how each was learned is in the log of its session (`grant.changed`); this file is what other sessions
of the same workspace look at. Written whole and swapped in, under a lock: two processes lose nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from counterfoil.config.trust import lies_in
from counterfoil.errors import ConfigError
from counterfoil.small_files import locked, read_small, swap_in

FILE = "grants.json"
MAX_BYTES = 4_000_000


class StandingGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, and the ask and session that it came from."""

    rule: str
    ask_id: str = ""
    session_id: str = ""
    learned_at: int = 0


class _File(msgspec.Struct, frozen=True, kw_only=True):
    format: int = 1
    workspaces: dict[str, list[StandingGrant]] = {}


class Grants:
    """The standing grants below one state directory. Workspaces are told apart by their resolved path."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / FILE
        self._seen: tuple[int, int] | None = None
        self._known = _File()

    def of(self, workspace: str) -> list[StandingGrant]:
        """The grants of a workspace. Read again only when the file has changed. Raises `ConfigError`.

        None, where the file lies in the workspace or others can write it: they may be nobody's answers.
        """
        if lies_in(self._file, os.path.realpath(workspace)):
            return []
        self._refresh()
        return list(self._known.workspaces.get(os.path.realpath(workspace), []))

    def add(self, workspace: str, grant: StandingGrant) -> None:
        """Learn a rule. Learning it twice changes nothing."""
        with self._changing() as workspaces:
            kept = workspaces.setdefault(os.path.realpath(workspace), [])
            if all(g.rule != grant.rule for g in kept):
                kept.append(grant)

    def revoke(self, workspace: str, rule: str) -> bool:
        """Forget a rule. False where it wasn't there."""
        with self._changing() as workspaces:
            place = os.path.realpath(workspace)
            kept = [g for g in workspaces.get(place, []) if g.rule != rule]
            found = len(kept) < len(workspaces.get(place, []))
            workspaces[place] = kept
        return found

    def _refresh(self) -> None:
        try:
            status = self._file.stat()
        except FileNotFoundError:
            self._known, self._seen = _File(), None
            return
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(f"{self._file}: others can write it", hint="`chmod 600` it, or remove it")
        seen = (status.st_mtime_ns, status.st_ino)
        if seen == self._seen:
            return
        try:
            self._known = msgspec.json.decode(read_small(self._file, MAX_BYTES), type=_File)
        except (msgspec.DecodeError, OSError) as fault:
            raise ConfigError(
                f"{self._file}: learned rules can't be read: {fault}", hint="mend the file, or remove it to forget them"
            ) from fault
        self._seen = seen

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, list[StandingGrant]]]:
        with locked(self._file):
            self._refresh()
            workspaces = {place: list(grants) for place, grants in self._known.workspaces.items()}
            yield workspaces
            kept = _File(workspaces={place: grants for place, grants in workspaces.items() if grants})
            swap_in(self._file, msgspec.json.format(msgspec.json.encode(kept)))
            self._seen = None
