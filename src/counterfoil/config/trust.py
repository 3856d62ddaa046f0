"""Trust in a project folder: what its own file may add holds only while it is what a person has seen.

What is trusted is a digest over the project's configuration file and over the scripts in the workspace that its hooks
name; a change of any asks again. Stored by folder in the person's state directory.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from counterfoil.config.values import Tier
from counterfoil.errors import ConfigError
from counterfoil.hooks.definition import HookDefinition
from counterfoil.identity import Digest, bytes_digest
from counterfoil.small_files import read_small

FILE = "trust.json"
SCRIPT_BYTES = 4_000_000


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a project's file asks to be trusted for: its hooks, its settings, and the scripts that were looked at."""

    digest: Digest
    hooks: tuple[HookDefinition, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    scripts: tuple[str, ...] = ()


def offer_of(tiers: Sequence[Tier], workspace: Path, held: frozenset[tuple[str, ...]]) -> Offer | None:
    """The offer of the project's own files, or None where they hold nothing that needs trust.

    `held` are the settings that hold without trust, because they only make things stricter.
    """
    settings = tuple((a.field, str(a.value)) for tier in tiers for a in tier.assignments if a.path not in held)
    hooks = tuple(hook for tier in tiers for hook in tier.hooks)
    if not settings and not hooks:
        return None
    scripts = {str(path): _content(path) for path in _scripts(hooks, workspace)}
    listing = msgspec.json.encode([[tier.digest for tier in tiers], sorted(scripts.items())])
    return Offer(
        digest=bytes_digest("counterfoil/trust/v1", listing),
        hooks=hooks,
        settings=settings,
        scripts=tuple(sorted(scripts)),
    )


def _scripts(hooks: Sequence[HookDefinition], workspace: Path) -> list[Path]:
    """The files of the workspace that the hooks' commands name."""
    root = Path(os.path.realpath(workspace))
    found: list[Path] = []
    for hook in hooks:
        try:
            words = shlex.split(hook.command)
        except ValueError:
            words = hook.command.split()
        for word in words:
            path = Path(os.path.realpath(root / word))
            if path.is_relative_to(root) and path.is_file():
                found.append(path)
    return found


def _content(path: Path) -> str:
    try:
        data = read_small(path, SCRIPT_BYTES + 1)
    except OSError as fault:
        return f"unreadable: {fault.strerror}"
    if len(data) > SCRIPT_BYTES:
        text = f"{path}: a hook's script of over {SCRIPT_BYTES} bytes can't be trusted"
        raise ConfigError(text, hint="make it smaller")
    return bytes_digest("counterfoil/script/v1", data)


class Trust:
    """The folders that a person trusts, below one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / FILE

    def holds(self, workspace: Path, offer: Offer) -> bool:
        """Whether exactly this offer of this folder was trusted."""
        return self.folders().get(os.path.realpath(workspace)) == offer.digest

    def folders(self) -> dict[str, str]:
        """Every trusted folder with the digest of what was trusted. Raises `ConfigError`."""
        try:
            return msgspec.json.decode(read_small(self._file, 4_000_000), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, OSError) as fault:
            raise ConfigError(f"{self._file}: can't be read: {fault}", hint="remove it to trust no folder") from fault

    def give(self, workspace: Path, offer: Offer) -> None:
        """Trust this offer of this folder."""
        self._write(self.folders() | {os.path.realpath(workspace): offer.digest})

    def take(self, workspace: Path) -> bool:
        """Trust the folder no more. False where it wasn't trusted."""
        known = self.folders()
        if known.pop(os.path.realpath(workspace), None) is None:
            return False
        self._write(known)
        return True

    def _write(self, folders: dict[str, str]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._file.with_suffix(f".{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(folders)))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._file)
