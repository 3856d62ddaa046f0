"""Regular expressions from a model: matched in linear time, so that no pattern can hang the process."""

from __future__ import annotations

from typing import Protocol

from counterfoil.errors import ToolFailure


class Span(Protocol):
    """Where something was found."""

    def start(self) -> int:
        """The first position."""
        ...

    def end(self) -> int:
        """The position after the last."""
        ...


class Pattern(Protocol):
    """A compiled expression over bytes."""

    def search(self, text: bytes, pos: int = 0) -> Span | None:
        """The first place from `pos` on that matches."""
        ...


def compiled(pattern: str, *, ignore_case: bool = False, multiline: bool = False) -> Pattern:
    """The expression, in RE2's syntax. With `multiline` a dot matches line ends too. Raises `ToolFailure`."""
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError as fault:
        raise ToolFailure("google-re2 is not installed", executed="no", hint="install it, or ripgrep") from fault

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.dot_nl = multiline
    options.max_mem = 32 << 20
    try:
        found: Pattern = re2.compile(f"(?m){pattern}".encode(), options)
    except re2.error as fault:
        reason = fault.args[0].decode("utf-8", "replace") if isinstance(fault.args[0], bytes) else str(fault)
        raise ToolFailure(
            f"the regular expression is not valid: {reason}", executed="no", hint="no look-around, no back-references"
        ) from fault
    return found


__all__ = ["Pattern", "Span", "compiled"]
