"""A Bash call, part by part: each simple command, redirection and assignment, and what can't be reduced."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from counterfoil.policy.bash_files import climbs, command_files, file_parts, working_folders
from counterfoil.policy.paths import Place, absolute, uses
from counterfoil.policy.patterns import GAP, compile_pattern, matches, may_match
from counterfoil.policy.rules import Rule
from counterfoil.policy.ruling import Bench, Part, judge_path, part, rule_named, visible
from counterfoil.policy.shell import HARMLESS_TARGETS, analyse
from counterfoil.policy.shell_danger import danger, variable_danger
from counterfoil.policy.shell_hidden import hidden_protected, hidden_secret, tails
from counterfoil.policy.shell_values import Assignment, Flag, Redirect, Simple
from counterfoil.policy.shell_wrappers import base_name

MAX_PATHS = 512
MAX_VIEWS = 8


def judge_command(command: str, on: Bench, links: Mapping[str, str]) -> list[Part]:
    """The verdict on every part of a command line. `links`: what its paths resolve to, as `shell_paths` names them."""
    line = analyse(command)
    known = dict(links)
    folders = working_folders(line, on.place)
    parts = [_command(simple, on, folders, known) for simple in line.commands]
    parts += [_redirect(each, on, folders, known) for each in line.redirects]
    parts += [_assignment(each) for each in line.assignments] if not _unbound(on) else []
    parts += [found for flag in _each_once(line.flags) if (found := _flag(flag, on))]
    if not line.commands and not any(p.verdict != "allow" for p in parts):
        parts.append(part("command", "allow" if on.bypass else "ask", "no command that a rule could allow", command))
    return parts


def shell_paths(command: str, place: Place) -> tuple[str, ...]:
    """Every absolute path that the line may touch by name: the caller resolves them and hands them to `decide`."""
    line = analyse(command)
    folders = working_folders(line, place)
    found: dict[str, None] = {}
    for simple in line.commands:
        for path in command_files(simple, folders, place):
            found[path] = None
    for each in line.redirects:
        for path in _targets(each, folders, place):
            found[path] = None
    return tuple(found)[:MAX_PATHS]


def _unbound(on: Bench) -> bool:
    """In mode bypass, may what isn't known run? Not while a rule denies commands that it could be."""
    return on.bypass and not any(rule.kind == "command" for rule in (*on.deny, *on.ask))


def _each_once(flags: tuple[Flag, ...]) -> tuple[Flag, ...]:
    return tuple(dict.fromkeys(flags))


def _flag(flag: Flag, on: Bench) -> Part | None:
    if on.bypass and (flag.kind != "opaque" or _unbound(on)):
        return None
    return part(flag.kind, "ask", f"{flag.why} is never allowed by a rule", flag.text)


def _assignment(assignment: Assignment) -> Part:
    if why := variable_danger(assignment):
        return part("variable", "ask", why, assignment.raw)
    return part("variable", "allow", "sets a variable", assignment.raw)


# ---- simple commands


def _command(simple: Simple, on: Bench, folders: tuple[str, ...], links: dict[str, str]) -> Part:
    texts = _views(simple.text)
    if rule := _first(texts, on.deny, surely=True):
        return part("command", "deny", f"denied by rule {rule}", simple.raw, rule)
    loose = _views(simple.loose_text)
    if rule := _first(loose, on.deny, surely=False):
        return part("command", "ask", f"may be what rule {rule} denies", simple.raw, rule)
    if rule := _first(loose, on.ask, surely=False):
        return part("command", "ask", f"rule {rule} asks", simple.raw, rule)
    if rule := _behind(simple, (*on.deny, *on.ask)):
        return part("command", "ask", f"may run what rule {rule} names", simple.raw, rule)
    if found := file_parts(simple, on, folders, links):
        return found
    if (why := danger(simple)) and not _unbound(on):
        return part("command", "ask", why, simple.raw)
    if simple.through:
        return part("command", "allow", "looked through to what it runs", simple.raw)
    if on.bypass:
        return part("command", "allow", "mode bypass", simple.raw)
    if rule := _allowing(simple, on.allow):
        return part("command", "allow", f"allowed by rule {rule}", simple.raw, rule)
    return part("unruled", "ask", f"mode {on.mode} asks before Bash, and no rule allows it", simple.raw)


def _allowing(simple: Simple, rules: tuple[Rule, ...]) -> Rule | None:
    for rule in rules:
        if rule.kind == "tool" and rule.names("Bash"):
            return rule
        if rule.kind == "command" and matches(compile_pattern(rule.specifier), simple.text):
            return rule
    return None


