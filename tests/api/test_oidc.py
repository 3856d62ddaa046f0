"""Tokens of an OpenID Connect issuer: what is taken, what isn't, keys that change, an issuer that is down."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from counterfoil.api.door import Door
from counterfoil.api.oidc import AGAIN, Issuer, OidcTokens
from counterfoil.errors import TooFast, Unauthenticated, Unreachable, UsageError
from tests.support.loopback import serving

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, kid: str | None, **more: str) -> dict[str, Any]:
    kinds: dict[type[Any], type[Any]] = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
    }
    kind = next((made for of, made in kinds.items() if isinstance(key, of)), jwt.algorithms.OKPAlgorithm)
    found = kind.to_jwk(key.public_key(), as_dict=True)
    return {k: v for k, v in found.items() if k != "key_ops"} | ({"kid": kid} if kid else {}) | more


class FakeIssuer:
    """An issuer on loopback, whose keys can be changed."""

    def __init__(self) -> None:
        self.keys = [jwk(RSA, "rsa"), jwk(CURVE, "ec"), jwk(EDWARDS, "ed")]
        self.fetched = 0
        self.url = ""
        self.broken = False
        self.name = ""

    def app(self) -> Starlette:
        async def about(request: Request) -> Response:
            if self.broken:
                return Response("out of order", status_code=500)
            return JSONResponse({"issuer": self.name or self.url, "jwks_uri": f"{self.url}/keys"})

        async def keys(request: Request) -> Response:
            self.fetched += 1
            return JSONResponse({"keys": self.keys})

        return Starlette(routes=[Route("/.well-known/openid-configuration", about), Route("/keys", keys)])

    def token(self, key: Any = RSA, alg: str = "RS256", kid: str | None = "rsa", **claims: Any) -> str:
        now = time.time()
        given = {"iss": self.url, "aud": "counterfoil", "sub": "ada", "exp": now + 60, "iat": now} | claims
        given = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(given, key, algorithm=alg, headers={"kid": kid} if kid else None)


@pytest.fixture
async def issuer() -> AsyncIterator[FakeIssuer]:
    made = FakeIssuer()
    async with serving(made.app()) as made.url:
        yield made


def tokens(issuer: FakeIssuer, clock: Callable[[], float] = time.monotonic) -> OidcTokens:
    return OidcTokens(Issuer(url=issuer.url, audience="counterfoil"), clock=clock)


@pytest.mark.parametrize(
    ("key", "alg", "kid"), [(RSA, "RS256", "rsa"), (CURVE, "ES256", "ec"), (EDWARDS, "EdDSA", "ed")]
)
async def test_a_token_says_who_comes(issuer: FakeIssuer, key: Any, alg: str, kid: str) -> None:
    found = await tokens(issuer).verify(issuer.token(key, alg, kid))
    assert found is not None
    assert (found.principal.kind, found.principal.name, found.role, found.owner) == ("user", "ada", "owner", "")


async def test_roles_come_from_claims(issuer: FakeIssuer) -> None:
    checked = tokens(issuer)
    found = await checked.verify(issuer.token(counterfoil_role="approver", counterfoil_owner="eve"))
    assert found is not None and (found.role, found.owner, found.sees) == ("approver", "eve", "eve")
    for claims in (
        {"counterfoil_role": "admin"},
        {"counterfoil_role": "viewer"},
        {"counterfoil_role": "owner", "counterfoil_owner": "eve"},
        {"counterfoil_role": ["owner"]},
        {"counterfoil_owner": 7},
    ):
        assert await checked.verify(issuer.token(**claims)) is None, claims


def unsigned(issuer: FakeIssuer, alg: str) -> str:
    parts = [
        {"alg": alg, "typ": "JWT", "kid": "rsa"},
        {"iss": issuer.url, "aud": "counterfoil", "sub": "ada", "exp": 9e9},
    ]
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."


BAD: dict[str, Callable[[FakeIssuer], str]] = {
    "another key": lambda i: i.token(OTHER),
    "another kind of key": lambda i: i.token(CURVE, "ES256", "rsa"),
    "an unknown key": lambda i: i.token(kid="none"),
    "no key named, and there are several": lambda i: i.token(kid=None),
    "over": lambda i: i.token(exp=time.time() - 60),
    "not yet": lambda i: i.token(nbf=time.time() + 600),
    "no end": lambda i: i.token(exp=None),
    "another audience": lambda i: i.token(aud="other"),
    "no audience": lambda i: i.token(aud=None),
    "another issuer": lambda i: i.token(iss="https://evil.invalid"),
    "nobody": lambda i: i.token(sub=None),
    "an empty name": lambda i: i.token(sub=""),
    "a name with controls": lambda i: i.token(sub="a\nb"),
    "a very long name": lambda i: i.token(sub="x" * 201),
    "no signature": lambda i: unsigned(i, "none"),
    "no signature, another word": lambda i: unsigned(i, "NONE"),
    "a shared secret": lambda i: jwt.encode({"iss": i.url, "aud": "counterfoil", "sub": "ada"}, "x" * 64, "HS256"),
    "changed": lambda i: i.token()[:-6] + "AAAAAA",
    "half of one": lambda i: i.token().rsplit(".", 1)[0],
    "no token": lambda i: "cft_a_b",
    "huge": lambda i: i.token(more="x" * 20_000),
    "not text": lambda i: "\udcff.\udcff.\udcff",
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_valid_token(issuer: FakeIssuer, name: str) -> None:
    checked = tokens(issuer)
    assert await checked.verify(issuer.token()) is not None
    assert await checked.verify(BAD[name](issuer)) is None


async def test_the_public_key_is_no_shared_secret(issuer: FakeIssuer) -> None:
    """The classic confusion: a token that is signed with the issuer's public key as if it were a secret."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"iss": issuer.url, "aud": "counterfoil", "sub": "ada", "exp": int(time.time()) + 60}
    head, body = ({"alg": "HS256", "kid": "rsa"}, claims)
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body)]
    import hashlib
    import hmac

    signature = hmac.new(public, ".".join(parts).encode(), hashlib.sha256).digest()
    forged = ".".join([*parts, base64.urlsafe_b64encode(signature).decode().rstrip("=")])
    assert await tokens(issuer).verify(forged) is None


