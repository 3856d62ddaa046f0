"""Here-documents, looked at a second time: where one ends decides what is data and what runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER = re.compile(rb"'([A-Za-z0-9_.-]+)'|\"([A-Za-z0-9_.-]+)\"|([A-Za-z0-9_.-]+)")


def heredoc_fault(node: Node, source: bytes) -> str | None:
    """What makes this here-document uncertain; None where it surely begins and ends where the grammar says."""
    parts = {child.type: child for child in node.children}
    start, end, body = parts.get("heredoc_start"), parts.get("heredoc_end"), parts.get("heredoc_body")
    if start is None or end is None or body is None:
        return "a here-document without an end"
    plain = _DELIMITER.fullmatch(source[start.start_byte : start.end_byte])
    if plain is None:
        return "a here-document whose delimiter isn't plain"
    delimiter = next(group for group in plain.groups() if group)
    lines = source[start.end_byte :].split(b"\n")
    if b"<<" in lines[0]:
        return "several here-documents in a line"
    tabs = "<<-" in parts
    at = start.end_byte + len(lines[0]) + 1
    for line in lines[1:]:
        if (line.lstrip(b"\t") if tabs else line) == delimiter:
            same = at + len(line) == end.end_byte and body.start_byte >= start.end_byte + len(lines[0])
            return None if same and _quiet(source[body.start_byte : at], plain[3], body) else _FAULT
        at += len(line) + 1
    return _FAULT


_FAULT = "a here-document that may end elsewhere or run commands"


def _quiet(text: bytes, unquoted: bytes | None, body: Node) -> bool:
    """In an unquoted here-document every substitution must be one that the grammar found."""
    if not unquoted:
        return True
    if b"\\" in text:
        return False
    known = sum(1 for child in body.children if child.type in ("command_substitution", "arithmetic_expansion"))
    return text.count(b"`") == 0 and text.count(b"$(") <= known


__all__ = ["heredoc_fault"]
