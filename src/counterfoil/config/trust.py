"""Trust in a project folder: what its own file may add holds only while it is what a person has seen.

What is trusted is a digest over the project's configuration file and over the scripts in the workspace that its hooks
name; a change of any asks again. Stored by folder in the person's state directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from counterfoil.config.scripts import scripts_of
from counterfoil.config.values import Assignment, Tier, TrustState
from counterfoil.errors import ConfigError
from counterfoil.events import Limits
from counterfoil.hooks.definition import HookDefinition
from counterfoil.identity import Digest, bytes_digest
from counterfoil.small_files import read_small

FILE = "trust.json"
MAX_BYTES = 4_000_000


WITH_TRUST = frozenset(
    {("permissions", "allow"), ("permissions", "mode"), ("tools", "disabled"), ("model", "effort")}
    | {("limits", name) for name in Limits.__struct_fields__}
)
"""What a project may set once it is trusted. Never where requests and keys go, and never the mode `bypass`."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a project's file asks to be trusted for: its hooks, its settings, and the scripts that were looked at."""

    digest: Digest
    hooks: tuple[HookDefinition, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    scripts: tuple[str, ...] = ()


def needs_trust(assignment: Assignment) -> bool:
    """Does this setting of a project's file hold once its folder is trusted, and not before?"""
    return assignment.path in WITH_TRUST and assignment.value != "bypass"


def offer_of(tiers: Sequence[Tier], workspace: Path) -> Offer | None:
    """The offer of the project's tiers, or None where they hold nothing that needs trust."""
    settings = tuple((a.field, str(a.value)) for tier in tiers for a in tier.assignments if needs_trust(a))
    hooks = tuple(hook for tier in tiers for hook in tier.hooks)
    if not settings and not hooks:
        return None
    scripts: dict[str, str] = {}
    for hook in hooks:
        scripts |= scripts_of(hook, workspace)
    listing = msgspec.json.encode([[tier.digest for tier in tiers], sorted(scripts.items())])
    return Offer(
        digest=bytes_digest("counterfoil/trust/v1", listing),
        hooks=hooks,
        settings=settings,
        scripts=tuple(sorted(scripts)),
    )


class Trust:
    """The folders that a person trusts, below one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / FILE

    def state(self, workspace: Path, offer: Offer) -> TrustState:
        """How it stands with this offer of this folder.

        A file that others can write, or that lies in the folder itself, trusts nothing: it may not be the person's.
        """
        place = os.path.realpath(workspace)
        if lies_in(self._file, place) or not self._is_own():
            return "untrusted"
        known = self.folders().get(place)
        if known is None:
            return "untrusted"
        return "trusted" if known == offer.digest else "changed"

    def holds(self, workspace: Path, offer: Offer) -> bool:
        """Whether exactly this offer of this folder was trusted."""
        return self.state(workspace, offer) == "trusted"

    def folders(self) -> dict[str, str]:
        """Every trusted folder with the digest of what was trusted. Raises `ConfigError`."""
        try:
            return msgspec.json.decode(read_small(self._file, MAX_BYTES), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, OSError) as fault:
            raise ConfigError(f"{self._file}: can't be read: {fault}", hint="remove it to trust no folder") from fault

    def give(self, workspace: Path, offer: Offer) -> None:
        """Trust this offer of this folder. Raises `ConfigError` where the state directory lies in it."""
        place = os.path.realpath(workspace)
        if lies_in(self._file, place):
            raise ConfigError(
                f"{self._file} lies in the folder that is to be trusted",
                hint="choose a state directory outside of it: whoever fills the folder could write the trust",
            )
        with self._locked():
            self._write(self.folders() | {place: offer.digest})

    def take(self, workspace: Path) -> bool:
        """Trust the folder no more. False where it wasn't trusted."""
        with self._locked():
            known = self.folders()
            if known.pop(os.path.realpath(workspace), None) is None:
                return False
            self._write(known)
            return True

    def _is_own(self) -> bool:
        try:
            status = self._file.stat()
        except OSError:
            return False
        return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, folders: dict[str, str]) -> None:
        partial = self._file.with_suffix(".new")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(folders)))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._file)


def lies_in(file: Path, folder: str) -> bool:
    """Does the file lie in the folder, symlinks resolved?"""
    return os.path.realpath(file).startswith(folder.rstrip("/") + "/")