async def test_keys_change_and_are_not_fetched_for_every_unknown_one(issuer: FakeIssuer) -> None:
    now = 0.0
    checked = tokens(issuer, lambda: now)
    assert await checked.verify(issuer.token()) is not None
    issuer.keys = [jwk(OTHER, "new")]
    for _ in range(5):
        assert await checked.verify(issuer.token(OTHER, kid="new")) is None
    assert issuer.fetched == 1
    now = AGAIN
    assert await checked.verify(issuer.token(OTHER, kid="new")) is not None
    assert await checked.verify(issuer.token()) is None, "the old key holds no longer"
    assert issuer.fetched == 2


async def test_an_issuer_that_is_down_or_another_one_is_an_error_of_the_server(issuer: FakeIssuer) -> None:
    issuer.broken = True
    with pytest.raises(Unreachable):
        await tokens(issuer).verify(issuer.token())
    issuer.broken, issuer.name = False, "https://evil.invalid"
    with pytest.raises(Unreachable, match="calls itself"):
        await tokens(issuer).verify(issuer.token())


@pytest.mark.parametrize(("url", "audience"), [("http://example.invalid", "a"), ("ftp://x", "a"), ("https://x", "")])
def test_an_issuer_that_can_not_be_trusted_is_refused(url: str, audience: str) -> None:
    with pytest.raises(UsageError):
        OidcTokens(Issuer(url=url, audience=audience))


async def test_the_door_lets_them_in_and_slows_those_who_guess(issuer: FakeIssuer) -> None:
    now = 0.0
    door = Door(verifier=tokens(issuer), rate=2.0, clock=lambda: now)
    assert (await door.caller(f"Bearer {issuer.token()}", "1.2.3.4")).principal.name == "ada"
    for _ in range(20):
        with pytest.raises(Unauthenticated):
            await door.caller("Bearer wrong", "1.2.3.4")
    with pytest.raises(TooFast):
        await door.caller(f"Bearer {issuer.token()}", "1.2.3.4")
    assert await door.caller(f"Bearer {issuer.token()}", "5.6.7.8"), "others come in"
    now = 10.0
    assert await door.caller(f"Bearer {issuer.token()}", "1.2.3.4")
    for _ in range(7):
        await door.caller(f"Bearer {issuer.token()}", "5.6.7.8")
    with pytest.raises(TooFast):
        await door.caller(f"Bearer {issuer.token()}", "5.6.7.8")
