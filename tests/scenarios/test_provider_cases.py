"""The field cases P1–P13 end to end: recorded streams over real HTTP, through adapter, engine, store and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from counterfoil.engine import EngineSettings, RunOutcome
from counterfoil.events import CallAccepted, CallFinished, TurnRejected
from counterfoil.events.codec import encode_event
from counterfoil.identity import START
from counterfoil.providers import make_provider
from tests.support.harness import CountingTool, Rig, call, turn
from tests.support.model_server import ModelServer

STREAMS = Path(__file__).parents[1] / "providers" / "streams"
WIRES = ("openai_chat", "openai", "anthropic")
OWN = "call_"
"""What all our public ids of calls begin with."""
LONG = "x" * 200
Json = dict[str, Any]


def stream(name: str, *, cut: bool = False) -> Json:
    """The model's turn is this recorded stream."""
    return {"raw": str(STREAMS / f"{name}.sse"), "cut": cut}


class Played:
    """One conversation that has ended: what ran, what was logged, what the server was asked."""

    def __init__(self, rig: Rig, wire: str, tools: Sequence[CountingTool], server: ModelServer) -> None:
        self.rig, self.wire, self.server = rig, wire, server
        self.tools = {tool.spec.name: tool for tool in tools}
        self.outcome: RunOutcome
        self.log: list[Any] = []
        self.public = b""

    @property
    def ran(self) -> list[tuple[str, Json]]:
        return [(name, arguments) for name, tool in self.tools.items() for _, arguments in tool.runs]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.log if isinstance(event, kind)]

    def replayed(self, request: int = -1) -> list[tuple[str, str]]:
        """The provider's ids in one request: of each call, and of the result that answers it."""
        return list(zip(*_ids(self.wire, self.server.bodies[request]), strict=True))


def _ids(wire: str, body: Json) -> tuple[list[str], list[str]]:
    if wire == "openai_chat":
        called = [c["id"] for m in body["messages"] for c in m.get("tool_calls", [])]
        return called, [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
    if wire == "openai":
        items = body["input"]
        called = [i["call_id"] for i in items if i.get("type") == "function_call"]
        return called, [i["call_id"] for i in items if i.get("type") == "function_call_output"]
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b["id"] for b in blocks if b["type"] == "tool_use"], [
        b["tool_use_id"] for b in blocks if b["type"] == "tool_result"
    ]


async def play(wire: str, *turns: Json) -> Played:
    """A prompt, these turns of the model, and "Done." after them."""
    tools = [CountingTool(name, read_only=True) for name in ("Read", "Glob", "TodoRead", "ListAll")]
    async with ModelServer({"turns": list(turns), "end": "Done."}) as server:
        rig = Rig(
            {},
            *tools,
            provider=lambda meta: make_provider(wire, base_url=server.base_url, api_key="k"),
            settings=EngineSettings(provider_retries=2),
        )
        played = Played(rig, wire, tools, server)
        async with await rig.session() as session:
            played.outcome = await session.prompt("go")
    assert server.refusals == [], "each request was valid for the provider"
    played.log = await rig.log(session.id)
    played.public = b"\n".join(map(encode_event, played.log))
    rows = await rig.store.read(session.id, START, 10_000)
    assert played.public == b"\n".join(row.public for row in rows)
    accepted = [e.tool_call_id for e in played.of(CallAccepted)]
    assert [e.tool_call_id for e in played.of(CallFinished)] == accepted
    assert len(set(accepted)) == len(accepted) and all(i.startswith(OWN) for i in accepted)
    return played


def done(played: Played) -> bool:
    return (played.outcome.stop_reason, played.outcome.text) == ("end_turn", "Done.")


