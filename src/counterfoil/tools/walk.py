"""All files below a folder that a search may show: not `.git`, not what `.gitignore` names, not what is hidden."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.small_files import read_small
from counterfoil.tools.base import Stopped

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_ENTRIES = 500_000
MAX_SECONDS = 30.0
_ALWAYS_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".jj"})


class Walk:
    """One walk. Symlinks to folders aren't entered. `incomplete` says that a limit ended it early."""

    def __init__(
        self, top: Path, root: Path, hidden: Callable[[Path], bool], stop: threading.Event, *, links: bool = False
    ) -> None:
        self.incomplete = False
        self._top, self._root, self._hidden, self._stop, self._links = top, root, hidden, stop, links
        self._left = MAX_ENTRIES
        self._until = time.monotonic() + MAX_SECONDS

    def files(self) -> Iterator[os.DirEntry[str]]:
        """Every file in the order of paths; with `links` also symlinks."""
        rules = self._above().within(self._top)
        open_folders = [(iter(self._entries(self._top)), rules)]
        while open_folders:
            entries, rules = open_folders[-1]
            entry = next(entries, None)
            if entry is None:
                open_folders.pop()
                continue
            path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if rules.ignore(path, is_folder) or self._hidden(path):
                continue
            if is_folder:
                open_folders.append((iter(self._entries(path)), rules.within(path)))
            elif entry.is_file(follow_symlinks=False) or (self._links and entry.is_symlink()):
                yield entry

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        if self._stop.is_set():
            raise Stopped
        try:
            with os.scandir(folder) as found:
                entries = [entry for entry in found if entry.name not in _ALWAYS_LEFT_OUT]
        except OSError:
            return []
        self._left -= len(entries)
        if self._left < 0 or time.monotonic() > self._until:
            self.incomplete = True
            return []
        return sorted(entries, key=lambda entry: entry.name)

    def _above(self) -> _Rules:
        """The rules of the folders from the workspace's root down to the one above the top."""
        rules = _Rules(())
        if self._top != self._root and self._root in self._top.parents:
            for folder in reversed(self._top.parents):
                if folder == self._root or self._root in folder.parents:
                    rules = rules.within(folder)
        return rules


class _Rules:
    """The `.gitignore` files that hold in a folder: the deepest that says anything decides."""

    def __init__(self, specs: tuple[tuple[str, GitIgnoreSpec], ...]) -> None:
        self._specs = specs

    def within(self, folder: Path) -> _Rules:
        """The rules in `folder`, which is below."""
        try:
            lines = read_small(folder / ".gitignore", 1 << 20).decode("utf-8", "replace").splitlines()
        except OSError:
            return self
        from pathspec import GitIgnoreSpec

        try:
            spec = GitIgnoreSpec.from_lines(lines)
        except ValueError:
            return self
        return _Rules(((str(folder), spec), *self._specs))

    def ignore(self, path: Path, is_folder: bool) -> bool:
        """Is the file or folder ignored?"""
        for folder, spec in self._specs:
            relative = os.path.relpath(path, folder) + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


__all__ = ["Walk"]
