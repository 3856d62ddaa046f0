"""The files that a shell command names, and what path rules and protected paths say about them."""

from __future__ import annotations

import re

from counterfoil.policy.names import names
from counterfoil.policy.paths import Place, absolute, inside, is_protected, is_secret, uses
from counterfoil.policy.rules import Rule
from counterfoil.policy.ruling import Bench, Part, part, path_rule
from counterfoil.policy.shell_danger import danger
from counterfoil.policy.shell_hidden import hidden_protected, hidden_secret, holds_home, home_path, may_reach
from counterfoil.policy.shell_readers import ALL_FILES, goes_deep, is_reader
from counterfoil.policy.shell_values import Line, Simple, Word
from counterfoil.policy.shell_wrappers import base_name

MAX_FOLDERS = 16
MAX_WORDS = 200
WRITERS = names(
    "tee cp mv ln install dd touch mkdir rm rmdir shred unlink truncate chmod chown chgrp patch rsync unzip "
    "sponge mkfifo mknod split csplit rename setfacl chattr gzip gunzip bzip2 xz zstd"
)
"""Programs that write, move or remove what they name."""
_NAMES_ONLY = names("echo printf true false pwd test [ basename dirname cd which type export")
_MOVES = frozenset({"cd", "pushd", "popd", "chdir"})


def working_folders(line: Line, place: Place) -> tuple[str, ...]:
    """Every folder that a part of the line may run in; none where that can't be known."""
    folders = [place.workspace or "/"]
    for simple in line.commands:
        name = base_name(simple.program)
        if name not in _MOVES:
            continue
        words = [word for word in simple.words[1:] if word.text not in ("-P", "-L", "-e", "--")]
        target = words[0] if words else Word(text="~", tilde=True)
        if name == "popd" or len(words) > 1 or not target.static or target.glob or target.text.startswith(("-", "+")):
            return ()
        if target.tilde and target.text != "~" and not target.text.startswith("~/"):
            return ()
        new = [absolute(target.text, folder, place.home, tilde=target.tilde) for folder in folders]
        folders = list(dict.fromkeys([*folders, *new]))
        if len(folders) > MAX_FOLDERS:
            return ()
    return tuple(folders)


