"""Which line of a TOML document sets which key. Values are read by `tomllib`; this only finds places."""

from __future__ import annotations

import re

Path = tuple[str, ...]

_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:[^"\\\n]|\\.)*"|' r"'[^'\n]*'", re.DOTALL)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


def key_lines(text: str) -> dict[Path, int]:
    """The line (from 1) on which each key and table of a valid TOML document is set first.

    Keys within inline tables are found too, and the items of arrays below a key, as `(…, key, "[0]")`.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self._counted, self._line = 0, 1

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while self.at < len(self.text):
            self._skip_blank()
            char = self.text[self.at : self.at + 1]
            if char == "[":
                table = self._header()
            elif char == "#":
                self._to_line_end()
            elif char in ("\n", "\r", ""):
                self.at += 1
            elif not self._assignment(table):
                self._to_line_end()
        return self.found

    def _header(self) -> Path:
        while self.text[self.at : self.at + 1] == "[":
            self.at += 1
        path = self._key()
        self._note(path)
        self._to_line_end()
        return path

    def _assignment(self, table: Path) -> bool:
        """`key = value` at the present place. False where there is none."""
        line = self._line_now()
        path = table + self._key()
        self._skip_blank()
        if self.text[self.at : self.at + 1] != "=":
            return False
        for end in range(len(table) + 1, len(path) + 1):
            self.found.setdefault(path[:end], line)
        self.at += 1
        self._value(path)
        return True

    def _value(self, path: Path) -> None:
        """Go over one value; note the keys of inline tables in it."""
        self._skip_blank()
        opened = self.text[self.at : self.at + 1]
        if string := _STRING.match(self.text, self.at):
            self.at = string.end()
        elif opened in ("{", "["):
            self.at += 1
            self._items(path, inline_table=opened == "{")
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def _items(self, path: Path, *, inline_table: bool) -> None:
        number = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "]}":
                self.at += 1
                return
            if char == "#":
                self._to_line_end()
            elif char in ", \t\r\n":
                self.at += 1
            elif inline_table:
                if not self._assignment(path):
                    self.at += 1
            else:
                item = (*path, f"[{number}]")
                self.found.setdefault(item, self._line_now())
                number += 1
                self._value(item)

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip_blank()
            if string := _STRING.match(self.text, self.at):
                parts.append(_plain(string.group()))
            elif bare := _BARE.match(self.text, self.at):
                parts.append(bare.group())
            else:
                return tuple(parts)
            self.at = (string or bare or _BLANK.match(self.text, self.at)).end()  # type: ignore[union-attr]
            self._skip_blank()
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _note(self, path: Path) -> None:
        line = self._line_now()
        for end in range(1, len(path) + 1):
            self.found.setdefault(path[:end], line)

    def _line_now(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def _skip_blank(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1

    def _to_line_end(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end + 1


def _plain(quoted: str) -> str:
    """The text of a quoted key."""
    if quoted[0] == "'":
        return quoted[1:-1]
    return _ESCAPE.sub(lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else _ESCAPED.get(m[3], m[3]), quoted[1:-1])
