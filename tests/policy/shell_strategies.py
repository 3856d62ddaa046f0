"""Generated shell lines: commands, and what they can be composed into without ceasing to run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

WORDS = st.sampled_from(["a", "b.txt", "-x", "--all", "src/x", "'q u'", '"d q"', "$V", '"$V"', "1", "x=y", "*.py", "~"])
PLAIN = st.sampled_from(["ls", "true", "echo hi", "git log", "cat a", "grep x y", "printf '%s' a", "test -f x"])


@st.composite
def quoted(draw: st.DrawFn, name: str) -> str:
    """A program's name, written in one of the ways that the shell reads as this name."""
    head, tail = name[0], name[1:]
    forms = [
        name, f"\\{name}", f"'{name}'", f'"{name}"', f"$'{name}'", f'{head}""{tail}', f"{name[:-1]}'{name[-1]}'",
        f"/bin/{name}", f"./{name}", f'{head}"{tail}"', f"{head}\\{tail}", f"$'\\x{ord(head):02x}'{tail}",
        f"{head}\\\n{tail}",
    ]  # fmt: skip
    return draw(st.sampled_from(forms))


@st.composite
def simple(draw: st.DrawFn, name: str) -> str:
    """A simple command that runs `name`, in some quoting and with some arguments."""
    words = [draw(quoted(name)), *draw(st.lists(WORDS, max_size=3))]
    return " ".join(words)


_BEFORE = ["FOO=1 ", "A=1 B='2 3' ", "! ", "time ", "time -p ", "> out ", "2>&1 ", "coproc "]
"""The shell itself reads these: no wrapper can stand before them."""
_PREFIXES = [
    *_BEFORE, "env ", "env X=1 ", "env -i ", "sudo ", "sudo -u root ", "doas ", "command ", "builtin command ", "exec ",
    "nohup ", "nice ", "nice -n 5 ", "ionice -c 3 ", "timeout 5 ", "timeout -s KILL 1m ", "stdbuf -o0 ", "setsid ",
    "xargs ", "xargs -0 -n 1 ", "busybox ", "watch ", "parallel ", "npx ", "strace -f ", "chroot / ",
]  # fmt: skip
_AROUND = [
    "( {} )", "{{ {}; }}", "echo $( {} )", "echo `{}`", 'echo "a $( {} ) b"', "cat <( {} )", "x=$( {} )",
    "if {}; then true; fi", "if true; then {}; fi", "while {}; do true; done", "for i in 1; do {}; done",
    "case x in *) {};; esac",
    "f() {{ {}; }}; f", "{} > out", "{} 2>/dev/null", "{} &", "( {} ) | cat", "cat <<< $( {} )", "echo ${{x:-$( {} )}}",
    "until {}; do break; done", "cat <<E\n$( {} )\nE", "export A=$( {} )", "[[ -n $( {} ) ]]", "( ( {} ); )",
    "echo $(( 1 + $( {} ) ))", "true && {{ {} || false; }}", "{} # end", "# start\n{}",
]  # fmt: skip
_JOINS = ["{a}; {b}", "{a} && {b}", "{a} || {b}", "{a} | {b}", "{a} |& {b}", "{a} & {b}", "{a}\n{b}", "{a}\n\n{b}",
          "{a} &&\n{b}", "{a};{b}", "{a}&&{b}", "{a}|{b}", "{a} ;\n {b}"]  # fmt: skip


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@st.composite
def composed(draw: st.DrawFn, name: str, depth: int = 3) -> str:
    """A line in which a command that runs `name` stands somewhere at the place of a command."""
    line = draw(simple(name))
    alone, deep = True, False
    for _ in range(draw(st.integers(0, depth))):
        kind = draw(st.sampled_from(["prefix", "around", "join", "join", "shell"]))
        if kind == "prefix" and alone:
            prefix = draw(st.sampled_from(_PREFIXES))
            line, alone = prefix + line, prefix not in _BEFORE
        elif kind == "around" and not (deep and "`" in line):
            around = draw(st.sampled_from(_AROUND))
            if "`" in around and ("`" in line or "\\" in line or "<<" in line or "$'" in line):
                continue
            line, alone, deep = (
                around.format(line if "\n" not in line or "<<" not in line else f"{line}\n"),
                False,
                True,
            )
        elif kind == "join":
            a, b = draw(PLAIN), line
            if draw(st.booleans()) and "<<E" not in line and "#" not in line:
                a, b = b, a
            line, alone = draw(st.sampled_from(_JOINS)).format(a=a, b=b), False
        elif kind == "shell":
            line, alone = draw(st.sampled_from(["bash -c ", "sh -c ", "eval ", "/bin/bash -ec "])) + _single(line), True
    return line


