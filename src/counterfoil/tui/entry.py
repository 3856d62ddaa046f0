"""Opens the terminal client: on a service in this process, or on a server elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.config import NO_FLAGS, Flags, Settings
from counterfoil.identity import SessionID
from counterfoil.tui.app import CounterfoilApp

if TYPE_CHECKING:
    from counterfoil.tui.link import Link


def open_client(workspace: Path, flags: Flags = NO_FLAGS, session: SessionID | None = None) -> int:
    """Run the client until the person leaves, and return the exit code. Raises `CounterfoilError`."""
    from counterfoil.tui.embedded import Embedded

    async def here() -> Link:
        return Embedded.start(workspace, os.environ, flags)

    return asyncio.run(_run(here, session))


def open_remote(url: str, settings: Settings, session: SessionID | None = None) -> int:
    """Run the client on the server at `url`. Raises `CounterfoilError` where nobody is there, or lets nobody in."""
    from counterfoil.client.connect import connect
    from counterfoil.tui.remote import Remote

    async def there() -> Link:
        client = connect(url)
        try:
            info = await client.get_info()
        except BaseException:
            await client.close()
            raise
        warnings = tuple(str(problem) for problem in settings.problems)
        return Remote(
            client, url, info, state_dir=settings.state_dir, configured=settings.ui.notices, warnings=warnings
        )

    return asyncio.run(_run(there, session))


async def _run(make: Callable[[], Awaitable[Link]], session: SessionID | None) -> int:
    app = CounterfoilApp(await make(), session=session)
    await app.run_async()
    if app.return_code == 0 and app.feed.seen.root:
        print(f"session {app.feed.seen.root}")
    return app.return_code or 0
