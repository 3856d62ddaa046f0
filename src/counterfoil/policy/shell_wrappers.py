"""Commands that run other commands: looked through to what they run, or said to be opaque."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable

from counterfoil.events.base import Value
from counterfoil.policy.names import names
from counterfoil.policy.patterns import UNKNOWN
from counterfoil.policy.shell_values import Assignment, Flag, FlagKind, Simple, Word


class Unwrapped(Value, frozen=True, kw_only=True):
    """What a wrapper runs: commands, and texts that a shell parses again. `through`: nothing but that is decided."""

    inner: tuple[Simple, ...] = ()
    lines: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    through: bool = False


class _Options(Value, frozen=True, kw_only=True):
    """How a wrapper's own words are read: letters without and with a value, long options, words to skip."""

    plain: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    skip: int = 0
    why: str = ""
    assigns: bool = False


_O = _Options
_WRAPPERS: dict[str, _Options] = {
    "env": _O(
        plain="i0v", valued="uC", long=("--ignore-environment", "--null"), long_valued=("--unset",), assigns=True
    ),
    "command": _O(plain="p"),
    "builtin": _O(),
    "exec": _O(plain="cl", valued="a"),
    "nohup": _O(),
    "nice": _O(valued="n", long_valued=("--adjustment",)),
    "ionice": _O(plain="t", valued="cn", long_valued=("--class", "--classdata")),
    "timeout": _O(
        plain="v",
        valued="sk",
        long=("--preserve-status", "--foreground", "--verbose"),
        long_valued=("--signal", "--kill-after"),
        skip=1,
    ),
    "time": _O(plain="p", assigns=True),
    "stdbuf": _O(valued="ioe", long_valued=("--input", "--output", "--error")),
    "setsid": _O(plain="cfw", long=("--ctty", "--fork", "--wait")),
    "chrt": _O(plain="bfior", skip=1, why="changes how it is scheduled"),
    "taskset": _O(plain="c", skip=1),
    "sudo": _O(
        plain="AbEHnPSkK",
        valued="ugCphrtDRT",
        long=("--preserve-env", "--non-interactive"),
        long_valued=("--user", "--group", "--chdir"),
        why="runs with other rights",
        assigns=True,
    ),
    "doas": _O(plain="nL", valued="uC", why="runs with other rights"),
    "pkexec": _O(long_valued=("--user",), why="runs with other rights"),
    "watch": _O(
        plain="bcdegptwx",
        valued="nq",
        long=("--color", "--no-title", "--exec", "--beep", "--errexit"),
        long_valued=("--interval",),
        why="runs it again and again",
    ),
    "strace": _O(plain="fFqvtTcCyi", valued="oeEpsu", why="traces it"),
    "ltrace": _O(plain="fitrTcC", valued="oeplnsu", why="traces it"),
    "chroot": _O(skip=1, long_valued=("--userspec", "--groups"), why="runs elsewhere"),
    "flock": _O(plain="sxunoF", valued="wE", skip=1, why="runs it under a lock"),
    "busybox": _O(why="runs a program of its own"),
    "toybox": _O(why="runs a program of its own"),
    "coproc": _O(assigns=True, why="runs beside the line"),
    "caffeinate": _O(plain="dimsu", valued="tw"),
    "fakeroot": _O(why="runs with other rights"),
    "unshare": _O(plain="mnpruiUfC", long=("--mount", "--net", "--pid", "--fork", "--user"), why="runs elsewhere"),
}
_XARGS = _O(
    plain="0rtxpo",
    valued="InPLdEsaJR",
    long=("--null", "--no-run-if-empty", "--verbose", "--exit", "--interactive"),
    long_valued=("--replace", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--max-chars"),
)
_SHELLS = names("sh bash dash ash ksh mksh zsh fish rbash csh tcsh")
_PLAIN_SHELLS = frozenset({"sh", "bash", "dash"})
_OPAQUE = {
    **dict.fromkeys(("eval", "source", ".", "trap"), "runs text as commands"),
    **dict.fromkeys(("alias", "unalias", "enable", "bind", "complete", "hash"), "changes what names mean"),
    **dict.fromkeys(("ssh", "mosh", "rsh", "docker-compose"), "runs commands elsewhere"),
    **dict.fromkeys(("su", "runuser", "script", "expect", "gdb", "lldb", "valgrind", "at", "batch"), "runs commands"),
    **dict.fromkeys(
        ("nsenter", "systemd-run", "crontab", "entr", "screen", "tmux", "proot", "dbus-run-session"), "runs commands"
    ),
    "parallel": "runs commands that it puts together",
    "let": "arithmetic with variables, which can run commands",
    "fc": "runs commands again",
}
_TWO_WORDS = {
    **{
        (p, s): "runs commands in a container"
        for p in ("docker", "podman", "nerdctl")
        for s in ("exec", "run", "compose")
    },
    **{(p, "exec"): "runs commands in a container" for p in ("kubectl", "oc")},
    ("kubectl", "debug"): "runs commands in a container",
}
_RUNNERS = frozenset(
    {(p, "run") for p in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye")}
    | {(p, s) for p in ("npm", "yarn", "pnpm", "bundle", "mise", "direnv") for s in ("exec", "x")}
)
_ONE_WORD_RUNNERS = frozenset({"npx", "uvx", "bunx", "pipx"})
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.DOTALL)


def unwrap(command: Simple) -> Unwrapped | None:
    """What `command` runs besides itself; None where it is no wrapper."""
    name = base_name(command.program)
    if handler := _HANDLERS.get(name):
        return handler(command)
    if name in _SHELLS:
        return _shell(command, name)
    if name in _OPAQUE:
        return _opaque(command, name)
    if name in _WRAPPERS:
        return _wrapper(command, name, _WRAPPERS[name])
    return _two_words(command, name)


def base_name(program: str) -> str:
    """The program's name without its folder."""
    return program.rsplit("/", 1)[-1]


def _flag(kind: FlagKind, why: str, command: Simple) -> tuple[Flag, ...]:
    return (Flag(kind=kind, why=why, text=command.raw),)


def _inner(words: tuple[Word, ...], outer: Simple, assignments: tuple[Assignment, ...] = ()) -> tuple[Simple, ...]:
    """The command that stands in `words`; reserved words before it are dropped."""
    while words and words[0].text in ("{", "!", "}", "("):
        words = words[1:]
    if not words:
        return ()
    raw = " ".join(word.raw for word in words)
    return (Simple(words=words, assignments=assignments or outer.assignments, raw=raw, inner=True),)


def _wrapper(command: Simple, name: str, options: _Options) -> Unwrapped | None:
    if name == "command" and any(re.fullmatch(r"-p?[vV]+p?", word.text) for word in command.words[1:2]):
        return None
    at, fault = _skip(command.words, options)
    rest, assignments = command.words[at:], command.assignments
    if options.assigns and not fault:
        rest, assignments = _take_assignments(rest, assignments)
    if not rest and not fault:
        return None
    inner = _inner(rest, command, assignments)
    flags: tuple[Flag, ...] = ()
    if fault or rest[0].text in ("{", "!", "("):
        flags = _flag("opaque", f"{name} with {fault or 'a compound command'}", command)
    elif options.why:
        flags = _flag("wrapper", f"{name} {options.why}", command)
    lines = _again(" ".join(word.text for word in rest)) if name == "watch" else ()
    return Unwrapped(inner=inner, lines=lines, flags=flags, through=not flags)


def _skip(words: tuple[Word, ...], options: _Options) -> tuple[int, str]:
    """Where a wrapper's own words end, and what isn't known about them."""
    at = 1
    while at < len(words):
        word = words[at]
        if not word.static or word.glob:
            return at, "a word that isn't known before it runs"
        if word.text == "--":
            at += 1
            break
        if not word.text.startswith("-") or (word.text == "-" and not options.assigns):
            break
        step = _option(word.text, options)
        if not step:
            return at + 1, f"an option that isn't known ({word.text})"
        at += step
    after = at + options.skip
    if any(not word.static for word in words[at:after]):
        return after, "a word that isn't known before it runs"
    return min(after, len(words)), ""


def _option(text: str, options: _Options) -> int:
    """How many words an option takes; 0 where it isn't known."""
    if text.startswith("--"):
        name, equals, _ = text.partition("=")
        if name in options.long_valued:
            return 1 if equals else 2
        return 1 if name in options.long else 0
    if text == "-" or re.fullmatch(r"-[0-9]+", text):
        return 1
    for at, letter in enumerate(text[1:], 1):
        if letter in options.valued:
            return 1 if at < len(text) - 1 else 2
        if letter not in options.plain:
            return 0
    return 1


def _take_assignments(
    words: tuple[Word, ...], before: tuple[Assignment, ...]
) -> tuple[tuple[Word, ...], tuple[Assignment, ...]]:
    taken = list(before)
    while words and (found := _ASSIGNS.match(words[0].text)):
        value = Word(text=words[0].text[found.end() :], raw=words[0].raw)
        taken.append(Assignment(name=found[1], value=value, raw=words[0].raw))
        words = words[1:]
    return words, tuple(taken)


def is_device(text: str) -> bool:
    """Whether a path may be what a pipe feeds: a device, or a descriptor of the process."""
    path = posixpath.normpath(text)
    return path.lstrip("/").startswith(("dev/", "proc/")) or "/dev/" in path or "/proc/" in path


def _shell(command: Simple, name: str) -> Unwrapped | None:
    """`sh -c TEXT` is read as a line again; a shell without a file reads its commands from somewhere unknown."""
    strict = name in _PLAIN_SHELLS
    words, at = command.words, 1
    wants_text = False
    while at < len(words) and words[at].static and re.match(r"[-+].", words[at].text):
        option = words[at].text
        at += 1
        if option in ("--version", "--help"):
            return None
        if option in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            strict = strict and words[at : at + 1] != () and words[at].text == "pipefail"
            at += 1
        elif option == "--":
            break
        elif option.startswith("--") or not set(option[1:]) <= set("ceuxv"):
            strict = False
        wants_text = wants_text or (option[0] == "-" and not option.startswith("--") and "c" in option)
    if at >= len(words) or not words[at].static or words[at].glob:
        again = _again(words[at].text) if wants_text and at < len(words) else ()
        return Unwrapped(lines=again, flags=_flag("opaque", f"{name} runs what isn't known before it runs", command))
    if not wants_text:
        if words[at].text == "-" or is_device(words[at].text) or not strict:
            return Unwrapped(flags=_flag("opaque", f"{name} runs what it reads", command))
        return None
    flags = () if strict else _flag("wrapper", f"{name} with options that change what runs", command)
    return Unwrapped(lines=(words[at].text,), flags=flags, through=not flags)


def _again(text: str) -> tuple[str, ...]:
    """A text that a shell reads again; what isn't known in it stands there as a variable."""
    return (text.replace(UNKNOWN, "$_"),) if text.strip() else ()


def _opaque(command: Simple, name: str) -> Unwrapped:
    flags = _flag("opaque", f"{name} {_OPAQUE[name]}", command)
    rest = command.words[1:]
    if name in ("alias", "unalias", "enable", "complete", "bind", "hash", "source", ".", "let", "fc") or not rest:
        return Unwrapped(flags=flags)
    if name == "trap":
        rest = rest[:1]
    elif name == "su" or name == "runuser" or name == "script":
        rest = tuple(w for before, w in itertools.pairwise(rest) if before.text in ("-c", "--command"))
    elif name in ("ssh", "mosh", "parallel"):
        rest = _after_options(rest, skip=name != "parallel")
    text = " ".join(word.text for word in rest)
    return Unwrapped(inner=_inner(rest, command), lines=_again(text), flags=flags)


def _after_options(words: tuple[Word, ...], *, skip: bool) -> tuple[Word, ...]:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if re.fullmatch(r"-[bcDEeFIiJLlmOopQRSWwj]", words[at].text) else 1
    return words[at + 1 if skip else at :]


def _xargs(command: Simple) -> Unwrapped:
    """The command with what is read added at the end, or in place of the text of `-I`."""
    at, fault = _skip(command.words, _XARGS)
    rest = command.words[at:]
    more = Word(text=UNKNOWN, raw="…", loose=True)
    marks = [b.text for a, b in zip(command.words, command.words[1:at], strict=False) if a.text in ("-I", "-J")]
    if marks and marks[0]:
        rest = tuple(Word(text=w.text.replace(marks[0], UNKNOWN), raw=w.raw, loose=w.loose) for w in rest)
    flags = _flag(
        "opaque" if fault else "wrapper", f"xargs {'with ' + fault if fault else 'runs it on what it reads'}", command
    )
    if not rest:
        return Unwrapped(flags=flags)
    return Unwrapped(inner=_inner((*rest, more), command), flags=flags)


def _find(command: Simple) -> Unwrapped | None:
    """`-exec` and its kind: the command up to `;` or `+`, with `{}` unknown."""
    inner: list[Simple] = []
    words = command.words
    for at, word in enumerate(words):
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = (n for n in range(at + 1, len(words)) if words[n].text in (";", "+"))
            part = words[at + 1 : next(ends, len(words))]
            known = tuple(Word(text=w.text.replace("{}", UNKNOWN), raw=w.raw, loose=w.loose) for w in part)
            inner += _inner(known, command)
    if not inner:
        return None
    return Unwrapped(inner=tuple(inner), flags=_flag("wrapper", "find runs it on what it finds", command))


def _fd(command: Simple) -> Unwrapped | None:
    for at, word in enumerate(command.words):
        if re.fullmatch(r"-[xX]|--exec|--exec-batch", word.text):
            inner = _inner((*command.words[at + 1 :], Word(text=UNKNOWN, raw="…", loose=True)), command)
            return Unwrapped(inner=inner, flags=_flag("wrapper", "fd runs it on what it finds", command))
    return None


def _env(command: Simple) -> Unwrapped | None:
    for word in command.words[1:]:
        if not word.text.startswith("-"):
            break
        if re.match(r"-[i0v]*S|--split", word.text):
            rest = " ".join(w.text for w in command.words[1:])
            text = re.sub(r"^.*?(-[i0v]*S|--split-string=?)\s*", "", rest, count=1)
            return Unwrapped(
                lines=(text,) if UNKNOWN not in text else (),
                flags=_flag("opaque", "env -S splits a text into a command", command),
            )
    return _wrapper(command, "env", _WRAPPERS["env"])


def _seen(command: Simple, at: int) -> tuple[Simple, ...]:
    """What a runner runs, for deny and ask rules: the rule that allows the runner allows what it runs."""
    inner = _inner(_after_options(command.words[at:], skip=False), command)
    return tuple(Simple(words=c.words, assignments=c.assignments, raw=c.raw, inner=True, through=True) for c in inner)


def _two_words(command: Simple, name: str) -> Unwrapped | None:
    """Programs whose second word makes them a wrapper."""
    if name in _ONE_WORD_RUNNERS:
        return Unwrapped(inner=_seen(command, 1))
    for at, word in enumerate(command.words[1:6], 1):
        if why := _TWO_WORDS.get((name, word.text)):
            rest = command.words[at + 1 :]
            inner = tuple(c for n in range(len(rest[:12])) for c in _inner(rest[n:], command) if n)
            return Unwrapped(inner=inner, flags=_flag("opaque", f"{name} {word.text} {why}", command))
        if (name, word.text) in _RUNNERS:
            return Unwrapped(inner=_seen(command, at + 1))
    return None


_HANDLERS: dict[str, Callable[[Simple], Unwrapped | None]] = {
    "xargs": _xargs,
    "find": _find,
    "fd": _fd,
    "fdfind": _fd,
    "env": _env,
}


__all__ = ["Unwrapped", "base_name", "unwrap"]
