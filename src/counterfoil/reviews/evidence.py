"""What the harness itself reads for a check: files that a call runs or edits, under the session's own permissions."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from counterfoil.identity import bytes_digest
from counterfoil.policy.bash import shell_paths
from counterfoil.policy.paths import Place, is_secret
from counterfoil.ports import Evidence, Piece, ReviewSubject

MAX_PIECES = 16
MAX_BYTES = 400_000


def read_evidence(subject: ReviewSubject, place: Place, denied: Callable[[str], bool]) -> Evidence:
    """Up to `MAX_PIECES` pieces of `MAX_BYTES` in all. What can't, or mustn't, be read is `missing`.

    `denied` says of a resolved path whether the session's rules deny reading it. Never waits for a pipe or a device.
    """
    pieces: list[Piece] = []
    missing: list[str] = []
    left = MAX_BYTES
    for path in dict.fromkeys(_paths(subject, place)):
        if len(pieces) == MAX_PIECES:
            missing.append("more files than are read")
            break
        found = _read(path, place, denied, left)
        if isinstance(found, Piece):
            pieces.append(found)
            left -= len(found.text.encode("utf-8", "surrogatepass"))
        elif found:
            missing.append(f"{path}: {found}")
    return Evidence(pieces=tuple(pieces), missing=tuple(missing))


def _paths(subject: ReviewSubject, place: Place) -> Iterator[str]:
    """The files that the call names, resolved."""
    for use in subject.targets.paths:
        yield use.resolved
    if subject.targets.command is not None:
        for path in shell_paths(subject.targets.command, place):
            yield os.path.realpath(path)


def _read(path: str, place: Place, denied: Callable[[str], bool], left: int) -> Piece | str:
    """The piece, or why there is none; empty where there is simply no such file, or it is a folder."""
    if not _inside(path, place):
        return ""
    if denied(path) or is_secret(path):
        return "the session may not read it"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as fault:
        return f"can't be read ({type(fault).__name__})"
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return ""
        if not stat.S_ISREG(status.st_mode):
            return "is no regular file"
        if status.st_size > left:
            return f"is too large ({status.st_size} bytes)"
        data = file.read(left + 1)
    if len(data) > left:
        return "is too large"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"isn't text ({len(data)} bytes, {bytes_digest('counterfoil/evidence/v1', data)})"
    return Piece(origin=path, text=text, digest=bytes_digest("counterfoil/evidence/v1", data))


def _inside(path: str, place: Place) -> bool:
    root = place.workspace.rstrip("/")
    return bool(root) and (path == root or path.startswith(root + "/"))
