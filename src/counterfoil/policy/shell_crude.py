"""A second look at lines that the grammar doesn't surely understand: all that may be a command, for denials alone."""

from __future__ import annotations

import re

from counterfoil.policy.names import names
from counterfoil.policy.shell_values import Simple, Word

MAX_PIECES = 500
_BEFORE = names("if then elif else while until do ! { ( function in case")
_BREAKS = frozenset("\n;&|(){}`")
_REDIRECT = re.compile(r"[0-9]*&?[<>]+[|&]?")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


def crude_commands(text: str) -> tuple[Simple, ...]:
    """The pieces between everything that could end a command, as words with their quotes taken off.

    They are more than what would run: nothing is allowed by them.
    """
    found: list[Simple] = []
    for piece in _pieces(text)[:MAX_PIECES]:
        words = piece
        while words and (words[0] in _BEFORE or _ASSIGNMENT.match(words[0]) or _REDIRECT.match(words[0])):
            words = words[2:] if _REDIRECT.fullmatch(words[0]) else words[1:]
        if words:
            raw = " ".join(words)
            found.append(Simple(words=tuple(Word(text=w, raw=w) for w in words), raw=raw, through=True, inner=True))
    return tuple(found)


def _pieces(text: str) -> list[list[str]]:
    """Words, in lists that end where a command may end. Inside double quotes a substitution still begins one."""
    pieces: list[list[str]] = [[]]
    word: list[str] | None = None
    quote, at = "", 0
    text = text.replace("\\\n", "")
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and quote != "'" and at < len(text):
            word = [*(word or []), text[at]]
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            word, quote = word or [], char
        elif char == "&" and not quote and ("".join(word or [])[-1:] in ("<", ">") or text[at : at + 1] == ">"):
            word = [*(word or []), char]
        elif quote != "'" and (char == "`" or (char in _BREAKS and (not quote or text[at - 2 : at] == "$("))):
            _end(pieces, word)
            pieces.append([])
            word, quote = None, ""
        elif not quote and char in " \t":
            _end(pieces, word)
            word = None
        else:
            word = word or []
            word.append(char)
    _end(pieces, word)
    return [piece for piece in pieces if piece]


def _end(pieces: list[list[str]], word: list[str] | None) -> None:
    if word:
        pieces[-1].append("".join(word).lstrip("$"))


__all__ = ["crude_commands"]
