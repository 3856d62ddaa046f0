"""How much of a result the model gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.state.bounds import LOG_BYTES, MODEL_CHARACTERS, cut_middle, for_log, for_model
from tests.support.strategies import examples

LINE = 50
"""More than the line that says what was left out."""
TEXT = st.text(alphabet=st.sampled_from("aé🎫\u0301\u2028\n"), max_size=60)


@examples(200)
@given(TEXT, st.integers(0, 70))
def test_a_cut_text_is_bounded_and_keeps_its_head_and_tail(text: str, limit: int) -> None:
    cut = cut_middle(text, limit)
    if len(text) <= limit:
        assert cut == text
        return
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    assert len(cut) <= limit + LINE
    assert cut.startswith(text[:head] + "\n[…")
    assert cut.endswith("…]\n" + text[len(text) - tail :])
    assert f" {len(text) - limit} characters left out " in cut
    cut.encode("utf-8")


def text_in(parts: tuple[ev.Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ev.TextPart))


PART = st.builds(
    lambda text, times: ev.TextPart(text=text * times, truncated_bytes=3),
    st.text(alphabet=st.sampled_from("aé🎫"), min_size=1, max_size=5),
    st.sampled_from([0, 1, 100, 2_000, 6_000, 10_000]),
)
IMAGE = st.just(ev.ImagePart(media_type="image/png", data="aGk="))


@examples(150)
@given(st.lists(PART | IMAGE, max_size=8).map(tuple))
def test_the_model_gets_the_head_and_the_tail_of_all_parts_together(parts: tuple[ev.Part, ...]) -> None:
    kept = for_model(parts)
    whole, got = text_in(parts), text_in(kept)
    assert len(got) <= MODEL_CHARACTERS + LINE
    assert got == cut_middle(whole, MODEL_CHARACTERS)
    others = [part for part in parts if not isinstance(part, ev.TextPart)]
    assert [part for part in kept if not isinstance(part, ev.TextPart)] == others


def test_a_result_of_many_short_parts_is_bounded_too() -> None:
    kept = for_model(tuple(ev.TextPart(text="x" * 100) for _ in range(5_000)))
    assert len(text_in(kept)) <= MODEL_CHARACTERS + LINE
    assert len(kept) < 400


def test_a_result_within_the_bound_is_the_same_object() -> None:
    parts = (ev.TextPart(text="x" * MODEL_CHARACTERS),)
    assert for_model(parts) is parts


@pytest.mark.parametrize("character", ["a", "é", "€", "🎫"])
def test_the_log_keeps_so_many_bytes_and_whole_characters(character: str) -> None:
    part = ev.TextPart(text=character * (LOG_BYTES + 1))
    (kept,) = for_log((part,))
    assert isinstance(kept, ev.TextPart)
    assert set(kept.text) <= set(character) | set("\n[… 0123456789 bytes left out …]\n")
    assert len(kept.text.encode()) <= LOG_BYTES + 2 * LINE
    lines = kept.text.split("\n")
    assert len((lines[0] + lines[-1]).encode()) + kept.truncated_bytes == len(part.text.encode())
