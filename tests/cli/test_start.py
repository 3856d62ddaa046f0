"""Starting is cheap: what `--help` and each command import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil import __version__
from counterfoil.cli import exits
from tests.cli.support import SRC, Cli

HEAVY = (
    "rich",
    "httpx",
    "msgspec",
    "asyncio",
    "yaml",
    "genai_prices",
    "sqlite3",
    "counterfoil.engine",
    "jsonschema_rs",
)
COMMANDS = ("run", "resume", "demo", "inspect", "verify", "asks", "answer", "models", "sessions list", "config check")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom counterfoil.cli.main import call\nassert call(['--help']) == 0\nprint('LOADED', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SRC)}
    )
    loaded = done.stdout.split("LOADED")[1].split()
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_its_exit_codes(cli: Cli, command: str) -> None:
    result = cli(*command.split(), "--help")
    assert result.code == 0
    assert re.sub(r"\s+", " ", exits.HELP) in re.sub(r"\s+", " ", result.out)
    assert max(map(len, result.out.splitlines())) <= 80


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"counterfoil {__version__}\n"


def test_without_arguments_help_is_shown_and_nothing_is_done(cli: Cli) -> None:
    result = cli()
    assert result.code == 2
    assert "Commands:" in result.out
    assert not cli.state.exists()


def test_every_file_of_the_command_line_is_small() -> None:
    sizes = {p.name: len(p.read_text().splitlines()) for p in Path(SRC / "counterfoil/cli").glob("*.py")}
    assert {name: size for name, size in sizes.items() if size > 400} == {}