FRAGMENTS = st.sampled_from([
    "zap", ";", "&&", "||", "|", "|&", "&", "\n", "(", ")", "{", "}", "$(", "`", "'", '"', "\\", "$", "${", "$((",
    "))", "((", "[[", "]]", "[", "]", "<", ">", ">>", "<<", "<<-", "<<<", "<(", ">(", "2>&1", "#", "!", "=", "x=1", "a",
    "*",
    "?", "~", "if", "then", "fi", "for", "in", "do", "done", "while", "case", "esac", "function", "f()", "time", "eval",
    "env", "xargs", "E", "EOF", "-c", "sh", "$x", "$'z'", "$@", ",", "..", ";;", "\t", " ", " ", " ", " zap ", "\nE\n",
    "\\\n",
    "\nEOF\n",
])  # fmt: skip
"""Pieces of shell syntax."""
SOUP = st.lists(FRAGMENTS, max_size=14).map("".join)
"""Shell syntax in no order at all."""


@st.composite
def disturbed(draw: st.DrawFn, name: str) -> str:
    """A composed line with pieces of syntax put in and taken out anywhere."""
    line = draw(composed(name))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(FRAGMENTS) + line[at + draw(st.integers(0, 2)) :]
    return line


NESTS = [
    '"{}"', "'{}'", "$'{}'", "`{}`", "$({})", "$( {} )", "$(({}))", "$[{}]", "<({})", ">({})", "({})", "{{ {}; }}",
    "a{}b", "${{x:-{}}}", "${{x:={}}}", "${{x+{}}}", "${{x//{}/y}}", "${{x/y/{}}}", "${{x#{}}}", "${{x%%{}}}",
    "${{x:{}}}", "${{x[{}]}}", "x={}", "x[{}]=1", "x=({})", "[[ {} ]]", "[[ a == {} ]]", "[[ a =~ {} ]]", "(({}))",
    "echo {}", "echo a{}", "case {} in a) ;; esac", "case a in {}) ;; esac", "case a in a) {};; esac",
    "cat <<E\n{}\nE\n", "cat <<'E'\n{}\nE\n", "cat <<-E\n\t{}\n\tE\n", "cat <<< {}", "\\{}", "# {}\n", "{} # {}",
    "eval {}", "for i in {}; do :; done", "if {}; then :; fi", "f() {{ {}; }}; f", "{}\n", "\n{}", "! {}", "time {}",
    "export x={}", "declare -a x=({})", "echo > {}", "{} > o", "x={} zap", "printf -v {} a", "test -v {}",
    "echo ${{#{}}}", "echo {{a,{}}}", "let {}", '$"{}"', "x=a; {}", "{}; {}", "{} | {}", "until {}; do break; done",
    "sh -c {}", "env {}", "${{!{}}}", "${{x@{}}}", "trap {} EXIT", "alias y={}", "select i in {}",
]  # fmt: skip


@st.composite
def nested(draw: st.DrawFn, name: str) -> str:
    """A program's name inside contexts of every kind, whether or not they go together."""
    line = draw(st.sampled_from([name, f"{name} x", f"$({name})", f"`{name}`"]))
    for _ in range(draw(st.integers(1, 4))):
        line = draw(st.sampled_from(NESTS)).format(line, line)
    return draw(st.sampled_from(["", "", "", "echo ", "true; ", "x=a "])) + line


def pairs(name: str) -> Iterator[str]:
    """Every context inside of every other, in no random order."""
    for base in (name, f"$({name})", f"`{name}`", f"{name} x"):
        for inner, outer in itertools.product(["{}", *NESTS], repeat=2):
            line = inner.format(base, base)
            line = outer.format(line, line)
            yield from (line, f"echo {line}", f"true; {line}")
