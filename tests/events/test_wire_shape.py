"""The wire shape of each kind, as clients and stored logs have it.

`wire.json` holds each kind with all of its fields set (`full`) and with the required ones (`least`), as exact
text. A change of it is a change of the format: logs on disk have the old one. `COUNTERFOIL_UPDATE=1` rewrites it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from counterfoil import events as ev
from counterfoil.events import codec
from tests.support.strategies import example_of

FILE = Path(__file__).with_name("wire.json")
HALVES = {
    half.__name__: half for half in (ev.AssistantReplay, ev.CallReplay, ev.HeldResult, ev.ReviewDetail, ev.ToolOriginal)
}


def _now() -> dict[str, dict[str, str]]:
    shapes: dict[str, dict[str, str]] = {}
    for kind, event in sorted(codec.KINDS.items()):
        pair = {"full": example_of(event), "least": example_of(event, full=False)}
        shapes[kind] = {size: codec.encode_event(value).decode() for size, value in pair.items()}
    for name, half in HALVES.items():
        pair = {"full": example_of(half), "least": example_of(half, full=False)}
        shapes[f"private {name}"] = {size: (codec.encode_private(v) or b"").decode() for size, v in pair.items()}
    return shapes


if os.environ.get("COUNTERFOIL_UPDATE") == "1":
    FILE.write_text(json.dumps(_now(), indent=1, ensure_ascii=True) + "\n")
KEPT: dict[str, dict[str, str]] = json.loads(FILE.read_text())


def test_the_snapshot_names_every_kind() -> None:
    assert sorted(KEPT) == sorted(_now())


@pytest.mark.parametrize("kind", sorted(KEPT))
def test_the_wire_shape_is_what_it_was(kind: str) -> None:
    assert _now()[kind] == KEPT[kind]


@pytest.mark.parametrize("kind", sorted(codec.KINDS))
@pytest.mark.parametrize("size", ["full", "least"])
def test_what_was_stored_is_read_and_stored_alike(kind: str, size: str) -> None:
    stored = KEPT[kind][size].encode()
    event = codec.decode_event(kind, stored)
    assert type(event) is codec.KINDS[kind]
    assert codec.encode_event(event) == stored
