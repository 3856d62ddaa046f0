"""Shell words: quotes resolved to text, expansions marked as unknown, nested commands handed on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from counterfoil.policy.patterns import UNKNOWN
from counterfoil.policy.shell_values import FlagKind, Word

if TYPE_CHECKING:
    from tree_sitter import Node

QUOTED = "\x00"
"""In a mask: a character that was quoted, or isn't known."""
_BEYOND = re.compile(rb"[\x80-\xff]")
_GLOB = re.compile(r"[*?\[]")
_HIDDEN = re.compile(r"`|\$[({]|[<>]\(")
"""Where a substitution begins: never inside of what the grammar takes for plain text."""
_BREAK = re.compile(r"[\s;|&<>()]")
"""What would end an unquoted word."""
_TOKENS_INSIDE = frozenset({"${", "$((", "$(", "`", "<(", ">(", "raw_string", "$["})
_PLAIN_OPERATORS = frozenset({":-", "-", ":+", "+", "%", "%%", "#", "##"})
_ANSI = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})|(?P<c>.))",
    re.DOTALL,
)
_ANSI_PLAIN = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")

Piece = tuple[str, str]
"""Text, and its mask of the same length."""
Note = Callable[[FlagKind, str, "Node"], None]


class Source:
    """The bytes of a line, and what the grammar is given of them.

    Its scanner looks characters up in tables that hold ASCII alone, so that others reach it as letters of the same
    number of bytes: to the shell, too, they are ordinary parts of words.
    """

    def __init__(self, command: str) -> None:
        self.whole = command.encode("utf-8", "replace")
        self.plain = _BEYOND.sub(b"X", self.whole)

    def text(self, node: Node) -> str:
        """What stands at a node."""
        return self.whole[node.start_byte : node.end_byte].decode("utf-8", "replace")


