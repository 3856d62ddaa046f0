"""Ids, derivations and digests (identity contract, sections 1 to 3)."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import identity
from counterfoil.identity import (
    RandomIds,
    SessionID,
    ToolCallID,
    arguments_digest,
    bytes_digest,
    chain_digest,
    derive,
    legacy_call_id,
    review_id,
)
from tests.support.strategies import examples, json_objects

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
CALL = ToolCallID("call_" + "0" * 26)


def number(text: str) -> int:
    """The 128 bits behind 26 characters."""
    value = 0
    for character in text:
        value = value * 32 + ALPHABET.index(character)
    return value


def bare(tool_call_id: str) -> str:
    return tool_call_id.removeprefix("call_")


def test_an_id_is_a_prefix_and_26_characters_of_the_alphabet() -> None:
    ids = RandomIds()
    made = {"ses_": ids.session(), "run_": ids.run(), "call_": ids.call(), "hook_": ids.hook(), "ask_": ids.ask()}
    for prefix, value in made.items():
        assert value.startswith(prefix)
        assert len(value) == len(prefix) + 26
        assert set(value.removeprefix(prefix)) <= set(ALPHABET)


def test_no_prefix_begins_another() -> None:
    prefixes = ["ses_", "run_", "call_", "hook_", "ask_", "rev_"]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and a.startswith(b)]
    assert bare(legacy_call_id(SessionID("ses_x"), 0, 0))[0] not in ALPHABET, "an old call's id is no new one's"


def test_the_characters_decode_to_a_uuid_of_version_7_made_now() -> None:
    before = time.time_ns() // 1_000_000
    value = number(bare(RandomIds().call()))
    after = time.time_ns() // 1_000_000
    assert value < 1 << 128
    assert (value >> 76) & 0xF == 7
    assert (value >> 62) & 0b11 == 0b10
    assert before <= value >> 80 <= after + 1


def test_ids_of_one_thread_strictly_increase_within_one_millisecond() -> None:
    ids = RandomIds()
    made = [ids.call() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_of_many_threads_are_apart_and_each_thread_sees_its_own_increase() -> None:
    made: list[list[str]] = [[] for _ in range(8)]

    def make(into: list[str]) -> None:
        ids = RandomIds()
        into.extend(ids.call() for _ in range(3_000))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(own == sorted(own) for own in made)
    assert len({value for own in made for value in own}) == 8 * 3_000


def test_a_clock_that_goes_back_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = RandomIds()
    real = time.time_ns
    made = [ids.call()]
    for back in (1, 3_600, 7):
        monkeypatch.setattr(time, "time_ns", lambda back=back: real() - back * 1_000_000_000)
        made += [ids.call() for _ in range(2_000)]
    monkeypatch.undo()
    made.append(ids.call())
    assert made == sorted(set(made))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_never_makes_an_id_of_its_parent_even_while_the_clock_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = RandomIds()
    ids.call()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # the child leaves by _exit alone: nothing of the test runs twice
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                out.write("\n".join(ids.call() for _ in range(2_000)))
        finally:
            os._exit(0)
    os.close(writer)
    own = {ids.call() for _ in range(2_000)}
    with os.fdopen(reader) as source:
        theirs = set(source.read().split())
    os.waitpid(child, 0)
    assert len(own) == len(theirs) == 2_000
    assert not own & theirs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_makes_an_id_makes_its_own() -> None:
    with identity._unique._lock:
        child = os.fork()
        if child == 0:
            try:
                made = threading.Thread(target=RandomIds().call, daemon=True)
                made.start()
                made.join(5)
                os._exit(1 if made.is_alive() else 0)
            finally:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


PARTS = st.lists(st.text(alphabet=st.sampled_from(["a", "b", "\x00", "é", "\ud83c", "\udf00", "1"]), max_size=4))


@examples(300)
@given(PARTS, PARTS)
def test_no_two_inputs_of_a_derivation_meet(one: list[str], other: list[str]) -> None:
    assert (derive("t", *one) == derive("t", *other)) == (one == other)
    assert derive("t", *one) != derive("u", *one)


@examples(100)
@given(st.text(max_size=4), st.text(max_size=4), st.binary(max_size=4), st.binary(max_size=4))
def test_no_two_digests_of_bytes_meet(tag: str, other_tag: str, data: bytes, other: bytes) -> None:
    assert (bytes_digest(tag, data) == bytes_digest(other_tag, other)) == ((tag, data) == (other_tag, other))


FIELDS = st.lists(st.binary(max_size=3), max_size=4)


@examples(100)
@given(FIELDS, FIELDS, st.binary(max_size=2), st.binary(max_size=2))
def test_no_two_rows_have_one_chain_digest(a: list[bytes], b: list[bytes], before: bytes, other: bytes) -> None:
    assert (chain_digest(before, a) == chain_digest(other, b)) == ((before, a) == (other, b))


def shuffled(value: Any) -> Any:
    """The same JSON value with the keys of each object the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@examples(100)
