"""Which files of a workspace a hook's command names, and what is in them: a trust covers them by their content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from counterfoil.hooks.definition import HookDefinition

MAX_BYTES = 16_000_000
_MAX_WORDS = 200
_MAX_FOLDERS = 5
_ROOT = re.compile(r"\$(?:\{(?:CLAUDE|COUNTERFOIL)_PROJECT_DIR\}|(?:CLAUDE|COUNTERFOIL)_PROJECT_DIR(?![A-Za-z0-9_]))")
_WORD = re.compile(r"[^\s;&|<>()'\"`${}=]+")


def scripts_of(hook: HookDefinition, workspace: Path) -> dict[str, str]:
    """The files below the workspace that a hook's command names, with a digest of where each leads and its content.

    Every word counts, whatever the shell would make of it; a file too much asks once too often, one too few never.
    Files that such a file reads itself are not seen.
    """
    root = os.path.realpath(workspace)
    found: dict[str, str] = {}
    for path in _named(hook, root):
        if path not in found and (digest := _content(path)):
            found[path] = digest
    return found


def _named(hook: HookDefinition, root: str) -> Iterator[str]:
    if hook.kind == "python":
        module = hook.entry.partition(":")[0].replace(".", "/")
        yield from _below(root, root, f"{module}.py")
        yield from _below(root, root, f"{module}/__init__.py")
    if hook.kind != "command":
        return
    words = _words(_ROOT.sub(lambda match: root, hook.command))
    folders: list[str] = []
    for word in words:
        for path in _below(root, root, word):
            yield path
            if len(folders) < _MAX_FOLDERS and Path(path).is_dir():
                folders.append(path)
    for folder in folders:
        for word in words:
            yield from _below(root, folder, word)


def _words(command: str) -> list[str]:
    """Everything in the command that may be a file's name."""
    words = dict.fromkeys(_WORD.findall(command))
    with contextlib.suppress(ValueError):
        words |= dict.fromkeys(shlex.split(command))
    return list(words)[:_MAX_WORDS]


def _below(root: str, folder: str, word: str) -> Iterator[str]:
    if "\x00" in word:
        return
    path = os.path.normpath(Path(folder) / word)
    if path.startswith(root.rstrip("/") + "/"):
        yield path


def _content(path: str) -> str:
    """Empty where there is no file. Of a file over `MAX_BYTES` its size and time stand for its content."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return ""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return ""
    summed = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape") + b"\0")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > MAX_BYTES:
            summed.update(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}".encode())
            return summed.hexdigest()
        while block := file.read(1 << 20):
            summed.update(block)
    return summed.hexdigest()


__all__ = ["scripts_of"]
