"""Bash specifiers against the words of a simple command: surely, possibly or never."""

from __future__ import annotations

from functools import lru_cache

UNKNOWN = "\ue000"
"""Stands in a command's text for what can't be known: any characters, any number of words, or nothing."""
GAP = "\x1f"
"""Between two words. A shell word can't hold it: control characters never get this far."""
STAR = "\ue001"
"""A wildcard in a compiled pattern."""
MAX_WORK = 400_000


class PatternFault(ValueError):
    """A Bash specifier can't be read."""


@lru_cache(maxsize=2048)
def compile_pattern(specifier: str) -> str:
    r"""The specifier as text with `GAP` between words and `STAR` for wildcards.

    Quotes group as in the shell; in single quotes and after a backslash a `*` is itself. A trailing `:*` is a prefix
    that ends at a word's end, the same as ` *`.
    """
    text = specifier.strip()
    if text.endswith(":*"):
        text = text[:-2].rstrip() + " *" if text != ":*" else ""
    words = _words(text)
    if not words or words[0] == "":
        raise PatternFault("there is no command in it")
    return GAP.join(words)


def _words(text: str) -> list[str]:
    words: list[str] = []
    word: list[str] | None = None
    quote, at = "", 0
    while at < len(text):
        char = text[at]
        at += 1
        if not quote and char in " \t":
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if char == "\\" and quote != "'":
            if at >= len(text):
                raise PatternFault("a backslash at the end escapes nothing")
            word.append(text[at] if not quote or text[at] in '"\\$`*' else "\\" + text[at])
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        else:
            word.append(STAR if char == "*" and quote != "'" else char)
    if quote:
        raise PatternFault(f"the quote {quote} is not closed")
    if word is not None:
        words.append("".join(word))
    return words


def matches(pattern: str, text: str) -> bool:
    """Does the compiled pattern cover all of `text`, whatever `UNKNOWN` in it stands for?

    A final ` *` covers nothing as well: `git log *` is also `git log`.
    """
    if pattern.endswith(GAP + STAR) and text == pattern[:-2]:
        return True
    first, *rest = pattern.split(STAR)
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in rest[:-1]:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    last = rest[-1]
    if not (text.endswith(last) and len(text) - len(last) >= at):
        return bool(pattern.endswith(GAP + STAR) and STAR in pattern[:-1] and matches(pattern[:-2], text))
    return True


def may_match(pattern: str, text: str) -> bool:
    """Is there anything that `UNKNOWN` could stand for so that the pattern covers the text?"""
    if UNKNOWN not in text:
        return matches(pattern, text)
    if len(pattern) * len(text) > MAX_WORK:
        return True
    return _meet(pattern, text) or (pattern.endswith(GAP + STAR) and _meet(pattern[:-2], text))


def _meet(pattern: str, text: str) -> bool:
    """Do two texts with wildcards (`STAR` here, `UNKNOWN` there) have a text in common?"""
    row = [True] + [False] * len(text)
    for at, char in enumerate(text):
        row[at + 1] = row[at] and char == UNKNOWN
    for step in pattern:
        below = [row[0] and step == STAR]
        for at, char in enumerate(text):
            if step == STAR or char == UNKNOWN:
                below.append(row[at + 1] or below[at] or row[at])
            else:
                below.append(row[at] and step == char)
        row = below
    return row[-1]


__all__ = ["GAP", "STAR", "UNKNOWN", "PatternFault", "compile_pattern", "matches", "may_match"]
