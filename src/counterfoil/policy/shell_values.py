"""What a command line is made of: frozen values, each with the text that it was read from."""

from __future__ import annotations

from typing import Literal

from counterfoil.events.base import Value
from counterfoil.policy.patterns import GAP, UNKNOWN

FlagKind = Literal["substitution", "wrapper", "opaque"]
"""Why a line is asked: a substitution (its commands are known), a wrapper that is never looked through to an allow,
or something that can't be known."""


class Word(Value, frozen=True, kw_only=True):
    """One word with its quotes resolved. `UNKNOWN` stands for what is only known when it runs.

    `loose`: nothing of it is quoted, so that it may vanish or become several words. `glob`: it holds unquoted
    wildcards of file names. `tilde`: it begins with an unquoted `~`.
    """

    text: str
    raw: str = ""
    loose: bool = False
    glob: bool = False
    tilde: bool = False

    @property
    def static(self) -> bool:
        """Is all of it known?"""
        return UNKNOWN not in self.text


class Assignment(Value, frozen=True, kw_only=True):
    """`name=value`, before a command, by `env`, or alone."""

    name: str
    value: Word | None = None
    raw: str = ""


class Redirect(Value, frozen=True, kw_only=True):
    """A redirection to or from a file. Duplicated descriptors and here-documents aren't among them."""

    operator: str
    target: Word
    raw: str = ""

    @property
    def writes(self) -> bool:
        """Is the target written?"""
        return ">" in self.operator


class Simple(Value, frozen=True, kw_only=True):
    """One simple command. `through`: deny and ask rules hold for it, and it needs no allow rule of its own, because
    another command of the list is judged for it. `inner`: it stood behind a wrapper.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    raw: str = ""
    through: bool = False
    inner: bool = False

    @property
    def program(self) -> str:
        """The program's name as the shell sees it; holds `UNKNOWN` where it isn't known."""
        return self.words[0].text

    @property
    def text(self) -> str:
        """The words, `GAP` between them."""
        return GAP.join(word.text for word in self.words)

    @property
    def loose_text(self) -> str:
        """The same for "possibly": words that may vanish take the gaps around them along."""
        if not any(word.loose for word in self.words):
            return self.text
        pieces: list[str] = []
        for at, word in enumerate(self.words):
            if at and not word.loose and not self.words[at - 1].loose:
                pieces.append(GAP)
            pieces.append(word.text)
        return "".join(pieces)


class Flag(Value, frozen=True, kw_only=True):
    """Something that can't be reduced to simple commands, and where it stands."""

    kind: FlagKind
    why: str
    text: str = ""


class Line(Value, frozen=True, kw_only=True):
    """A command line, reduced: every simple command at any depth, and what can't be reduced."""

    commands: tuple[Simple, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    flags: tuple[Flag, ...] = ()


__all__ = ["Assignment", "Flag", "FlagKind", "Line", "Redirect", "Simple", "Word"]