A, B = ("Read", {"file_path": "a.txt"}), ("Read", {"file_path": "b.txt"})
SHORT_A, SHORT_B = ("Read", {"file_path": "a"}), ("Read", {"file_path": "b"})
KEPT: list[tuple[str, str, list[tuple[str, Json]], list[str]]] = [
    ("openai_chat", "chat_p1_shared_index", [A, B], ["a1", "a2"]),
    ("openai_chat", "chat_p2_repeated_id", [A], ["call_r"]),
    ("openai_chat", "chat_p3_no_index", [A, ("Glob", {"pattern": "*.py"})], ["c1", "c2"]),
    ("openai_chat", "chat_p7_odd_ids", [A, B], [LONG, 'id "two" with\tspaces \\ and é']),
    ("openai_chat", "chat_p8_stop_with_calls", [A], ["call_1"]),
    ("openai_chat", "chat_p9_object_arguments", [("Read", {"file_path": "a.txt", "limit": 3})], ["call_1"]),
    ("openai_chat", "chat_p11_same_tool_twice", [A, B], ["call_1", "call_2"]),
    ("openai_chat", "chat_empty_arguments", [("ListAll", {})], ["c0"]),
    ("anthropic", "anthropic_p01_shared_index", [SHORT_A, SHORT_B], ["toolu_a1", "toolu_a2"]),
    ("anthropic", "anthropic_p08_end_turn_with_calls", [SHORT_A], ["toolu_1"]),
    ("anthropic", "anthropic_p09_object_input", [SHORT_A, SHORT_B], ["toolu_1", "toolu_2"]),
    ("anthropic", "anthropic_p11_same_tool_twice", [SHORT_A, SHORT_B], ["toolu_1", "toolu_2"]),
    ("anthropic", "anthropic_p12_empty_input", [("TodoRead", {})], ["toolu_1"]),
]


@pytest.mark.parametrize(("wire", "name", "ran", "ids"), KEPT, ids=[case[1] for case in KEPT])
async def test_p1_p2_p3_p7_p8_p9_p11_p12_calls_run_once_in_order_and_their_ids_go_back_as_they_came(
    wire: str, name: str, ran: list[tuple[str, Json]], ids: list[str]
) -> None:
    played = await play(wire, stream(name))
    assert done(played) and played.ran == ran
    assert [(e.tool, e.arguments) for e in played.of(CallAccepted)] == ran
    assert played.replayed() == [(i, i) for i in ids]
    assert not [i for i in ids if f'"{i}"'.encode() in played.public], "no provider's id is public"


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("openai_chat", "chat_p4_empty_id"),
        ("openai", "responses_p4_no_call_id"),
        ("anthropic", "anthropic_p04_empty_id"),
    ],
)
async def test_p4_an_id_that_is_missing_is_made_privately_and_goes_back_in_both_places(wire: str, name: str) -> None:
    played = await play(wire, stream(name))
    assert done(played) and len(played.ran) == len(played.of(CallAccepted)) >= 1
    pairs = played.replayed()
    assert len(set(pairs)) == len(played.ran), "one id for each call"
    for called, answered in pairs:
        assert called == answered != "" and called.encode() not in played.public
        assert called not in {e.tool_call_id for e in played.of(CallAccepted)}


@pytest.mark.parametrize(
    ("wire", "turns"),
    [
        ("openai_chat", ("chat_p5_turn1", "chat_p5_turn2")),
        ("anthropic", ("anthropic_p05_repeated_id", "anthropic_p05_repeated_id")),
    ],
)
async def test_p5_an_id_that_comes_again_is_another_call_and_its_own_result_goes_back(
    wire: str, turns: tuple[str, str]
) -> None:
    played = await play(wire, *map(stream, turns))
    assert done(played) and len(played.of(CallAccepted)) == 2
    assert played.replayed() == [("call_0", "call_0")] * 2
    body = played.server.requests[-1].raw
    assert body.index(b"Read run 1") < body.index(b"Read run 2")


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("openai_chat", "chat_p6_same_id_twice"),
        ("openai_chat", "chat_p6_same_id_same_index"),
        ("anthropic", "anthropic_p06_same_id_twice"),
    ],
)
async def test_p6_a_turn_with_one_id_twice_is_asked_again_once_then_the_run_fails(wire: str, name: str) -> None:
    played = await play(wire, stream(name))
    assert played.outcome.stop_reason == "malformed_turn" and played.ran == []
    assert [e.code for e in played.of(TurnRejected)] == ["duplicate_pairing"] * 2
    assert played.of(CallAccepted) == [] and b"call_0" not in played.public
    assert len(played.server.requests) == 2
    first, again = played.server.bodies
    assert first == again, "nothing of the rejected turn is sent back"


