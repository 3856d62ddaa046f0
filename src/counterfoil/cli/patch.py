"""What a run changed in a git workspace, as a patch. The repository itself is not touched: no index, no objects."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Literal

from counterfoil.errors import CounterfoilError, UsageError

TIMEOUT = 300


class PatchFailed(CounterfoilError):
    """The patch couldn't be made or written."""

    code = "patch"


class Patch:
    """Takes a picture of the workspace now; `write` writes what differs then."""

    def __init__(self, workspace: Path, output: Path) -> None:
        self.workspace = workspace
        self.output = output
        self._git = shutil.which("git")
        if self._git is None:
            raise UsageError("--patch needs git, and git isn't installed", hint="install git or leave --patch out")
        if not output.parent.is_dir() or output.is_dir():
            raise UsageError(f"{output} can't be written", hint="--patch names a file in an existing folder")
        self._scratch = tempfile.TemporaryDirectory(prefix="counterfoil-patch-")
        try:
            self._prepare()
            self._before = self._picture()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        scratch = Path(self._scratch.name)
        try:
            found = self._run("rev-parse", "--path-format=absolute", "--git-path", "objects", "--git-path", "index")
        except PatchFailed as fault:
            raise UsageError(
                f"--patch needs a git repository, and {self.workspace} is in none", hint="`git init` makes one"
            ) from fault
        objects, index = found.decode("utf-8", "surrogateescape").splitlines()
        (scratch / "objects").mkdir()
        if Path(index).exists():
            shutil.copyfile(index, scratch / "index")
        self._own = {
            "GIT_INDEX_FILE": str(scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
        }

    def _picture(self) -> str:
        """The tree of all files that git doesn't ignore, as they are now."""
        self._run("add", "--all", "--", ".", env=self._own)
        return self._run("write-tree", env=self._own).decode().strip()

    def write(self) -> int:
        """Write the patch and return its size in bytes."""
        after = self._picture()
        patch = self._run("diff", "--binary", "--full-index", "--no-ext-diff", self._before, after, env=self._own)
        part = self.output.with_name(f".{self.output.name}.{os.getpid()}.part")
        try:
            part.write_bytes(patch)
            part.replace(self.output)
        except OSError as fault:
            raise PatchFailed(f"{self.output} can't be written: {fault.strerror}", hint="check --patch") from fault
        finally:
            part.unlink(missing_ok=True)
        return len(patch)

    def close(self) -> None:
        """Forget the picture."""
        self._scratch.cleanup()

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    def _run(self, *arguments: str, env: dict[str, str] | None = None) -> bytes:
        assert self._git is not None
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        safe = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=true")
        try:
            done = subprocess.run(
                [self._git, *safe, *arguments],
                cwd=self.workspace,
                env=clean | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"} | (env or {}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise PatchFailed(f"git {arguments[0]} failed: {fault}") from fault
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise PatchFailed(f"git {arguments[0]} failed: {said[-1] if said else done.returncode}")
        return done.stdout
