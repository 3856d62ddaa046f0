"""The link to a server elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from counterfoil import __version__
from counterfoil.client.interface import Client, Info
from counterfoil.tui.connected import Connected
from counterfoil.tui.kept import notices_of, read_kept
from counterfoil.tui.link import Defaults, Fact


class Remote(Connected):
    """The link to a server, of which is known what its API says."""

    def __init__(
        self,
        client: Client,
        url: str,
        info: Info,
        *,
        state_dir: Path,
        configured: Literal["important", "all"] = "important",
        warnings: tuple[str, ...] = (),
    ) -> None:
        """`state_dir`: where this person's settings of the client are kept, on this machine."""
        kept = read_kept(state_dir)
        defaults = Defaults(
            workspace=info.workspace,
            provider=info.provider,
            model=info.model,
            mode=info.mode,
            notices=notices_of(kept),
            configured=configured,
            theme="light" if kept.get("theme") == "light" else "dark",
            warnings=warnings,
            here=False,
        )
        super().__init__(client, defaults, place=url, state_dir=state_dir)
        self._info = info

    async def hooks(self) -> list[Fact]:
        """None: which hooks are configured is the server's own affair; what they did is in the events."""
        return []

    async def rules(self) -> list[Fact]:
        if self._session is None:
            return []
        return [
            Fact(cells=("allow", g.rule, f"learned: {g.scope}"), detail=g.ask_id or "", revocable=g.rule)
            for g in await self._client.list_grants(self._session)
        ]

    async def revoke(self, rule: str) -> None:
        await self._client.revoke_grant(self._opened, rule)

    async def checkers(self) -> list[Fact]:
        return [
            Fact(
                cells=(p.name, " ".join(p.jobs), " ".join(p.tools), p.checker, p.enforcement),
                detail=f"checks by the server: {p.checks}, outages: {p.outages}",
            )
            for p in await self._client.get_status()
        ]

    async def diagnostics(self) -> list[tuple[str, str]]:
        return [
            ("counterfoil", f"{__version__}, the server {self._info.version}"),
            ("connection", f"{self._place}: {self.connection}"),
            ("speaking as", f"{self._info.principal_name} ({self._info.role})"),
            *((name, os.environ[name]) for name in ("TERM", "COLORTERM", "NO_COLOR", "LANG") if name in os.environ),
            ("workspace of the server", self._info.workspace),
            ("settings of the client", str(self._state_dir)),
        ]
