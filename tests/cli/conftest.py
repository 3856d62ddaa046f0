"""The command line as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Cli


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A command line with its own state directory, home and workspace."""
    return Cli(tmp_path, capfd, monkeypatch)
