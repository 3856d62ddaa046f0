"""What a command may run or touch without naming it plainly: programs behind programs, wildcards, variables."""

from __future__ import annotations

import fnmatch
import posixpath
import re

from counterfoil.policy.names import names
from counterfoil.policy.paths import GUARDED_NAMES, Place, absolute, is_protected, is_secret
from counterfoil.policy.patterns import GAP, UNKNOWN
from counterfoil.policy.rules import Rule
from counterfoil.policy.shell_readers import READERS
from counterfoil.policy.shell_values import Simple, Word
from counterfoil.policy.shell_wrappers import base_name

MAX_TAILS = 24
MAX_BRACES = 32
_RUN_NOTHING = READERS | names(
    "git cp mv ln tee touch mkdir rm rmdir chmod chown chgrp dd truncate shred unlink kill killall pkill export unset "
    "declare local readonly typeset read set shopt return exit shift seq yes sed gsed awk gawk mawk nawk curl wget"
)
"""These run none of their words (options that make them do so are dangers, which are asked in any case)."""
_INSTALLERS = names("apt apt-get aptitude dnf yum zypper apk pacman brew pip pip3 pipx npm pnpm yarn gem conda snap uv")
_INSTALLS = names("install add remove uninstall purge reinstall update upgrade show search info list download")
_JOINTS = re.compile(r"[\s;&|()<>'\"`,=:]+")
_HOME = re.compile(r"\"?\$(?:HOME\b|\{HOME\})")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def tails(simple: Simple) -> tuple[str, ...]:
    """The commands that a program may be given to run: what stands behind any of its words, and within a text.

    Nothing for programs that run none of their words. For deny and ask rules, as "possibly".
    """
    if base_name(simple.program) in _RUN_NOTHING:
        return ()
    texts = [word.text for word in simple.words[1:]]
    found: dict[str, None] = {}
    if not _installs(simple):
        for at in range(min(len(texts), MAX_TAILS)):
            found[GAP.join([base_name(texts[at]), *texts[at + 1 :]])] = None
    for text in texts:
        pieces = [piece for piece in _JOINTS.split(text) if piece]
        if len(pieces) < 2 and pieces[:1] == [text]:
            continue
        after = texts[texts.index(text) + 1 :]
        for at in range(min(len(pieces), MAX_TAILS)):
            found[GAP.join([base_name(pieces[at]), *pieces[at + 1 :], *after])] = None
    return tuple(text for text in found if not text.startswith(UNKNOWN))


def _installs(simple: Simple) -> bool:
    """`apt-get install rm` names packages, not programs."""
    plain = [word.text for word in simple.words[1:] if not word.text.startswith("-")]
    return base_name(simple.program) in _INSTALLERS and plain[:1] != [] and plain[0] in _INSTALLS


def hidden_secret(word: Word, folders: tuple[str, ...], place: Place) -> str | None:
    """The credential store that a word may mean by a wildcard, a brace or a variable."""
    return _hidden(word, folders, place, secret=True)


def hidden_protected(word: Word, folders: tuple[str, ...], place: Place) -> str | None:
    """The protected file that a word may mean by a wildcard, a brace or a variable."""
    return _hidden(word, folders, place, secret=False)


def _hidden(word: Word, folders: tuple[str, ...], place: Place, *, secret: bool) -> str | None:
    if word.static and not word.glob and "{" not in word.raw:
        return None
    test = is_secret if secret else is_protected
    for path in _possible(word, folders or (place.workspace or "/",), place):
        if any(test(each) for each in _guesses(path)):
            return word.raw
    return None


def _possible(word: Word, folders: tuple[str, ...], place: Place) -> list[str]:
    """The word's absolute paths with what isn't known left in them, and `$HOME` as the home that it is."""
    text, tilde = word.text, word.tilde
    if _HOME.match(word.raw) and text.startswith(UNKNOWN) and text[1:2] in ("", "/"):
        text, tilde = "~" + text[1:], True
    texts = [text, *(tail for tail in re.split(r"[=@:]", text)[1:] if tail)]
    for expanded in _expand(word.raw):
        texts.append(expanded)
    return [absolute(t, f, place.home, tilde=tilde or t.startswith("~")) for t in texts for f in folders]


def home_path(word: Word, place: Place) -> str | None:
    """The absolute path of a word that begins with `$HOME`; None for any other."""
    if _HOME.match(word.raw) and word.text.startswith(UNKNOWN) and word.text[1:2] in ("", "/"):
        return absolute("~" + word.text[1:], "/", place.home, tilde=True)
    return None


def _expand(raw: str) -> list[str]:
    """What braces make of a word, as far as it goes without quotes."""
    if not _BRACES.search(raw):
        return []
    done: list[str] = []
    todo = [re.sub(r"[\"'\\]", "", raw)]
    while todo and len(done) + len(todo) <= MAX_BRACES:
        text = todo.pop()
        if found := _BRACES.search(text):
            todo += [text[: found.start()] + each + text[found.end() :] for each in found[1].split(",")]
        else:
            done.append(text)
    return done + todo


def _guesses(path: str) -> list[str]:
    """The path itself, and with each part that holds a wildcard as the protected names that it may be."""
    done = [[""]]
    for piece in path.split("/")[1:]:
        options = [piece]
        if re.search(r"[\[?*]|" + UNKNOWN, piece) and piece.strip("*" + UNKNOWN):
            pattern = piece.replace(UNKNOWN, "*")
            options += [n for n in GUARDED_NAMES if _fits(n, pattern)]
        done = [[*before, option] for before in done for option in options][:256]
    return ["/".join(each) for each in done]


def may_reach(word: Word, rule: Rule, folders: tuple[str, ...], place: Place) -> bool:
    """May a word with wildcards or unknown parts name what a path rule covers? True where it has no plain name."""
    wanted = [
        piece.casefold() for piece in rule.specifier.split("/") if piece and not re.search(r"[\[?*~.]$|[\[?*]", piece)
    ]
    if not wanted or not word.static:
        return True
    pieces = [p.casefold() for path in _possible(word, folders or ("/",), place) for p in path.split("/")]
    return any(_fits(name, piece) for name in wanted for piece in pieces)


def _fits(name: str, piece: str) -> bool:
    if name[0] == "." and piece[:1] != ".":
        return False
    return fnmatch.fnmatchcase(name, piece)


def holds_home(path: str, place: Place) -> bool:
    """Is it the person's home, or a folder above it?"""
    home = posixpath.normpath(place.home) if place.home else ""
    return bool(home) and (path == home or home.startswith(path.rstrip("/") + "/"))


__all__ = ["hidden_protected", "hidden_secret", "holds_home", "home_path", "may_reach", "tails"]