def command_files(simple: Simple, folders: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """Each word of the command as the absolute paths that it may mean."""
    found: dict[str, None] = {}
    for word in simple.words[1:MAX_WORDS]:
        for path in _word_paths(word, folders, place):
            found[path] = None
    return tuple(found)


def _word_paths(word: Word, folders: tuple[str, ...], place: Place) -> list[str]:
    """A word may be a path, or hold one: `--file=path`, `-fpath`, `of=path`, `@path`."""
    if not word.static or not word.text:
        return []
    texts = [] if word.text.startswith("-") else [word.text]
    texts += [tail for tail in re.split(r"[=@:]", word.text)[1:] if tail]
    if re.match(r"-[^-].", word.text):
        texts.append(word.text[2:])
    return [
        absolute(t, folder, place.home, tilde=word.tilde or t.startswith("~/")) for t in texts for folder in folders
    ]


def file_parts(simple: Simple, on: Bench, folders: tuple[str, ...], links: dict[str, str]) -> Part | None:
    """The first thing that path rules, protected paths or the workspace's bounds say against a command."""
    name = base_name(simple.program)
    writes = name in WRITERS
    if not folders and (writes or (len(simple.words) > 1 and name in _MOVES)) and not on.bypass:
        return part("path", "ask", "the folder that it runs in isn't known before it runs", simple.raw)
    hidden = [rule for rule in on.deny if rule.kind == "path" and rule.tool == "Read"]
    if hidden and name not in _NAMES_ONLY and (found := _unseen(simple, name, hidden, folders, on.place)):
        return found
    if not on.bypass and name not in _NAMES_ONLY and (found := _whole_home(simple, folders, on.place)):
        return found
    if found := _git_config(simple, name):
        return found
    if name in _MOVES and len(simple.words) == 1 and not on.bypass and not inside(on.place.home, on.place):
        return part("path", "ask", "goes outside the workspace", simple.raw)
    reader = is_reader(simple) and danger(simple) is None
    if writes and not on.bypass and (found := _unknown_target(simple)):
        return found
    for word in simple.words[1:MAX_WORDS]:
        if name not in _NAMES_ONLY and (found := _maybe(simple, word, on, folders, reader=reader)):
            return found
        paths = tuple(_word_paths(word, folders, on.place))
        if found := _reads(simple, name, word, paths, on, links):
            return found
        if not reader and (found := _writes(simple, paths, on, links, sure=writes)):
            return found
    if (not on.bypass or hidden) and name not in _NAMES_ONLY | _MOVES and (found := _lost(simple, len(folders) > 1)):
        return found
    if len(simple.words) > MAX_WORDS:
        return part("path", "ask", "more words than are checked", simple.raw)
    return None


_CLIMBS = re.compile(r"(?:^|[=/])(?!\.{1,2}/)[^/=]+/+\.\.(?:/|$)")
"""`name/..`: where `name` is a link, that isn't the folder that the letters say."""


def climbs(text: str, *, moved: bool) -> bool:
    """Whether a path goes up from a folder that may be a link: one that it names, or one that was gone to before."""
    return _CLIMBS.search(text) is not None or (moved and text.startswith(".."))


def _lost(simple: Simple, moved: bool) -> Part | None:
    """A word whose file isn't known by its letters alone."""
    for word in simple.words[1:MAX_WORDS]:
        if word.static and climbs(word.text, moved=moved):
            return part("path", "ask", "goes up from a folder that may be a link", simple.raw)
        if word.tilde and word.text.startswith(("~+", "~-")):
            return part("path", "ask", "names a folder that the shell alone knows", simple.raw)
    return None


_READ_NAMED = ALL_FILES | names("grep egrep fgrep rgrep sed awk cp mv source find")


def _unseen(simple: Simple, name: str, rules: list[Rule], folders: tuple[str, ...], place: Place) -> Part | None:
    """With rules that deny reading: what may read such a file without naming it."""
    if goes_deep(simple):
        why = f"may read what rule {rules[0]} denies: it goes through whole folders"
        return part("path", "ask", why, simple.raw)
    for word in simple.words[1:MAX_WORDS]:
        if not word.static and name not in _READ_NAMED:
            continue
        for rule in rules:
            if (word.glob or not word.static) and may_reach(word, rule, folders, place):
                return part("path", "ask", f"may read what rule {rule} denies", simple.raw)
    return None


def _whole_home(simple: Simple, folders: tuple[str, ...], place: Place) -> Part | None:
    """A program that goes through whole folders, sent through the person's home."""
    if not goes_deep(simple) or any("x" in w.text[:3] for w in simple.words[1:2] if simple.program == "tar"):
        return None
    for word in simple.words[1:MAX_WORDS]:
        named = home_path(word, place)
        for path in (named,) if named else _word_paths(word, folders, place):
            if holds_home(path, place):
                return part("path", "ask", "goes through the home folder, where credentials are", simple.raw)
    return None


def _git_config(simple: Simple, name: str) -> Part | None:
    """`git config` writes a protected file without naming it."""
    words = [word.text for word in simple.words[1:]]
    if name != "git" or "config" not in words[:6]:
        return None
    after = words[words.index("config") + 1 :]
    if after[:1] and (after[0].startswith(("--get", "--list")) or after[0] in ("-l", "get", "list")):
        return None
    if any(not w.startswith("-") and w not in (".", "config") for w in words[: words.index("config")][:1]):
        return None
    return part("path", "ask", "protected (git's configuration)", simple.raw)


def _maybe(simple: Simple, word: Word, on: Bench, folders: tuple[str, ...], *, reader: bool) -> Part | None:
    """A word that may be a credential store or, for what isn't a reader, a protected file."""
    if not on.bypass and (found := hidden_secret(word, folders, on.place)):
        return part("path", "ask", f"may be protected (credentials, {found})", simple.raw)
    if not reader and (found := hidden_protected(word, folders, on.place)):
        return part("path", "ask", f"may be protected ({found})", simple.raw)
    return None


def _unknown_target(simple: Simple) -> Part | None:
    for word in simple.words[1:]:
        if not word.static:
            return part("path", "ask", "writes what isn't known before it runs", simple.raw)
        if word.glob and any(re.match(r"\.?[\[?*]|\..*[\[?*]", piece) for piece in word.text.split("/")[:-1]):
            return part("path", "ask", "writes to folders that a wildcard names", simple.raw)
        if word.glob and re.match(r"\.", word.text.rsplit("/", 1)[-1]):
            return part("path", "ask", "writes to hidden files that a wildcard names", simple.raw)
        if word.tilde and word.text != "~" and not word.text.startswith("~/"):
            return part("path", "ask", "writes to another home folder", simple.raw)
    return None


def _reads(
    simple: Simple, name: str, word: Word, paths: tuple[str, ...], on: Bench, links: dict[str, str]
) -> Part | None:
    """A file that may not be read, named by a command: denied where the word is surely a file that is read."""
    if name in _NAMES_ONLY and name != "cd":
        return None
    for use in uses(paths, on.place, links, write=False):
        if rule := path_rule("Read", use, on.deny, on.place):
            sure = name in ALL_FILES and not word.text.startswith("-")
            verdict, why = ("deny", "denied by rule") if sure else ("ask", "may read what is denied by rule")
            return part("path", "deny" if verdict == "deny" else "ask", f"{why} {rule}", simple.raw, rule)
        if rule := path_rule("Read", use, on.ask, on.place):
            return part("path", "ask", f"rule {rule} asks", simple.raw, rule)
        if not on.bypass and (is_secret(use.given) or is_secret(use.resolved)):
            return part("path", "ask", "protected (credentials)", simple.raw)
        if name in _MOVES and not on.bypass and not inside(use.resolved, on.place):
            return part("path", "ask", "goes outside the workspace", simple.raw)
    return None


def _writes(simple: Simple, paths: tuple[str, ...], on: Bench, links: dict[str, str], *, sure: bool) -> Part | None:
    """A file that may not be written, named by a command that isn't a reader."""
    for use in uses(paths, on.place, links, write=True):
        if rule := path_rule("Write", use, on.deny, on.place):
            why = f"denied by rule {rule}" if sure else f"may write what is denied by rule {rule}"
            return part("path", "deny" if sure else "ask", why, simple.raw, rule)
        if is_protected(use.given) or is_protected(use.resolved):
            return part("path", "ask", f"protected ({use.given})", simple.raw)
        if not sure:
            continue
        if rule := path_rule("Write", use, on.ask, on.place):
            return part("path", "ask", f"rule {rule} asks", simple.raw, rule)
        if not use.inside and not on.bypass:
            return part("path", "ask", f"outside the workspace ({use.given})", simple.raw)
    return None


__all__ = ["WRITERS", "command_files", "file_parts", "working_folders"]
