"""Who may: the whole table, and tokens that can't be guessed, forged, outlived or read back."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import ConfigError, UsageError
from counterfoil.events import Principal
from counterfoil.service.access import Action, Caller, Role, may, sees
from counterfoil.service.tokens import FILE, Tokens

NOW = 1_700_000_000_000_000
ACTIONS: tuple[Action, ...] = ("read", "detail", "answer", "drive")
TABLE: dict[Role, str] = {"owner": "read detail answer drive", "approver": "read answer", "viewer": "read"}


@pytest.mark.parametrize(("role", "action"), list(itertools.product(TABLE, ACTIONS)))
def test_what_each_role_may(role: Role, action: Action) -> None:
    caller = Caller(principal=Principal(kind="user", name="ada"), role=role, owner="" if role == "owner" else "bob")
    assert may(caller, action) == (action in TABLE[role].split())


@pytest.mark.parametrize(
    ("caller", "owner", "exists"),
    [
        (("user", "ada", ""), ("user", "ada"), True),
        (("user", "ada", ""), ("user", "bob"), False),
        (("user", "ada", ""), ("local", "ada"), False),
        (("user", "ada", "bob"), ("user", "bob"), True),
        (("user", "ada", "bob"), ("user", "ada"), False),
        (("local", "ada", ""), ("local", "ada"), True),
        (("local", "ada", ""), ("local", "root"), True),
        (("local", "ada", ""), ("user", "ada"), False),
        (("user", "policy", ""), ("policy", "policy"), False),
    ],
)
def test_whose_sessions_exist_for_whom(caller: tuple[str, str, str], owner: tuple[str, str], exists: bool) -> None:
    kind, name, of = caller
    who = Caller(principal=Principal(kind=kind, name=name), owner=of)  # type: ignore[arg-type]
    assert sees(who, Principal(kind=owner[0], name=owner[1])) == exists  # type: ignore[arg-type]


def test_a_token_is_known_by_its_secret_alone_and_its_secret_is_nowhere(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    token, bearer = tokens.create("ada", "owner", now=NOW)
    assert tokens.verify(bearer, now=NOW) == Caller(principal=Principal(kind="user", name="ada"))
    secret = bearer.split("_", 2)[2]
    assert secret not in (tmp_path / FILE).read_text()
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    assert Tokens(tmp_path).verify(bearer, now=NOW) is not None
    assert tokens.verify(bearer[:-1], now=NOW) is None
    assert tokens.verify(f"cft_{token.token_id}_{token.digest}", now=NOW) is None


@given(st.text(max_size=80))
def test_nothing_else_is_a_token(text: str) -> None:
    tokens = Tokens(Path("/nowhere"))
    assert tokens.verify(text, now=NOW) is None


def test_a_revoked_or_expired_token_is_refused_by_who_runs_already(tmp_path: Path) -> None:
    running, other = Tokens(tmp_path), Tokens(tmp_path)
    token, bearer = other.create("ada", "approver", owner="bob", now=NOW, expires_at=NOW + 10)
    assert running.verify(bearer, now=NOW + 9) is not None
    assert running.verify(bearer, now=NOW + 10) is None
    assert other.revoke(token.token_id) and not other.revoke(token.token_id)
    assert running.verify(bearer, now=NOW) is None


@pytest.mark.parametrize(
    ("name", "role", "owner"), [("", "owner", ""), ("a\x1b", "owner", ""), ("a", "viewer", ""), ("a", "owner", "b")]
)
def test_a_token_that_makes_no_sense_is_not_made(tmp_path: Path, name: str, role: Role, owner: str) -> None:
    with pytest.raises(UsageError):
        Tokens(tmp_path).create(name, role, owner=owner, now=NOW)


def test_a_file_that_others_can_read_or_that_is_damaged_lets_nobody_in(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    _, bearer = tokens.create("ada", "owner", now=NOW)
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(ConfigError):
        Tokens(tmp_path).verify(bearer, now=NOW)
    (tmp_path / FILE).chmod(0o600)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ConfigError):
        tokens.verify(bearer, now=NOW)


def test_tokens_made_at_once_are_all_kept(tmp_path: Path) -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: made.append(Tokens(tmp_path).create(f"u{n}", "owner", now=NOW)[1]))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Tokens(tmp_path).all()) == 12
    assert all(Tokens(tmp_path).verify(bearer, now=NOW) is not None for bearer in made)
