"""The contract: written once, and what was published before still works. `contract.json` is what was published.

After a change that breaks nobody, `COUNTERFOIL_UPDATE=1 pytest tests/api/test_contract.py` writes it anew.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, json_format

from counterfoil.api.handlers import HANDLERS, STREAMS
from counterfoil.api.routes import ROUTES
from counterfoil.api.v1 import events_pb2, records_pb2, services_pb2

HERE = Path(__file__).parent
SNAPSHOT = HERE / "contract.json"
BUF = HERE.parents[1] / "tests/peers/node_modules/.bin/buf"
PROTO = HERE.parents[1] / "proto"


def published() -> dict[str, Any]:
    """What was published: descriptors of all messages and services, and the routes."""
    found: dict[str, Any] = json.loads(SNAPSHOT.read_text())
    return found


def now() -> dict[str, Any]:
    files = descriptor_pb2.FileDescriptorSet()
    for module in (records_pb2, events_pb2, services_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    for file in files.file:
        for message in file.message_type:
            _name_in_json(message)
    return json_format.MessageToDict(files)


def _name_in_json(message: descriptor_pb2.DescriptorProto) -> None:
    """Say what each field is called in JSON, as protoc does and its Python descriptors don't."""
    for field in message.field:
        first, *others = field.name.split("_")
        field.json_name = first + "".join(word.capitalize() for word in others)
    for nested in message.nested_type:
        _name_in_json(nested)


def fields(files: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """What a client depends on, by name: fields with number, type and label; values; rpcs with their messages."""
    found: dict[str, tuple[Any, ...]] = {}
    for file in files["file"]:
        for message in file.get("messageType", []):
            found.update(_of_message(message["name"], message))
        for service in file.get("service", []):
            for method in service.get("method", []):
                streams = (method.get("clientStreaming", False), method.get("serverStreaming", False))
                name = f"rpc {service['name']}.{method['name']}"
                found[name] = (method["inputType"], method["outputType"], *streams)
    return found


def _of_message(name: str, message: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield name, ("message",)
    for field in message.get("field", []):
        about = (field["number"], field["type"], field["label"], field.get("typeName"), field["jsonName"])
        yield f"{name}.{field['name']}", (*about, field.get("oneofIndex") is not None)
    for nested in message.get("nestedType", []):
        yield from _of_message(f"{name}.{nested['name']}", nested)


def broken(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What clients of `before` can't do with `after`."""
    old, new = fields(before), fields(after)
    return [f"{name}: {about} → {new.get(name)}" for name, about in old.items() if new.get(name) != about]


def test_nothing_that_was_published_is_broken() -> None:
    if os.environ.get("COUNTERFOIL_UPDATE") == "1":
        SNAPSHOT.write_text(json.dumps(now(), indent=1) + "\n")
    assert broken(published(), now()) == []
    assert now() == published(), "the contract grew: write the snapshot anew"


def _remove_field(files: dict[str, Any]) -> None:
    del files["file"][2]["messageType"][1]["field"][0]


def _renumber(files: dict[str, Any]) -> None:
    files["file"][2]["messageType"][1]["field"][0]["number"] = 99


def _rename(files: dict[str, Any]) -> None:
    files["file"][2]["messageType"][1]["field"][0] |= {"name": "x", "jsonName": "x"}


def _retype(files: dict[str, Any]) -> None:
    files["file"][2]["messageType"][1]["field"][0]["type"] = "TYPE_BYTES"


def _remove_rpc(files: dict[str, Any]) -> None:
    del files["file"][2]["service"][0]["method"][0]


def _make_stream(files: dict[str, Any]) -> None:
    files["file"][2]["service"][0]["method"][0]["serverStreaming"] = True


@pytest.mark.parametrize("change", [_remove_field, _renumber, _rename, _retype, _remove_rpc, _make_stream])
def test_what_breaks_clients_is_found(change: Any) -> None:
    changed = copy.deepcopy(now())
    change(changed)
    assert broken(now(), changed)


def test_every_rpc_is_offered_and_has_a_route() -> None:
    rpcs = {name.removeprefix("rpc ") for name in fields(now()) if name.startswith("rpc ")}
    assert rpcs == HANDLERS.keys() | STREAMS.keys() | {"Runs.Converse"}
    assert {route.rpc for route in ROUTES} == HANDLERS.keys()


def test_no_message_has_a_field_for_a_providers_pairing_id() -> None:
    for name in fields(now()):
        assert not any(
            word in name.lower() for word in ("pairing", "provider_call", "tooluse", "tool_use", "replay")
        ), name


@pytest.mark.peers
@pytest.mark.skipif(not BUF.exists() or shutil.which("node") is None, reason="buf is not installed")
def test_buf_finds_nothing(tmp_path: Path) -> None:
    def buf(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(BUF), *arguments], capture_output=True, text=True, check=False, timeout=60)

    linted = buf("lint", str(PROTO))
    assert linted.returncode == 0, linted.stdout
    image = tmp_path / "contract.json"
    image.write_text(SNAPSHOT.read_text())
    same = buf("breaking", str(PROTO), "--against", str(image))
    assert same.returncode == 0, same.stdout + same.stderr
    other = published()
    other["file"][2]["messageType"][1]["field"][0]["number"] = 99
    image.write_text(json.dumps(other))
    assert buf("breaking", str(PROTO), "--against", str(image)).returncode != 0
