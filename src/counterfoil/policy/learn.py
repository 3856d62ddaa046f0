"""The narrowest rule that "always allow" may learn from a call: shown before it is learned, never over a deny."""

from __future__ import annotations

import posixpath
import re

from counterfoil.policy.paths import Place, inside, is_protected
from counterfoil.policy.permissions import PRESENT_PLAN, CallFacts, Rules, decide
from counterfoil.policy.rules import RuleError, parse_rule
from counterfoil.policy.shell import analyse, surely_read_only
from counterfoil.policy.shell_danger import danger

MAX_RULE = 300
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:@%+,=^~-]+")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_HAVE_SUBCOMMANDS = frozenset({"git"})


def narrowest_rule(call: CallFacts, *, rules: Rules = Rules(), place: Place = Place()) -> str | None:  # noqa: B008
    """The rule to show and, once a person said yes, to learn; None where nothing narrow enough covers this call.

    It is tried before it is given: with it the same call must be allowed under the same rules.
    """
    for found in _candidates(call, place):
        if found is None or len(found) > MAX_RULE:
            continue
        try:
            parse_rule(found)
        except RuleError:
            continue
        if decide(call, rules, "default", place=place, grants=(found,)).verdict == "allow":
            return found
    return None


def edited_rule(rule: str, shown: str) -> str:
    """The rule that a person wrote in place of the one that was shown. Raises `RuleError`.

    It may be wider, as a rule in a file may be: but over the same tool, so that it isn't taken for another question's.
    """
    text = rule.strip()
    if len(text) > MAX_RULE:
        raise RuleError(text[:40], f"longer than {MAX_RULE} characters", hint="write it into the configuration")
    if parse_rule(text).tool != parse_rule(shown).tool:
        raise RuleError(text, f"over another tool than {shown!r}", hint="change what stands in the parentheses")
    return text


def _candidates(call: CallFacts, place: Place) -> list[str | None]:
    targets = call.targets
    if targets.command is not None:
        return [_bash(targets.command)] if call.tool == "Bash" else []
    if targets.domain is not None:
        return [f"{call.tool}(domain:{targets.domain})"] if call.tool == "WebFetch" else []
    if call.tool in ("Write", "Edit") and len(targets.paths) == 1:
        return _edits(call, place)
    if call.tool == PRESENT_PLAN or targets.paths or "(" in call.tool or "*" in call.tool:
        return []
    return [call.tool]


def _bash(command: str) -> str | None:
    """The exact command; for one that surely only reads and has subcommands, all of that subcommand."""
    line = analyse(command)
    if len(line.commands) != 1 or line.flags or line.redirects or line.assignments:
        return None
    simple = line.commands[0]
    words = simple.words
    if simple.through or danger(simple) or any(not word.static or word.glob or word.tilde for word in words):
        return None
    second = words[1].text if len(words) > 1 else ""
    if words[0].text in _HAVE_SUBCOMMANDS and _SUBCOMMAND.fullmatch(second) and surely_read_only(command):
        return f"Bash({words[0].text} {second} *)"
    texts = [word.text for word in words]
    if any("'" in text and not _PLAIN_WORD.fullmatch(text) for text in texts) or texts[-1].endswith(":*"):
        return None
    quoted = " ".join(text if _PLAIN_WORD.fullmatch(text) else f"'{text}'" for text in texts)
    return f"Bash({quoted})"


def _edits(call: CallFacts, place: Place) -> list[str | None]:
    """The folder of the file, where it lies below the workspace's root; else the file alone."""
    use = call.targets.paths[0]
    if not place.workspace or not inside(use.given, place) or is_protected(use.given):
        return []
    below = posixpath.relpath(use.given, place.workspace)
    folder = posixpath.dirname(below)
    if not re.fullmatch(r"[\w./@+-]+", below) or below.startswith(".."):
        return []
    return [f"Edit(/{folder}/**)" if folder else f"Edit(/{below})"]


__all__ = ["edited_rule", "narrowest_rule"]
