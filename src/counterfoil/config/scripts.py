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
from counterfoil.policy.names import names

MAX_BYTES = 16_000_000
_MAX_WORDS = 200
_MAX_FOLDERS = 5
MAX_FILES = 200
MAX_TEXT = 1_000_000
SUFFIXES = names(".sh .bash .zsh .fish .py .js .mjs .cjs .ts .mts .rb .pl .lua .php .mk .jq .awk")
_PACKAGE = ("package.json",)
_RUNNERS: dict[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", ".justfile", "Justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun", "bunx"), _PACKAGE),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "pre-commit": (".pre-commit-config.yaml",),
}
"""Programs that run what a file of the workspace says, and that file."""
_ROOT = re.compile(r"\$(?:\{(?:CLAUDE|COUNTERFOIL)_PROJECT_DIR\}|(?:CLAUDE|COUNTERFOIL)_PROJECT_DIR(?![A-Za-z0-9_]))")
_WORD = re.compile(r"[^\s;&|<>()'\"`${}=]+")


def scripts_of(hook: HookDefinition, workspace: Path) -> dict[str, str]:
    """The files below the workspace that a hook's command names, with a digest of where each leads and its content.

    Every word counts, whatever the shell would make of it; a file too much asks once too often, one too few never.
    Scripts that such a script names are followed in the same way, and the file from which `make`, `just` or `npm` take
    what they run. What a program loads by another way (a package, a computed name) is not seen.
    """
    root = os.path.realpath(workspace)
    found: dict[str, str] = {}
    todo = list(_named(hook, root))
    while todo and len(found) < MAX_FILES:
        path = todo.pop(0)
        if path not in found and (digest := _content(path)):
            found[path] = digest
            todo += [other for other in _loaded(path, root) if other not in found]
    return found


def _loaded(path: str, root: str) -> Iterator[str]:
    """The scripts of the workspace that a script names: by a word, or as a module beside it."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES and not _is_script(path):
        return
    with Path(path).open("rb") as file:
        text = file.read(MAX_TEXT).decode("utf-8", "replace")
    for word in dict.fromkeys(_WORD.findall(_ROOT.sub(lambda match: root, text))):
        for folder in dict.fromkeys((root, str(Path(path).parent))):
            for name in (word, f"{word}{suffix}", *_modules(word)):
                for other in _below(root, folder, name):
                    if Path(other).suffix in SUFFIXES or _is_script(other):
                        yield other


def _modules(word: str) -> tuple[str, ...]:
    """The files of a Python module, as `python -m` and `import` name it."""
    place = word.replace(".", "/")
    return f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py"


def _is_script(path: str) -> bool:
    """A file that begins like a script, or that a runner takes its commands from."""
    if Path(path).name in {name for names in _RUNNERS.values() for name in names}:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and os.read(descriptor, 2) == b"#!"
    finally:
        os.close(descriptor)


def _named(hook: HookDefinition, root: str) -> Iterator[str]:
    if hook.kind == "python":
        module = hook.entry.partition(":")[0].replace(".", "/")
        yield from _below(root, root, f"{module}.py")
        yield from _below(root, root, f"{module}/__init__.py")
    if hook.kind != "command":
        return
    words = _words(_ROOT.sub(lambda match: root, hook.command))
    for name in dict.fromkeys(name for word in words for name in _RUNNERS.get(word.rsplit("/", 1)[-1], ())):
        yield from _below(root, root, name)
    folders: list[str] = []
    for name in (name for word in words if " -m" in hook.command for name in _modules(word)):
        yield from _below(root, root, name)
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
