"""Opening and replacing files without following any link on the way, and what a session knows of files it read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from counterfoil.errors import ToolFailure
from counterfoil.tools.workspace import moved

DIGEST_LIMIT = 16 * 1024 * 1024
EDIT_LIMIT = 16 * 1024 * 1024
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def open_folder(resolved: Path, *, create: bool = False) -> int:
    """A descriptor of the folder, reached step by step without following a link. With `create`, made if missing.

    Raises `ToolFailure` where a link or a file stands in the way, and `OSError` else.
    """
    at = os.open("/", _FOLDER)
    try:
        for name in resolved.parts[1:]:
            step = _enter(at, name, resolved, create)
            os.close(at)
            at = step
    except BaseException:
        os.close(at)
        raise
    return at


def _enter(at: int, name: str, whole: Path, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=at)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as fault:
        if fault.errno in _LINK_ERRORS:
            raise _in_the_way(at, name, whole) from fault
        raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=at)
    return os.open(name, _FOLDER, dir_fd=at)


def _in_the_way(at: int, name: str, whole: Path) -> Exception:
    if stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        return moved(whole)
    return NotADirectoryError(errno.ENOTDIR, f"{name} is not a folder", str(whole))


def open_file(resolved: Path) -> BinaryIO:
    """The regular file, opened to read, reached without following a link. Raises `ToolFailure` or `OSError`."""
    folder = open_folder(resolved.parent)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(resolved.name, flags, dir_fd=folder)
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.EMLINK):
            raise moved(resolved) from fault
        if fault.errno == errno.ENXIO:
            raise _irregular(resolved) from fault
        raise
    finally:
        os.close(folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, "is a folder") if stat.S_ISDIR(mode) else _irregular(resolved)
    return _Steady(io.FileIO(descriptor, "rb"))


class _Steady(io.BufferedReader):
    """A file of /proc that calls itself regular, and has nothing to read now, is an error and not None."""

    def read(self, size: int | None = -1) -> bytes:
        """See the base class. Raises `BlockingIOError`."""
        data: bytes | None = super().read(size)
        if data is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return data


def _irregular(path: Path) -> ToolFailure:
    return ToolFailure(f"{path} is not a regular file (a device, pipe or socket)", executed="no")


def replace_file(resolved: Path, data: bytes) -> None:
    """Write the whole file or leave the old one: a new file in the same folder, then renamed. The mode is kept."""
    folder = open_folder(resolved.parent, create=True)
    temporary = f".{secrets.token_hex(8)}.tmp"
    try:
        mode = _mode_of(folder, resolved)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, resolved.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _forget(temporary, folder)
            raise
    finally:
        os.close(folder)


def _mode_of(folder: int, resolved: Path) -> int | None:
    try:
        found = os.stat(resolved.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        raise moved(resolved)
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailure(f"{resolved} is a folder", executed="no")
    if not stat.S_ISREG(found.st_mode):
        raise _irregular(resolved)
    return stat.S_IMODE(found.st_mode)


def _forget(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


class Stamp(msgspec.Struct, frozen=True):
    """What a file was like: changed when, how long, and its digest where it isn't very long."""

    mtime_ns: int
    size: int
    digest: bytes | None


def stamp(file: BinaryIO) -> Stamp:
    """The stamp of an open file. Its position is left anywhere."""
    found = os.fstat(file.fileno())
    digest = None
    if found.st_size <= DIGEST_LIMIT:
        file.seek(0)
        hasher = hashlib.blake2b(digest_size=16)
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
        digest = hasher.digest()
    return Stamp(found.st_mtime_ns, found.st_size, digest)


def same(a: Stamp, b: Stamp) -> bool:
    """Is the content the same? By digest where both have one; a mere `touch` is no change."""
    if a.digest is not None and b.digest is not None:
        return a.digest == b.digest
    return (a.mtime_ns, a.size) == (b.mtime_ns, b.size)


class ReadFiles:
    """The files that were read or written in this session, as they were then."""

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}

    def note(self, resolved: Path, seen: Stamp) -> None:
        """Remember that the model knows this content."""
        self._stamps[resolved] = seen

    def knows(self, resolved: Path) -> bool:
        """Was the file read or written in this session?"""
        return resolved in self._stamps

    def unchanged(self, resolved: Path, now: Stamp) -> bool:
        """Is the file as it was when last read or written here? True also where it never was."""
        held = self._stamps.get(resolved)
        return held is None or same(held, now)


def os_failure(fault: OSError, path: str, *, executed: str = "no") -> ToolFailure:
    """What the operating system said, for the model."""
    reason = fault.strerror or str(fault) or type(fault).__name__
    return ToolFailure(f"{path}: {reason[:1].lower() + reason[1:]}", executed=executed)


__all__ = [
    "DIGEST_LIMIT",
    "EDIT_LIMIT",
    "ReadFiles",
    "Stamp",
    "open_file",
    "open_folder",
    "os_failure",
    "replace_file",
    "same",
    "stamp",
]
