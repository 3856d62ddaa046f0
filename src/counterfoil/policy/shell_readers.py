"""Programs that only read, and which files well-known programs read or write."""

from __future__ import annotations

from counterfoil.policy.names import names
from counterfoil.policy.shell_values import Simple

READERS = names(
    "ls cat head tail wc pwd echo printf true false test [ grep egrep fgrep rg ag stat file du df which type "
    "whoami id uname date basename dirname realpath readlink nl tac cut tr uniq sort comm diff cmp od xxd hexdump "
    "strings md5sum sha1sum sha256sum sha512sum cksum sum base64 column paste fold expand rev seq find tree jq "
    "sleep printenv hostname uptime cal nproc arch tty groups locale less more man cd"
)
"""Without dangerous options, these change nothing."""
_GIT_READERS = names(
    "status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree cat-file name-rev show-ref "
    "diff-tree diff-files diff-index merge-base for-each-ref count-objects grep version whatchanged annotate"
)
ALL_FILES = names(
    "cat head tail wc nl tac od xxd hexdump strings md5sum sha1sum sha256sum sha512sum cksum base64 less more "
    "sort uniq cut diff cmp comm paste fold expand rev column"
)
"""Readers each of whose plain words is a file."""
SEARCHERS = names("rg ag ack rgrep tar zip rsync scp 7z cpio pax ar bsdtar mksquashfs")
"""These go through whole folders by themselves."""
_CLUSTERED = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), "rRd"),
    **dict.fromkeys(("cp", "diff"), "rRa"),
    **dict.fromkeys(("gzip", "gunzip", "zcat", "xz", "zstd", "bzip2"), "r"),
}
"""Programs that go through folders with one of these letters."""
_SECOND_WRITES = frozenset({"uniq", "xxd"})


def is_reader(command: Simple) -> bool:
    """Is this a program that changes nothing (its options are looked at elsewhere)?"""
    words = [word.text for word in command.words]
    if words[0] == "git":
        rest = [word for word in words[1:] if not word.startswith("-")]
        return bool(rest) and rest[0] in _GIT_READERS
    if words[0] in _SECOND_WRITES:
        return sum(1 for word in words[1:] if not word.startswith("-")) < 2
    if words[0] == "hostname":
        return len(words) == 1
    return words[0] in READERS


def goes_deep(command: Simple) -> bool:
    """Does it read whole folders, so that a file in them is read without being named?"""
    name = command.program.rsplit("/", 1)[-1]
    texts = [word.text for word in command.words[1:]]
    if name in SEARCHERS:
        return True
    if name in ("docker", "podman", "buildah", "nerdctl"):
        return "build" in texts or "bud" in texts
    if name in _CLUSTERED:
        return any(
            t.startswith(("--rec", "--arch", "--dir", "--dereference-r"))
            or (t[:1] == "-" and t[:2] != "--" and set(t) & set(_CLUSTERED[name]))
            for t in texts
        )
    return name == "git" and "grep" in texts


__all__ = ["ALL_FILES", "READERS", "goes_deep", "is_reader"]
