"""`CLAUDE_ENV_FILE`: what is taken from it, what never is, and that it reaches the commands of the session."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import ToolFailure
from counterfoil.tools.exports import parse_exports
from counterfoil.tools.variables import SessionVariables
from tests.support.strategies import examples

KNOWN = {"PATH": "/bin", "HOME": "/home/me"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("export A=1", {"A": "1"}),
        ("A=1\n\n# note\nexport B=two # why\n", {"A": "1", "B": "two"}),
        ("export A=1 B=2;", {"A": "1", "B": "2"}),
        ("export A='$PATH `x`'", {"A": "$PATH `x`"}),
        ('export PATH="$PATH:./node_modules/.bin"', {"PATH": "/bin:./node_modules/.bin"}),
        ("export PATH=/opt/x:${PATH}", {"PATH": "/opt/x:/bin"}),
        ('A=1\nB="$A and \\"$NOWHERE\\""', {"A": "1", "B": '1 and ""'}),
        ('declare -x A="1 \\$x"\ndeclare -x BARE', {"A": "1 $x"}),
        ("A='two\nlines'\nB=3", {"A": "two\nlines", "B": "3"}),
        ("export A=\nB=a\\ b", {"A": "", "B": "a b"}),
        ("A=a'b'\"c\"", {"A": "abc"}),
        ("A=https://x.org/?q=1#there", None),
        ("A=x#y", {"A": "x#y"}),
    ],
)
def test_plain_assignments_mean_what_they_mean_in_a_shell(text: str, values: dict[str, str] | None) -> None:
    found = parse_exports(text, KNOWN)
    assert (found.values, found.others) == ((values, ()) if values is not None else ({}, (1,)))


@pytest.mark.parametrize(
    "line",
    [
        *("A=$(id)", "A=`id`", 'A="$(id)"', 'A="`id`"', "A=1; rm x", "A=1 && B=2", "A=${B:-c}", "A=(1 2)", "A+=1"),
        *("A=1 ls", "source x", "unset A", "A='open", 'A="open', "export -f f", "A=*", "A=~/x", "A=<(x)", "1A=2"),
        *("A=$1", "rm -rf x"),
    ],
)
def test_what_would_have_to_be_run_is_left_out_and_said(line: str) -> None:
    found = parse_exports(f"X=1\n{line}\n", KNOWN)
    assert found.values == {"X": "1"} and found.others == (2,)


@examples(300)
@given(st.text(alphabet="AB=\n\"'\\$`{}(;# x", max_size=40))
def test_no_text_raises_and_each_line_is_one_or_the_other(text: str) -> None:
    found = parse_exports(text, KNOWN)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.others)


@pytest.mark.parametrize(
    "line",
    [
        *("LD_PRELOAD=/x.so", "BASH_ENV=/x", "GIT_SSH_COMMAND=x", "NODE_OPTIONS=--require=x", "HTTPS_PROXY=http://x"),
        *("PAGER=x", "PWD=/", "MY_API_TOKEN=x", "A=sk-" + "a1B2" * 8, "HOME=/x", "PYTHONSTARTUP=x", "TERM=x"),
    ],
)
def test_dangerous_names_and_secrets_are_not_taken_and_it_is_said_without_the_value(tmp_path: Path, line: str) -> None:
    variables = SessionVariables(tmp_path / "s" / "v.json", KNOWN)
    names, warnings = variables.take(f"export {line}\nexport GIT_AUTHOR_NAME=me\n")
    name, _, value = line.partition("=")
    assert names == ("GIT_AUTHOR_NAME",) and variables.current() == {"GIT_AUTHOR_NAME": "me"}
    assert len(warnings) == 1 and name in warnings[0] and (len(value) < 3 or value not in warnings[0])


def test_what_is_taken_is_kept_over_a_restart_and_for_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "s" / "v.json"
    first = SessionVariables(file, KNOWN)
    assert first.take("export A=1\nPATH=$PATH:/x")[0] == ("A", "PATH")
    assert first.take("export A=2\nPATH=$PATH:/y\nHOME=/home/me")[1] == []
    assert SessionVariables(file, KNOWN).current() == {"A": "2", "PATH": "/bin:/x:/y"}
    assert file.stat().st_mode & 0o077 == 0
    SessionVariables(file, KNOWN).take("PATH=$PATH:/x")
    assert first.current()["PATH"] == "/bin:/x"


def test_a_file_that_somebody_else_changed_can_not_bring_in_what_was_refused(tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    file.write_text('{"LD_PRELOAD": "/x.so", "A": "1"}')
    assert SessionVariables(file, KNOWN).current() == {"A": "1"}
    file.write_text("{")
    with pytest.raises(ToolFailure, match="can't be read"):
        SessionVariables(file, KNOWN).current()


def test_a_flood_of_refusals_is_bounded(tmp_path: Path) -> None:
    names, warnings = SessionVariables(tmp_path / "v", KNOWN).take("\n".join(f"LD_{n}=x" for n in range(99)))
    assert names == () and len(warnings) == 9 and "91 more" in warnings[-1]
