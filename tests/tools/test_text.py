from __future__ import annotations

import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.tools.text import bound, clean, head_of, tail_of, whole_characters


def test_s3_separators_nul_surrogates_ansi_and_invalid_utf8_become_safe_text() -> None:
    assert clean("a\u2028b\u2029c\u0085d") == "a\u2028b\u2029c\u0085d"
    assert clean("a\0b") == "a␀b"
    assert clean("x\ud83cy") == "x\ufffdy"
    assert clean("\ud83d\ude00") == "😀"
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07done \x1bPq#0;2\x1b\\!") == "red done !"
    assert clean(b"ok \xff\xfe end") == "ok \ufffd\ufffd end"
    assert clean("\x9b31mred \x9d0;t\x9cend") == "red end"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("progress\r", "progress"),
        ("a\r\r\nb", "a\nb"),
        ("bo\bol\bld", "bold"),
        ("bell\a tab\t", "bell␇ tab\t"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended\nnext", "␛]0;never ended\nnext"),
        ("\x1b\x1b[0m[31mtrick", "␛[31mtrick"),
        ("\x1b(B\x1b[?25l\x1b[38;2;1;2;3mx\x1b[K", "x"),
    ],
)
def test_what_a_terminal_would_do_is_written_down(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@given(st.one_of(st.binary(), st.text(st.characters(exclude_categories=()))))
def test_clean_text_is_valid_and_has_no_control_characters(data: bytes | str) -> None:
    text = clean(data)
    text.encode()
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t\u0085"]
    assert clean(text) == text


@given(st.text(), st.integers(0, 300))
def test_bounded_text_is_within_the_limit_and_counts_what_is_left_out(text: str, limit: int) -> None:
    text = clean(text)
    kept = bound(text, max(limit, 120))
    assert len(kept.text.encode()) <= max(limit, 120)
    if kept.omitted:
        head, rest = kept.text.split("\n[… ", 1)
        tail = rest.split(" …]\n", 1)[1]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len((head + tail).encode()) + kept.omitted == len(text.encode())
    else:
        assert kept.text == text


@given(st.text(), st.integers(0, 60))
def test_cuts_fall_between_characters(text: str, limit: int) -> None:
    data = clean(text).encode()
    assert clean(text).startswith(head_of(data, limit).decode())
    assert clean(text).endswith(tail_of(data, limit).decode())
    assert len(head_of(data, limit)) <= limit
    assert len(tail_of(data, limit)) <= limit


@given(st.text(), st.integers(0, 3))
def test_an_incomplete_character_is_found(text: str, cut: int) -> None:
    data = clean(text).encode()[: -cut or None]
    data[: whole_characters(data)].decode()


def test_a_combining_mark_stays_with_its_letter() -> None:
    data = ("e\u0301" * 10).encode()
    assert head_of(data, 4) == "e\u0301".encode()
    assert tail_of(data, 5) == "e\u0301".encode()


def test_the_whole_goes_to_a_file_that_the_text_names(tmp_path: Path) -> None:
    spill = tmp_path / "deep" / "whole.txt"
    kept = bound("ä" * 10_000, 1000, spill)
    assert str(spill) in kept.text
    assert spill.read_text() == "ä" * 10_000


@pytest.mark.parametrize("piece", ["\x90", "\x9d", "\x1b]", "\x1b[", "\x1bP", "\r", "a\b", "\x1b[1;", "\x1b("])
def test_cleaning_takes_linear_time(piece: str) -> None:
    began = time.monotonic()
    clean(piece * 200_000)
    assert time.monotonic() - began < 3
