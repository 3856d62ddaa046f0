"""The world of a scenario, once for each way to the service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.world import DOORS, World


@pytest.fixture(params=sorted(DOORS))
async def world(request: Any, tmp_path: Path) -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack:
        yield World(tmp_path, request.param, stack)
