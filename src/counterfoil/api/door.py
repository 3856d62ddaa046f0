"""Who is at the door: the process's own user in local mode, else the bearer of a token."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable

from counterfoil.errors import Unauthenticated, UsageError
from counterfoil.service.access import Caller
from counterfoil.service.tokens import Tokens


class Door:
    """Verifies callers. `local` is who everybody is in local mode; else a bearer token of `tokens` is needed."""

    def __init__(
        self, *, local: Caller | None = None, tokens: Tokens | None = None, now: Callable[[], int] | None = None
    ) -> None:
        self._local = local
        self._tokens = tokens
        self._now = now or (lambda: time.time_ns() // 1_000)

    @property
    def is_local(self) -> bool:
        """Whether nobody has to show anything."""
        return self._local is not None

    def caller(self, authorization: str | None) -> Caller:
        """Who sends this `Authorization`. Raises `Unauthenticated`; the error says nothing of what was wrong."""
        if self._local is not None:
            return self._local
        scheme, _, bearer = (authorization or "").partition(" ")
        found = None
        if scheme.casefold() == "bearer" and self._tokens is not None:
            found = self._tokens.verify(bearer.strip(), now=self._now())
        if found is None:
            raise Unauthenticated("a valid token is needed", hint="send Authorization: Bearer TOKEN")
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