@given(json_objects())
def test_a_digest_of_arguments_is_independent_of_the_order_of_keys(arguments: dict[str, Any]) -> None:
    assert arguments_digest(arguments) == arguments_digest(shuffled(arguments))


def test_a_digest_of_arguments_depends_on_values_types_and_the_order_of_lists() -> None:
    different: list[dict[str, Any]] = [
        {},
        {"a": None},
        {"a": 1},
        {"a": "1"},
        {"a": True},
        {"a": [1, 2]},
        {"a": [2, 1]},
        {"a": {"b": 1}},
        {"a": {}, "b": 1},
        {"a": 2**70},
        {"a": 2**70 + 1},
    ]
    assert len({arguments_digest(arguments) for arguments in different}) == len(different)


def test_derivations_are_what_they_were_in_every_release_before() -> None:
    """Stored sessions are joined by these values: a change here breaks what people have on disk."""
    assert derive("t", "a", "b") == "6a5d31a0f84f28bacb86adf6ec88131e"
    assert review_id(CALL, "action") == "rev_6bafc6faa4fe26a307719074e58ceb14"
    assert review_id(CALL, "permission") == "rev_1a1c10ff716be622ba0e5a5aac356220"
    assert review_id(CALL, "inbound") == "rev_e943634ee5f8d79e25d50f48eb9ac720"
    assert legacy_call_id(SessionID("ses_old"), 3, 1) == "call_old_850db4db919ebad539ff8eb2f6ec3929"
    assert bytes_digest("t", b"data") == "blake2b:738a1a0a9c1eb86b1d733cd686435368"
    assert arguments_digest({"b": [1, 2.5], "a": "é"}) == "blake2b:3c10b738391995a0fedbe289305da650"
    assert chain_digest(b"", [b"a", b""]).hex() == "75de2361a39ef58823ad6b68d46fee5fb83a64f6a5f4686a1b19d5bed9b75566"
    assert chain_digest(b"x" * 32, [b"a"]).hex() == "7ee4aa86a337372d7aa1b6839080fe87002ff6f23781bc47bad2bffa31b15c5c"


def test_a_review_has_one_id_for_each_call_and_job() -> None:
    jobs = {review_id(CALL, "action"), review_id(CALL, "permission"), review_id(CALL, "inbound")}
    assert len(jobs) == 3
    assert review_id(ToolCallID("call_1"), "action") != review_id(ToolCallID("call_2"), "action")
    assert review_id(CALL, "action") == review_id(CALL, "action")


def test_an_old_call_gets_its_id_from_its_place_alone() -> None:
    session = SessionID("ses_old")
    places = {legacy_call_id(session, message, call) for message in range(12) for call in range(12)}
    assert len(places) == 144
    assert legacy_call_id(session, 1, 11) != legacy_call_id(session, 11, 1)
