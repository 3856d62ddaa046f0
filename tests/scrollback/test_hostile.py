"""Hostile text: kept exactly in the scrollback, harmless in everything that is shown of it."""

from __future__ import annotations

import io
import typing
from typing import Any, Literal

import msgspec
import pytest

from counterfoil import events as ev
from counterfoil.cli import details, transcript
from counterfoil.events.base import Envelope
from counterfoil.events.codec import envelope_of
from counterfoil.identity import SessionID
from counterfoil.scrollback import Scrollback, summaries, visible, visible_line
from counterfoil.scrollback.page import document
from counterfoil.scrollback.visibility import record_words
from counterfoil.scrollback.visible import LONGEST, shown_lines
from tests.scrollback.builders import Log, accepted, created, finished, record
from tests.support.sessions import SESSION, random_log
from tests.support.strategies import fields_of

CONTROLS = "".join(map(chr, [*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0)]))
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
UNSEEN = "\u200b\u2060\ufeff\xad\u180e\U000e0041\u2028\u2029"
SEQUENCES = "\x1b]0;owned\x07\x1b]8;;http://example.invalid\x1b\\x\x1b[2J\x1b[?1049h\x9b31m\x1bP1$r\x1b\\\x1b_x\x1b\\"
HOSTILE = f" \n\t{CONTROLS}{DIRECTIONS}{UNSEEN}{SEQUENCES}\ud83c"
RAW = set(CONTROLS + DIRECTIONS + UNSEEN + "\x1b\ud83c")


def poisoned(value: Any, hint: Any) -> Any:
    """`value` with hostile text after each free string, ids too: alike everywhere, so that what joins still does."""
    if isinstance(hint, typing.NewType):
        return poisoned(value, hint.__supertype__)
    if isinstance(value, msgspec.Struct):
        hints = fields_of(type(value))
        return type(value)(**{name: poisoned(getattr(value, name), of) for name, of in hints.items()})
    if isinstance(value, tuple):
        return tuple(poisoned(item, _item(hint)) for item in value)
    if isinstance(value, dict):
        return {poisoned(k, str): poisoned(v, type(v)) if isinstance(v, str) else v for k, v in value.items()}
    return value + HOSTILE if type(value) is str and _free(hint) else value


def _item(hint: Any) -> Any:
    return next((args[0] for h in [hint, *typing.get_args(hint)] if (args := typing.get_args(h))), str)


def _free(hint: Any) -> bool:
    if isinstance(hint, typing.NewType):
        return _free(hint.__supertype__)
    return hint is str or (typing.get_origin(hint) is not Literal and any(map(_free, typing.get_args(hint))))


def hostile_session(seed: int) -> Scrollback:
    """A whole session, everything in it hostile, its own id too."""
    seen = Scrollback(SessionID(SESSION + HOSTILE))
    for row in random_log(seed).rows:
        envelope = envelope_of(row)
        if not isinstance(envelope.event, ev.UnknownEvent):
            seen.apply(
                msgspec.structs.replace(
                    envelope, session_id=seen.root, event=poisoned(envelope.event, type(envelope.event))
                )
            )
    return seen


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_raw_comes_out_of_any_view_of_a_hostile_session(
    seed: int, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    out = Out()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", out)
    seen = hostile_session(seed)
    details.print_session(seen)
    for call in seen.calls:
        details.print_call(call)
    monkeypatch.undo()
    lines = [s.text for call in seen.calls for s in summaries(call, "all")] + [record_words(r) for r in seen.records]
    assert all("\n" not in line and "\t" not in line for line in lines)
    every = [out.getvalue(), *transcript.plain(seen), transcript.markdown(seen), document(seen), *lines]
    assert seen.calls and len(out.getvalue()) > 1000
    for text in every:
        assert not RAW & set(text), sorted(map(hex, map(ord, RAW & set(text))))


@pytest.mark.parametrize("character", sorted(RAW), ids=lambda c: f"{ord(c):04x}")
def test_each_of_them_is_shown_as_something_else(character: str) -> None:
    assert character not in visible(f"a{character}b") and visible(f"a{character}b") != "ab"
    assert character not in visible_line(f"a{character}b")
    assert visible(visible(character)) == visible(character)


def test_the_scrollback_keeps_the_exact_text() -> None:
    log, text = Log(), HOSTILE.removesuffix("\ud83c")
    log.add(created(), ev.UserPrompt(parts=ev.text_parts(text)), accepted("call_a", command=text))
    log.add(record("hook_1", message=text), finished("call_a", text=text))
    seen = Scrollback(SessionID("ses_root")).extend(log.envelopes)
    view = seen.calls[0]
    assert view.arguments == {"command": text} and view.records[0].message == text
    assert ev.text_of(view.result) == text


def test_an_over_long_line_is_cut_and_says_how_much_is_missing() -> None:
    long = "x" * 10_000
    assert shown_lines(f"a\n{long}\nb") == ["a", f"{'x' * LONGEST} … {10_000 - LONGEST} more characters", "b"]
    assert shown_lines("a\x1b[2J\nb", longest=3) == ["a␛[ … 2 more characters", "b"]
    assert all(len(line) < LONGEST + 40 for line in shown_lines("\u202e" * 10_000))


def test_an_unknown_event_is_kept_and_its_body_harmless() -> None:
    body = '{"x":"\u202e\u200b\x9b"}'.encode()
    envelope = Envelope(
        session_id=SessionID("ses_root"), event=ev.UnknownEvent(original_kind="\x1b[2J", body=msgspec.Raw(body))
    )
    seen = Scrollback(SessionID("ses_root"))
    seen.apply(envelope)
    shown = [*transcript.plain(seen), transcript.markdown(seen), document(seen)]
    assert not RAW & set("".join(shown)) and seen.entries[0].source.offset is None
