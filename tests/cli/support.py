"""Runs the command line as a person or a script would: in this process, or as a real process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counterfoil.cli.main import call

SRC = Path(__file__).parents[2] / "src"


class Result(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """Command lines in one folder with one state directory, without the configuration of whoever runs the tests."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.workspace = root / "work"
        self.state = root / "state"
        self._capture = capture
        self._patch = patch
        for folder in (self.workspace, root / "home"):
            folder.mkdir()
        for name in list(os.environ):
            if name.startswith(("COUNTERFOIL_", "OPENAI_", "ANTHROPIC_", "GIT_", "XDG_")):
                patch.delenv(name)
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("COUNTERFOIL_STATE_DIR", str(self.state))
        patch.setenv("COUNTERFOIL_OPERATOR_CONFIG", str(root / "operator.toml"))
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        patch.chdir(self.workspace)

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Result:
        """Run a command line in this process."""
        if stdin is not None:
            self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capture.readouterr()
        code = call(list(arguments))
        out, err = self._capture.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command line as a process of its own, without a controlling terminal."""
        return subprocess.Popen(
            [sys.executable, "-m", "counterfoil", *arguments],
            env=os.environ | {"PYTHONPATH": str(SRC)},
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            start_new_session=True,
            **options,
        )

    def script(self, *turns: dict[str, Any], name: str = "script.json") -> str:
        """A script file with these turns."""
        path = self.root / name
        path.write_text(json.dumps({"turns": turns}))
        return str(path)

    def user_config(self, text: str) -> Path:
        """Write the user's configuration file."""
        path = self.root / "home/.config/counterfoil/config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def bash(command: str, call_id: str = "call_0") -> dict[str, Any]:
    """A call of Bash in a script."""
    return {"tool": "Bash", "arguments": {"command": command, "description": "x"}, "id": call_id}


def one_line(result: Result) -> str:
    """The one line on stderr; nothing else was printed."""
    (line,) = result.err.splitlines()
    assert line.startswith("counterfoil: ")
    assert result.out == ""
    return line
