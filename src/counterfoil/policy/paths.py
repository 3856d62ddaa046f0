"""Path rules and protected paths: names compared as the least strict file system would compare them."""

from __future__ import annotations

import itertools
import posixpath
import unicodedata
from functools import lru_cache
from typing import Any

from counterfoil.events.base import Value
from counterfoil.policy.names import names
from counterfoil.policy.rules import Rule
from counterfoil.ports import PathUse

_FOLDERS = names(
    ".git .counterfoil .claude .husky .ssh .gnupg .aws .azure .kube .docker .password-store keyrings .gcloud"
)
_FILES = names(
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin "
    ".zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc .xsession .xsessionrc .envrc "
    ".mcp.json .netrc _netrc .npmrc .yarnrc .yarnrc.yml .pypirc .gitconfig .gitmodules .git-credentials .hgrc "
    ".pgpass .my.cnf .boto .s3cfg .dockercfg .vimrc .gemrc .curlrc .wgetrc"
)
_PAIRS = frozenset(
    (".config", name)
    for name in ["counterfoil", "git", "gh", "gcloud", "fish", "autostart", "systemd", "environment.d", "containers"]
) | {(".cargo", "credentials"), (".cargo", "credentials.toml"), (".cargo", "config.toml"), ("etc", "profile.d")}
_SECRET_FOLDERS = names(".ssh .gnupg .aws .azure .kube .password-store keyrings .gcloud")
_SECRET_FILES = names(".netrc _netrc .git-credentials .pgpass .pypirc .my.cnf .boto .s3cfg .dockercfg")
_SECRET_PAIRS = frozenset(
    {(".config", "gh"), (".config", "gcloud"), (".docker", "config.json"), (".cargo", "credentials"),
     (".cargo", "credentials.toml")}
)  # fmt: skip

GUARDED_NAMES = tuple(sorted(_FOLDERS | _FILES | {name for pair in _PAIRS | _SECRET_PAIRS for name in pair}))
"""Every name that makes a path protected or a credential store, alone or in a pair."""


class Place(Value, frozen=True, kw_only=True):
    """Where a call is judged: the workspace's root and the person's home, both absolute, symlinks resolved."""

    workspace: str = ""
    home: str = ""


def is_protected(path: str) -> bool:
    """Is it version control, our own or a hook's configuration, a start-up file or a credential store?"""
    return _names(path, _FOLDERS, _FILES, _PAIRS)


def is_secret(path: str) -> bool:
    """Is it a credential store, which is asked about for reading too?"""
    return _names(path, _SECRET_FOLDERS, _SECRET_FILES, _SECRET_PAIRS)


def _names(path: str, folders: frozenset[str], files: frozenset[str], pairs: frozenset[tuple[str, str]]) -> bool:
    if not ("." in path or "~" in path or "keyrings" in path.lower()) and path.isascii():
        return False
    parts = [_plain_name(part) for part in path.split("/")]
    if (parts and parts[-1] in files) or any(part in folders for part in parts):
        return True
    return any(pair in pairs for pair in itertools.pairwise(parts))


def _plain_name(name: str) -> str:
    """As the least strict file system reads a name: no case, no invisible characters, no dots or blanks at its end."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(c for c in name if unicodedata.category(c) not in ("Cf", "Mn"))
    name = name.split("::$")[0].rstrip(" .").casefold()
    return ".git" if name == "git~1" else name


def uses(paths: tuple[str, ...], place: Place, links: dict[str, str], *, write: bool) -> tuple[PathUse, ...]:
    """Absolute paths as uses: with what `links` says that they resolve to."""
    found = []
    for path in paths:
        resolved = links.get(path, path)
        found.append(PathUse(given=path, resolved=resolved, write=write, inside=inside(resolved, place)))
    return tuple(found)


def inside(path: str, place: Place) -> bool:
    """Is it the workspace, or below it?"""
    return not place.workspace or path == place.workspace or path.startswith(place.workspace.rstrip("/") + "/")


def path_rule_matches(rule: Rule, path: str, place: Place, *, strict: bool = False) -> bool:
    """Does the path rule cover this absolute path? `strict` (for allow): upper and lower case differ."""
    base, pattern = _anchored(rule.specifier, place)
    under = base.rstrip("/") + "/"
    if path.rstrip("/") == base.rstrip("/"):
        return pattern in ("/", "/**", "**", "*", "/*", "**/*")
    if not (path if strict else path.casefold()).startswith(under if strict else under.casefold()):
        return False
    below = path[len(under) :]
    spec = _spec(pattern if strict else pattern.casefold())
    below = below if strict else below.casefold()
    return bool(spec.match_file(below) or spec.match_file(below + "/"))


def reaches_outside(rule: Rule) -> bool:
    """Is it a rule that names places outside the workspace in so many words?"""
    return rule.kind == "path" and rule.specifier.startswith(("~/", "//"))


def _anchored(specifier: str, place: Place) -> tuple[str, str]:
    if specifier.startswith("~/"):
        return (place.home, specifier[1:]) if place.home else ("/", "**" + specifier[1:])
    if specifier.startswith("//"):
        return "/", specifier[1:]
    if specifier.startswith("./"):
        specifier = specifier[1:]
    return place.workspace or "/", "/**" if specifier == "/" else specifier


@lru_cache(maxsize=1024)
def _spec(pattern: str) -> Any:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


def absolute(text: str, folder: str, home: str, *, tilde: bool) -> str:
    """The absolute path that `text` means in `folder`, by its letters alone."""
    if tilde and (text == "~" or text.startswith("~/")):
        text = (home or "/~") + text[1:]
    path = posixpath.normpath(posixpath.join(folder or "/", text))
    return "/" + path.lstrip("/")


__all__ = [
    "GUARDED_NAMES",
    "Place",
    "absolute",
    "inside",
    "is_protected",
    "is_secret",
    "path_rule_matches",
    "reaches_outside",
    "uses",
]
