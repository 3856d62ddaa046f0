"""Bearer tokens: made once, shown once, and kept as digests in one file of the state directory."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from counterfoil.errors import ConfigError, UsageError
from counterfoil.events import Principal
from counterfoil.service.access import Caller, Role
from counterfoil.small_files import locked, read_small, swap_in

FILE = "tokens.json"
MAX_BYTES = 4_000_000
MAX_NAME = 200
_PREFIX = "cft"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One token without its secret. `digest` is SHA-256 of the secret: 256 random bits need no slow hash.

    `owner`: whose sessions a token of role approver or viewer sees. Times are µs since the epoch, UTC; 0: no end.
    """

    token_id: str
    digest: str
    name: str
    role: Role
    owner: str = ""
    created_at: int = 0
    expires_at: int = 0


class _File(msgspec.Struct, frozen=True, kw_only=True):
    format: int = 1
    tokens: list[Token] = []


class Tokens:
    """The tokens below one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / FILE
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, Token] = {}

    def create(self, name: str, role: Role, *, owner: str = "", now: int, expires_at: int = 0) -> tuple[Token, str]:
        """Make a token; the second value is what its bearer sends, and is nowhere else. Raises `UsageError`."""
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise UsageError("the name of a token is 1 to 200 printable characters", hint="name who will use it")
        if role != "owner" and not owner:
            raise UsageError(f"a token of role {role} needs the owner whose sessions it sees", hint="give --owner NAME")
        if role == "owner" and owner:
            raise UsageError("a token of role owner sees its own sessions", hint="leave --owner out")
        token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        token = Token(
            token_id=token_id,
            digest=_digest(secret),
            name=name,
            role=role,
            owner=owner,
            created_at=now,
            expires_at=expires_at,
        )
        with self._changing() as tokens:
            tokens.append(token)
        return token, f"{_PREFIX}_{token_id}_{secret}"

    def all(self) -> list[Token]:
        """Every token, oldest first. Raises `ConfigError`."""
        return list(self._current().values())

    def revoke(self, token_id: str) -> bool:
        """Forget a token: it is refused from now on. False where it wasn't there."""
        with self._changing() as tokens:
            kept = [token for token in tokens if token.token_id != token_id]
            found = len(kept) < len(tokens)
            tokens[:] = kept
        return found

    def verify(self, bearer: str, *, now: int) -> Caller | None:
        """Who bears this token; None where it is none, is revoked, or is over. Raises `ConfigError`."""
        prefix, _, rest = bearer.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._current().get(token_id) if prefix == _PREFIX else None
        given = _digest(secret)
        if token is None or not hmac.compare_digest(given, token.digest):
            return None
        if token.expires_at and now >= token.expires_at:
            return None
        return Caller(principal=Principal(kind="user", name=token.name), role=token.role, owner=token.owner)

    def _current(self) -> dict[str, Token]:
        """The tokens, read again only when the file has changed."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return {}
        seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        if seen != self._seen:
            self._known = {token.token_id: token for token in self._read(status).tokens}
            self._seen = seen
        return self._known

    def _read(self, status: os.stat_result) -> _File:
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{self._file}: others can read or write it", hint="`chmod 600` it, or make new tokens")
        try:
            return msgspec.json.decode(read_small(self._file, MAX_BYTES), type=_File)
        except (msgspec.DecodeError, OSError) as fault:
            raise ConfigError(
                f"{self._file}: tokens can't be read: {fault}", hint="mend it, or make new ones"
            ) from fault

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The list to change; written whole and swapped in at the end, under a lock that other processes respect."""
        with locked(self._file):
            tokens = list(self._current().values())
            yield tokens
            swap_in(self._file, msgspec.json.encode(_File(tokens=tokens)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
