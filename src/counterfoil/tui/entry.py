"""Opens the terminal client on a service in this process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from counterfoil.config import NO_FLAGS, Flags
from counterfoil.identity import SessionID
from counterfoil.tui.app import CounterfoilApp
from counterfoil.tui.embedded import Embedded


def open_client(workspace: Path, flags: Flags = NO_FLAGS, session: SessionID | None = None) -> int:
    """Run the client until the person leaves, and return the exit code. Raises `CounterfoilError`."""
    return asyncio.run(_run(workspace, flags, session))


async def _run(workspace: Path, flags: Flags, session: SessionID | None) -> int:
    app = CounterfoilApp(Embedded.start(workspace, os.environ, flags), session=session)
    await app.run_async()
    if app.return_code == 0 and app.feed.seen.root:
        print(f"session {app.feed.seen.root}")
    return app.return_code or 0