class Words:
    """Reads words of `source`. `note` takes what can't be reduced; `nested` gets the nodes with commands in them."""

    def __init__(self, source: Source, note: Note, nested: list[Node]) -> None:
        self._source = source
        self._note = note
        self._nested = nested
        self._readers: dict[str, Callable[[Node], Piece]] = {
            "word": self._word,
            "number": self._number,
            "string": self._string,
            "translated_string": lambda node: self._string(node.children[-1]),
            "raw_string": lambda node: _quoted(self._source.text(node)[1:-1]),
            "ansi_c_string": self._ansi,
            "concatenation": self._joined,
            "command_name": self._joined,
            "simple_expansion": self._simple,
            "expansion": self._expansion,
            "command_substitution": self._substitution,
            "process_substitution": self._substitution,
            "arithmetic_expansion": self._arithmetic,
            "brace_expression": self._brace,
            "variable_name": self._plain,
            "test_operator": self._plain,
            "extglob_pattern": self._word,
            "regex": self._word,
        }

    def read(self, node: Node) -> Word:
        """The word at `node`."""
        text, mask = self.piece(node)
        if "{" in mask and "}" in mask and ("," in mask or ".." in mask):
            self._note("opaque", "brace expansion", node)
            text = mask = UNKNOWN
        if UNKNOWN in text and len(text) > 1 and mask != UNKNOWN and QUOTED not in mask and _all_unknown(text):
            text = mask = UNKNOWN
        return Word(
            text=text,
            raw=self._source.text(node),
            loose=text == mask == UNKNOWN,
            glob=bool(_GLOB.search(mask)),
            tilde=mask.startswith("~"),
        )

    def piece(self, node: Node) -> Piece:
        """Text and mask of one part of a word."""
        reader = self._readers.get(node.type)
        if reader is not None:
            return reader(node)
        if not node.is_named and node.child_count == 0:
            return self._plain(node)
        self._note("opaque", f"unknown syntax ({node.type})", node)
        self._nested.append(node)
        return UNKNOWN, UNKNOWN

    def _plain(self, node: Node) -> Piece:
        return _unquoted(self._source.text(node))

    def _word(self, node: Node) -> Piece:
        text, mask = self._plain(node)
        if _HIDDEN.search(mask) or "\n" in mask or (node.type == "word" and _BREAK.search(mask)):
            self._note("opaque", "text that the shell may run", node)
        return text, mask

    def _number(self, node: Node) -> Piece:
        return self._plain(node) if node.child_count == 0 else self._joined(node)

    def _joined(self, node: Node) -> Piece:
        pieces, end = [], node.start_byte
        for child in node.children:
            if child.start_byte != end:
                self._note("opaque", "a word that doesn't hang together", node)
            pieces.append(self.piece(child))
            end = child.end_byte
        return "".join(p[0] for p in pieces), "".join(p[1] for p in pieces)

    def _string(self, node: Node) -> Piece:
        """Between the quotes: what the grammar leaves out between its children is text too."""
        source, start = self._source.whole[node.start_byte : node.end_byte], node.start_byte
        parts: list[str] = []
        at = 1
        for child in node.children[1:-1]:
            if child.type == "string_content":
                continue
            parts.append(self._between(source[at : child.start_byte - start], node))
            parts.append(self.piece(child)[0] if child.is_named else self._source.text(child))
            at = child.end_byte - start
        parts.append(self._between(source[at : len(source) - 1], node))
        return _quoted("".join(parts))

    def _between(self, source: bytes, node: Node) -> str:
        text = source.decode("utf-8", "replace")
        if _HIDDEN.search(re.sub(r"\\.", "", text, flags=re.DOTALL)):
            self._note("opaque", "text that the shell may run", node)
        return re.sub(r"\\([$`\"\\\n])", _kept, text)

    def _ansi(self, node: Node) -> Piece:
        body = self._source.text(node)[2:-1]
        if re.search(r"\\(c|x\{|x(?![0-9a-fA-F])|[uU](?![0-9a-fA-F]))", body):
            self._note("opaque", "an escape that isn't known", node)
            return UNKNOWN, QUOTED
        text = _ANSI.sub(_ansi_char, body)
        if any(ord(c) < 32 or ord(c) > 126 for c in text if c not in "\t\n"):
            self._note("opaque", "an escape for a character that can't be seen", node)
            text = UNKNOWN
        return _quoted(text)

    def _simple(self, node: Node) -> Piece:
        if not _NAME.fullmatch(self._source.text(node)[1:]):
            self._note("opaque", "an expansion that isn't a variable", node)
        return UNKNOWN, UNKNOWN

    def _expansion(self, node: Node) -> Piece:
        operators = [self._source.text(c) for c in node.children if not c.is_named and c.type not in ("${", "}")]
        names = [c for c in node.children if c.type in ("variable_name", "special_variable_name")]
        plain = node.child_count > 2 and len(names) == 1 and node.children[1] == names[0]
        if not plain or len(operators) > 1 or (operators and operators[0] not in _PLAIN_OPERATORS):
            self._note("opaque", "an expansion that can do more than read a variable", node)
        self._inside(node)
        return UNKNOWN, UNKNOWN

    def _substitution(self, node: Node) -> Piece:
        kind = "process substitution" if node.type.startswith("process") else "command substitution"
        self._note("substitution", kind, node)
        self._nested.append(node)
        return UNKNOWN, UNKNOWN

    def _arithmetic(self, node: Node) -> Piece:
        if re.search(r"[A-Za-z_`$'\"\\]", self._source.text(node)[1:]):
            self._note("opaque", "arithmetic with variables, which can run commands", node)
        self._inside(node)
        return UNKNOWN, UNKNOWN

    def _brace(self, node: Node) -> Piece:
        self._note("opaque", "brace expansion", node)
        self._inside(node)
        return UNKNOWN, UNKNOWN

    def _inside(self, node: Node) -> None:
        """Hand on every command that stands inside, however deep."""
        stack = list(node.children)
        while stack:
            child = stack.pop()
            if child.type in ("command_substitution", "process_substitution"):
                self._note("substitution", "command substitution", child)
                self._nested.append(child)
            elif (
                child.child_count == 0 and child.type not in _TOKENS_INSIDE and _HIDDEN.search(self._source.text(child))
            ):
                self._note("opaque", "text that the shell may run", child)
            else:
                stack.extend(child.children)


def _all_unknown(text: str) -> bool:
    return not text.strip(UNKNOWN)


def _quoted(text: str) -> Piece:
    return text, QUOTED * max(1, len(text))


def _unquoted(raw: str) -> Piece:
    if "\\" not in raw:
        return raw, raw
    text: list[str] = []
    mask: list[str] = []
    chars = iter(raw)
    for char in chars:
        if char != "\\":
            text.append(char)
            mask.append(char)
        elif (after := next(chars, "\\")) != "\n":
            text.append(after)
            mask.append(QUOTED)
    return "".join(text), "".join(mask)


def _kept(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi_char(found: re.Match[str]) -> str:
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    for group in ("hex", "u", "U"):
        if found[group]:
            code = int(found[group], 16)
            return chr(code) if code < 0x110000 else UNKNOWN
    char = found["c"]
    return _ANSI_PLAIN.get(char, char if char in "\\'\"?" else f"\\{char}")


__all__ = ["Note", "Source", "Words"]
