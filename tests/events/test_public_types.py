"""No public type has a place for what is private to a provider."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.events import codec
from counterfoil.events.base import Event, PrivateHalf
from counterfoil.identity import Offset, SessionID
from tests.support.strategies import fields_of

FORBIDDEN = ("pairing", "wire", "replay", "provider_id", "item_id", "signature", "encrypted")
PUBLIC: tuple[type[msgspec.Struct], ...] = (*codec.KINDS.values(), ev.UnknownEvent, ev.Envelope)


def structs_in(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """The struct types that a value of this type may hold, itself among them."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for argument in typing.get_args(hint):
        yield from structs_in(argument)


def leaves_of(hint: Any) -> Iterator[Any]:
    """The types that `hint` is made of."""
    yield hint
    for argument in typing.get_args(hint):
        yield from leaves_of(argument)


def name_of(struct: type) -> str:
    return struct.__name__


def reachable(roots: tuple[type[msgspec.Struct], ...]) -> set[type[msgspec.Struct]]:
    """All struct types that can stand anywhere in a value of one of `roots`."""
    found: set[type[msgspec.Struct]] = set()
    todo = list(roots)
    while todo:
        struct = todo.pop()
        if struct not in found:
            found.add(struct)
            todo += [inner for hint in fields_of(struct).values() for inner in structs_in(hint)]
    return found


REACHABLE: list[type[msgspec.Struct]] = sorted(reachable(PUBLIC), key=name_of)


def test_the_walk_sees_what_stands_inside() -> None:
    assert {ev.Ask, ev.Receipt, ev.Review, ev.Principal, ev.Usage, ev.TextPart} <= reachable(PUBLIC)
    assert ev.CallReplay in reachable((ev.CallReplay,))


@pytest.mark.parametrize("struct", REACHABLE, ids=name_of)
def test_no_public_type_can_hold_replay_data(struct: type[msgspec.Struct]) -> None:
    assert not issubclass(struct, PrivateHalf)
    for name, hint in fields_of(struct).items():
        assert not [word for word in FORBIDDEN if word in name], f"{struct.__name__}.{name}"
        kinds = [leaf for leaf in leaves_of(hint) if isinstance(leaf, type)]
        assert bytes not in kinds, f"{struct.__name__}.{name}"
        assert struct is ev.UnknownEvent or msgspec.Raw not in kinds, f"{struct.__name__}.{name}"


def test_every_kind_is_either_logged_or_transient_and_has_one_name() -> None:
    kinds = [*ev.DURABLE, *ev.TRANSIENT]
    assert len(kinds) == len(set(kinds)) == len(codec.KINDS)
    declared = {t for t in vars(ev).values() if isinstance(t, type) and issubclass(t, Event)}
    assert declared - {Event, ev.UnknownEvent} == set(kinds)


@pytest.mark.parametrize("struct", PUBLIC, ids=name_of)
def test_public_values_cannot_be_changed(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.frozen


def test_no_repr_shows_what_is_private() -> None:
    canary = "PAIRING-CANARY"
    half = ev.CallReplay(origin="o", pairing_id=canary)
    wire = ev.AssistantReplay(origin="o", wire=msgspec.Raw(canary.encode()))
    row = ev.StoredEvent(
        session_id=SessionID("s"),
        offset=Offset(1),
        run_id=None,
        seq=None,
        kind="notice",
        public=b"{}",
        private=codec.encode_private(half),
        digest=b"",
        recorded_at=0,
    )
    entry = ev.Entry(ev.RunStarted(run_id="r"), half)  # type: ignore[arg-type]
    for value in (
        half,
        wire,
        row,
        entry,
        ev.HeldResult(status="ok", executed="yes", parts=(ev.TextPart(text=canary),)),
    ):
        assert canary not in repr(value)
        assert canary not in f"{value}"
        assert canary not in repr(value.__rich_repr__())
