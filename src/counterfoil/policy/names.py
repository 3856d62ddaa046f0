"""Sets of names, written as people read them."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


__all__ = ["names"]