@pytest.mark.parametrize("wire", WIRES)
async def test_p7_odd_ids_go_back_as_they_came_on_each_wire(wire: str) -> None:
    odd = ["y" * 128, "toolu_-_9"] if wire == "anthropic" else ["y" * 200, 'with "quotes" \\ and   spaces é \u2028']
    played = await play(wire, turn(*(call("Read", id=i, n=n) for n, i in enumerate(odd))))
    assert done(played) and played.replayed() == [(i, i) for i in odd]


async def test_p7_ids_that_the_api_itself_would_refuse_still_go_back_as_they_came() -> None:
    """A server that gives such ids takes them; it isn't ours to mend them."""
    tool = CountingTool("Read")
    async with ModelServer({"turns": [stream("anthropic_p07_odd_ids")], "end": "Done."}, strict=False) as server:
        rig = Rig({}, tool, provider=lambda meta: make_provider("anthropic", base_url=server.base_url, api_key="k"))
        async with await rig.session() as session:
            assert (await session.prompt("go")).text == "Done."
    called, answered = _ids("anthropic", server.bodies[-1])
    assert called == answered == [LONG, 'an id with "quotes" and spaces']


@pytest.mark.parametrize(
    ("wire", "name"), [("openai_chat", "chat_p10_cut"), ("openai", "responses_cut"), ("anthropic", "anthropic_p10_cut")]
)
async def test_p10_a_turn_that_is_cut_within_a_call_is_asked_again_and_nothing_of_it_stays(
    wire: str, name: str
) -> None:
    good = turn(call("Read", id="whole", file_path="a.txt"))
    played = await play(wire, {"attempts": [stream(name, cut=True), good]})
    assert done(played) and played.ran == [A]
    assert played.rig.clock.slept and played.replayed() == [("whole", "whole")]
    first, again = played.server.bodies[:2]
    assert first == again


async def test_p10_a_stream_that_is_always_cut_ends_the_run_and_the_session_goes_on_later() -> None:
    played = await play("openai_chat", {"attempts": [stream("chat_p10_cut", cut=True)]})
    assert played.outcome.error is not None and played.outcome.error.code == "stream_cut"
    assert played.of(CallAccepted) == [] and len(played.server.requests) == 3


@pytest.mark.parametrize(
    ("wire", "name", "usage"),
    [
        ("openai_chat", "chat_p13_usage_and_comments", (120, 30, 64)),
        ("anthropic", "anthropic_p13_usage_and_comments", (35, 89, 5)),
    ],
)
async def test_p13_usage_in_the_last_chunk_counts_and_comments_break_nothing(
    wire: str, name: str, usage: tuple[int, int, int]
) -> None:
    played = await play(wire, stream(name))
    assert (played.outcome.stop_reason, played.outcome.text) == ("end_turn", "Hi")
    used = played.outcome.usage
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == usage


@pytest.mark.parametrize("wire", WIRES)
async def test_p13_comments_and_slow_bytes_between_events_break_nothing_on_any_wire(wire: str) -> None:
    slow = turn(call("Read", n=1), text="Åé — ok") | {"keep_alive": True, "slow": 0.0001, "reasoning": "Hm."}
    played = await play(wire, slow)
    assert done(played) and played.ran == [("Read", {"n": 1})]