def _first(texts: tuple[str, ...], rules: tuple[Rule, ...], *, surely: bool) -> Rule | None:
    test = matches if surely else may_match
    for rule in rules:
        if rule.kind == "command":
            pattern = _lowered(compile_pattern(rule.specifier))
            if any(test(pattern, text) for text in texts):
                return rule
    return None


def _behind(simple: Simple, rules: tuple[Rule, ...]) -> Rule | None:
    """The deny or ask rule over a command that this one may run. Rules over any program at all don't count."""
    named = tuple(rule for rule in rules if rule.kind == "command" and not rule.specifier.startswith("*"))
    if not named:
        return None
    return _first(tuple(_lowered(text) for text in tails(simple)), named, surely=False)


def _views(text: str) -> tuple[str, ...]:
    """A command as deny and ask rules see it: by its plain name too, and without options before its second word."""
    words = text.split(GAP)
    views = [_lowered(text)]
    words[0] = base_name(words[0])
    views.append(_lowered(GAP.join(words)))
    at = 1
    while at < len(words) and at <= MAX_VIEWS and words[at].startswith("-"):
        views += [_lowered(GAP.join([words[0], *words[n:]])) for n in (at + 1, at + 2) if n <= len(words)]
        at += 1 if at + 1 < len(words) and words[at + 1].startswith("-") else 2
    return tuple(dict.fromkeys(views))


def _lowered(text: str) -> str:
    """With the program's name in small letters, for file systems that know no others."""
    program, gap, rest = text.partition(GAP)
    return program.casefold() + gap + rest


# ---- files


def _targets(redirect: Redirect, folders: tuple[str, ...], place: Place) -> tuple[str, ...]:
    word = redirect.target
    if not word.static or word.text in HARMLESS_TARGETS or word.text.startswith("/dev/fd/"):
        return ()
    return tuple(dict.fromkeys(absolute(word.text, folder, place.home, tilde=word.tilde) for folder in folders))


def _redirect(redirect: Redirect, on: Bench, folders: tuple[str, ...], links: dict[str, str]) -> Part:
    """A redirection is a write to (or a read of) its target, judged as a call of Write (or Read) would be."""
    word, raw, tool = redirect.target, redirect.raw, "Write" if redirect.writes else "Read"
    if word.static and (word.text in HARMLESS_TARGETS or word.text.startswith("/dev/fd/")):
        return part("path", "allow", "harmless", raw)
    if rule := rule_named(tool, on.deny):
        return part("path", "deny", f"denied by rule {rule}", raw, rule)
    if redirect.writes and (name := hidden_protected(word, folders, on.place)):
        return part("path", "ask", f"may write a protected file ({name})", raw)
    if not redirect.writes and not on.bypass and (name := hidden_secret(word, folders, on.place)):
        return part("path", "ask", f"may read credentials ({name})", raw)
    if not word.static or word.glob or (word.tilde and not word.text.startswith("~/")) or not folders:
        unknown = "the target of a redirection isn't known before it runs"
        return part("path", "allow" if _unbound(on) else "ask", unknown, raw)
    targets = uses(_targets(redirect, folders, on.place), on.place, links, write=redirect.writes)
    found = [judge_path(tool, use, on) for use in targets]
    for verdict in ("deny", "ask"):
        if decided := next((p for p in found if p is not None and p.verdict == verdict), None):
            return msgspec.structs.replace(decided, text=visible(raw))
    if rule := rule_named(tool, on.ask):
        return part("path", "ask", f"rule {rule} asks", raw, rule)
    if not on.bypass and climbs(word.text, moved=len(folders) > 1):
        return part("path", "ask", "goes up from a folder that may be a link", raw)
    return _inside(redirect, found, on)


def _inside(redirect: Redirect, found: list[Part | None], on: Bench) -> Part:
    """Nothing speaks against a target in the workspace: is anything for it?"""
    raw = redirect.raw
    if not redirect.writes:
        return part("path", "allow", "reads a file of the workspace", raw)
    if on.mode in ("accept_edits", "bypass"):
        return part("path", "allow", f"mode {on.mode}", raw)
    sure = [p for p in found if p is not None]
    if sure and len(sure) == len(found):
        return msgspec.structs.replace(sure[0], text=visible(raw))
    whole = next((rule for rule in on.allow if rule.kind == "command" and rule.specifier == "*"), None)
    for tool in ("Bash", "Write", "Edit"):
        whole = whole or rule_named(tool, on.allow)
    if whole is not None:
        return part("path", "allow", f"allowed by rule {whole}", raw, whole)
    return part("unruled", "ask", f"a redirection writes a file, and mode {on.mode} asks before Write", raw)


__all__ = ["judge_command", "shell_paths"]
