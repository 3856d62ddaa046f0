"""Tokens of an OpenID Connect issuer: signed JWTs (RFC 7519), by the keys that the issuer publishes (RFC 7517)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, get_args
from urllib.parse import urlsplit

import httpx
import jwt

from counterfoil.errors import CounterfoilError, Unreachable, UsageError
from counterfoil.events import Principal
from counterfoil.events.base import Value
from counterfoil.service.access import Caller, Role

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by public keys alone: a token that is signed by a shared secret, or not at all, is none."""
LEEWAY = 30
"""Seconds by which the clocks of issuer and server may differ."""
FRESH, AGAIN = 3600.0, 10.0
"""Seconds after which the keys are fetched anew, and before which a token with an unknown key fetches them again."""
TIMEOUT = 5.0
MAX_TOKEN = 16_384
MAX_NAME = 200
ROLE_CLAIM, OWNER_CLAIM = "counterfoil_role", "counterfoil_owner"


class Issuer(Value, frozen=True, kw_only=True):
    """Whose tokens are taken: the issuer's URL, the audience that they are for, and the claim that names a person."""

    url: str
    audience: str
    name_claim: str = "sub"


class OidcTokens:
    """Verifies the tokens of one issuer; fetches its keys when they are needed, and again when they have changed."""

    def __init__(self, issuer: Issuer, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `UsageError` for an issuer whose keys could be changed on the way."""
        parts = urlsplit(issuer.url)
        from counterfoil.api.door import is_loopback

        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise UsageError(f"the issuer {issuer.url} is no https:// URL", hint="give --oidc-issuer https://…")
        if not issuer.audience:
            raise UsageError("tokens for any audience would be taken", hint="give --oidc-audience")
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = float("-inf")
        self._lock = asyncio.Lock()

    async def verify(self, bearer: str) -> Caller | None:
        """The caller; None for what is no valid token of it. Raises `Unreachable` where its keys can't be had."""
        if len(bearer) > MAX_TOKEN:
            return None
        try:
            header = jwt.get_unverified_header(bearer)
            if header.get("alg") not in ALGORITHMS:
                return None
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                bearer,
                key,
                algorithms=[str(header["alg"])],
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", self._issuer.name_claim]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        return self._caller(claims)

    def _caller(self, claims: dict[str, Any]) -> Caller | None:
        name, role = claims.get(self._issuer.name_claim), claims.get(ROLE_CLAIM, "owner")
        owner = claims.get(OWNER_CLAIM, "")
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            return None
        if role not in get_args(Role) or not isinstance(owner, str) or (role == "owner") == bool(owner):
            return None
        return Caller(principal=Principal(kind="user", name=name), role=role, owner=owner)

    async def _key(self, kid: object) -> jwt.PyJWK | None:
        """The key that a token names; where it names none, the only one that there is."""
        async with self._lock:
            age = self._clock() - self._fetched
            if age >= FRESH or (self._found(kid) is None and age >= AGAIN):
                self._keys = await self._fetch()
                self._fetched = self._clock()
        return self._found(kid)

    def _found(self, kid: object) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid) if isinstance(kid, str) else None

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        """The issuer's keys, by OpenID Connect Discovery 1.0."""
        url = self._issuer.url.rstrip("/")
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
                about = (await client.get(f"{url}/.well-known/openid-configuration")).raise_for_status().json()
                if about["issuer"] != self._issuer.url:
                    raise CounterfoilError(f"the issuer calls itself {about['issuer']!r}")
                place = str(about["jwks_uri"])
                if urlsplit(place).scheme != urlsplit(url).scheme:
                    raise CounterfoilError("its keys are at a URL of another scheme")
                keys = (await client.get(place)).raise_for_status().json()["keys"]
            return _usable(keys)
        except (httpx.HTTPError, httpx.InvalidURL, CounterfoilError, ValueError, KeyError, TypeError) as fault:
            why = str(fault) or type(fault).__name__
            raise Unreachable(f"the keys of {url} can't be had: {why}", hint="is the issuer up?") from fault


def _usable(keys: list[dict[str, Any]]) -> dict[str, jwt.PyJWK]:
    """The public keys for signatures, by their id. One that isn't understood is left out."""
    found: dict[str, jwt.PyJWK] = {}
    for number, key in enumerate(keys):
        if key.get("use", "sig") != "sig" or key.get("kty") == "oct":
            continue
        try:
            found[str(key.get("kid", f"#{number}"))] = jwt.PyJWK(key)
        except jwt.PyJWTError:
            continue
    return found
