"""Who is at the door: the process's own user in local mode, else the bearer of a token; and how often they may come."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Protocol

from counterfoil.api.rates import Buckets
from counterfoil.errors import TooFast, Unauthenticated, UsageError
from counterfoil.service.access import Caller
from counterfoil.service.tokens import Tokens

RATE, BURST = 100.0, 400.0
"""Requests a second that one caller may make, and how many at once after a rest."""
MISSES, MISSES_AT_ONCE = 0.2, 20.0
"""The same for attempts of one address that bring no valid token."""


class Verifier(Protocol):
    """Who bears a token: Counterfoil's own, or another issuer's."""

    async def verify(self, bearer: str) -> Caller | None:
        """The caller, or None for what is no valid token. Raises `CounterfoilError` where it can't be known."""
        ...


class OwnTokens:
    """The tokens that `counterfoil token create` made."""

    def __init__(self, tokens: Tokens, now: Callable[[], int] | None = None) -> None:
        self._tokens = tokens
        self._now = now or (lambda: time.time_ns() // 1_000)

    async def verify(self, bearer: str) -> Caller | None:
        """See `Verifier`."""
        return self._tokens.verify(bearer, now=self._now())


class Door:
    """Verifies callers. `local` is who everybody is in local mode; else a bearer token that `verifier` knows is needed.

    `rate`: requests a second of one caller, and four times as many at once; 0 for no limit. Local mode has none.
    """

    def __init__(
        self,
        *,
        local: Caller | None = None,
        verifier: Verifier | None = None,
        rate: float = RATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._local = local
        self._verifier = verifier
        self._clock = clock
        self._rates = Buckets(rate, rate * BURST / RATE)
        self._misses = Buckets(MISSES if rate else 0.0, MISSES_AT_ONCE)

    @property
    def is_local(self) -> bool:
        """Whether nobody has to show anything."""
        return self._local is not None

    async def caller(self, authorization: str | None, peer: str = "") -> Caller:
        """Who sends this `Authorization` from the address `peer`.

        Raises `Unauthenticated`, which says nothing of what was wrong; `TooFast` for a caller that comes too often, and
        for an address from which too many came without a valid token.
        """
        if self._local is not None:
            return self._local
        now = self._clock()
        if wait := self._misses.wait(peer, now):
            raise TooFast("too many attempts without a valid token", hint=f"wait {wait:.0f} s", after=wait)
        scheme, _, bearer = (authorization or "").partition(" ")
        found = None
        if scheme.casefold() == "bearer" and bearer.strip() and self._verifier is not None:
            found = await self._verifier.verify(bearer.strip())
        if found is None:
            self._misses.take(peer, now)
            raise Unauthenticated("a valid token is needed", hint="send Authorization: Bearer TOKEN")
        if wait := self._rates.take(f"{found.principal.kind}/{found.principal.name}", now):
            raise TooFast("too many requests", hint=f"wait {wait:.2f} s", after=wait)
        return found


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_safe(host: str, *, local: bool) -> None:
    """Raise `UsageError` where a server would be open to others without authentication."""
    if local and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached by others, and nobody would have to show a token",
            hint="serve with --auth tokens (and make one: `counterfoil token create`), or bind 127.0.0.1",
        )


def host_allowed(host: str | None, bound: str, *, local: bool) -> bool:
    """Whether a request's `Host` is a name that it may come by: on loopback only its own, against rebinding."""
    if not local and not is_loopback(bound):
        return True
    name = (host or "").rsplit(":", 1)[0] if not (host or "").endswith("]") else (host or "")
    return is_loopback(name)


def origin_allowed(origin: str | None, host: str | None) -> bool:
    """Whether a browser's `Origin` is this server's own; a program sends none."""
    return origin is None or origin.partition("://")[2] == (host or "")
