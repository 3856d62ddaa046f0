"""Which file does a path mean, and is it inside the workspace? Symlinks are followed to the end first."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from counterfoil.errors import ToolFailure
from counterfoil.identity import ToolCallID
from counterfoil.ports import PathUse

REMEMBERED_CALLS = 4096


class Workspace:
    """The roots that a session's tools work in. The first one is where relative paths begin."""

    def __init__(self, root: Path, extra_roots: Sequence[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self.roots = (self.root, *(Path(os.path.realpath(extra)) for extra in extra_roots))

    def use(self, path: str, *, write: bool = False) -> PathUse:
        """What `path` means now: absolute as given, and with every symlink resolved, also of files yet to be made."""
        if "\0" in path:
            raise ToolFailure("a path can't hold a NUL character", executed="no")
        if not path:
            raise ToolFailure("the path is empty", executed="no")
        try:
            joined = os.path.join(self.root, os.path.expanduser(path))  # noqa: PTH118, PTH111
            resolved = os.path.realpath(joined)
        except (OSError, ValueError) as fault:
            raise ToolFailure(f"the path can't be resolved: {fault}", executed="no") from fault
        given = os.path.normpath(joined)
        return PathUse(given=given, resolved=resolved, write=write, inside=self.holds(Path(resolved)))

    def holds(self, resolved: Path) -> bool:
        """Is this resolved path one of the roots, or below one?"""
        return any(resolved == root or root in resolved.parents for root in self.roots)

    def shown(self, path: Path | str) -> str:
        """How results name a path: relative to the first root where it is below that, else absolute."""
        try:
            return str(Path(path).relative_to(self.root))
        except ValueError:
            return str(path)


class Checked:
    """What the permission check saw of each call, so that the tool touches that and nothing else."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen: OrderedDict[tuple[ToolCallID, str], str] = OrderedDict()

    def note(self, call: ToolCallID, path: str, *, write: bool = False) -> PathUse:
        """Resolve `path` for the permission decision on `call`, and remember the outcome."""
        use = self._workspace.use(path, write=write)
        self._seen[call, use.given] = use.resolved
        self._seen.move_to_end((call, use.given))
        while len(self._seen) > REMEMBERED_CALLS:
            self._seen.popitem(last=False)
        return use

    def confirm(self, call: ToolCallID, path: str) -> Path:
        """The resolved path, the same as was decided on. Raises `ToolFailure` where it means another file now."""
        use = self._workspace.use(path)
        decided = self._seen.get((call, use.given))
        if decided is None and not use.inside:
            raise ToolFailure(f"{use.given} is outside the workspace, and nobody allowed it", executed="no")
        if decided is not None and decided != use.resolved:
            raise moved(use.given)
        return Path(use.resolved)


def moved(path: str | Path) -> ToolFailure:
    """A link or a folder was exchanged between the check and the use."""
    return ToolFailure(
        f"{path} means another file than it did when the call was checked", executed="no", hint="call again"
    )


__all__ = ["Checked", "Workspace", "moved"]
