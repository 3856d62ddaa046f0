from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from counterfoil.policy.permissions import Rules
from counterfoil.policy.shell import analyse, surely_read_only
from tests.policy.lines import bash
from tests.policy.shell_strategies import PLAIN, SOUP, composed, disturbed, nested, pairs

SOAK = 20 if os.environ.get("COUNTERFOIL_SOAK") else 1
DENY = Rules(deny=("Bash(zap *)",), allow=("Bash(*)",))
JOINS = st.sampled_from(["{}; {}", "{} && {}", "{} | {}", "{}\n{}", "({}) || ({})"])
SOME = Rules(allow=("Bash(ls *)", "Bash(echo *)", "Bash(git *)", "Bash(cat *)"))


@settings(max_examples=800 * SOAK, deadline=None, derandomize=True)
@given(composed("zap"))
def test_a_denied_command_stays_denied_under_any_composition(line: str) -> None:
    decision = bash(line, DENY)
    assert decision.verdict == "deny", (line, decision.reason)


@settings(max_examples=400 * SOAK, deadline=None, derandomize=True)
@given(composed("zap", depth=5))
def test_a_denied_command_is_never_allowed_in_any_mode(line: str) -> None:
    for mode in ("default", "accept_edits", "dont_ask", "bypass", "plan"):
        assert bash(line, DENY, mode).verdict == "deny", (line, mode)


@settings(max_examples=400 * SOAK, deadline=None, derandomize=True)
@given(
    composed("curl"), PLAIN, st.sampled_from(["{}; {}", "{} && {}", "{} | {}", "{}\n{}", "({}) || ({})"]), st.booleans()
)
def test_what_is_not_allowed_alone_is_not_allowed_with_more_around_it(
    line: str, more: str, join: str, swap: bool
) -> None:
    assert bash(line, SOME).verdict != "allow"
    if "<<E" in line or "#" in line:
        swap = False
    pair = (line, more) if swap else (more, line)
    assert (
        bash(join.format(*pair) if "<<E" not in line and "#" not in line else f"{more}\n{line}", SOME).verdict
        != "allow"
    )


@settings(max_examples=600 * SOAK, deadline=None, derandomize=True)
@given(st.text(max_size=60) | SOUP)
@example("\x00")
@example("\ud83c")
@example("ls\r\nrm x")
def test_any_text_is_answered(text: str) -> None:
    line = analyse(text)
    surely_read_only(text)
    decision = bash(text, DENY)
    assert decision.reason and "\n" not in decision.reason and decision.reason.isprintable()
    assert all(command.words for command in line.commands)


@pytest.mark.parametrize(
    "text",
    [
        "a|" * 500_000, "(" * 100_000, "$(" * 16_000, "`" * 30_000, "<<A\n" * 8_000, "${" * 15_000, "{a," * 10_000,
        "a && " * 6_000, "a;" * 16_000, "'" * 32_001, "x" * 1_000_000, "sh -c " * 5_000, "env " * 8_000, "[[ " * 10_000,
        "if a; then " * 2_500, '"$(' * 10_000, "eval " * 6_000, "<(" * 16_000, "|" * 399, "a|" * 399 + "a",
        "cd a;" * 6_000, "\\\n" * 16_000, "!" * 30_000, "a $x " * 5_000, "rm " * 10_000, "a<b " * 8_000,
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_long_and_deep_lines_are_asked_and_end(text: str) -> None:
    assert bash(text, Rules(allow=("Bash(git *)",))).verdict == "ask"


BASH = shutil.which("bash")


def _leaves_a_mark(line: str, folder: Path) -> bool:
    """Run `line` in a real shell with one program in its path, which leaves a mark: did it run?"""
    tools, mark = folder / "bin", folder / "mark"
    if not tools.exists():
        tools.mkdir()
        (folder / "run").mkdir()
        (tools / "zap").write_text(f"#!{BASH}\n: > {mark}\n")
        (tools / "zap").chmod(0o755)
    mark.unlink(missing_ok=True)
    assert BASH is not None
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([BASH, "-c", line], env={"PATH": str(tools)}, cwd=folder / "run", stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=5, check=False)  # fmt: skip
    return mark.exists()


@pytest.mark.skipif(BASH is None, reason="needs bash")
@settings(
    max_examples=500 * SOAK,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(SOUP | disturbed("zap") | nested("zap"))
def test_what_bash_itself_runs_is_never_allowed_over_a_denial(tmp_path: Path, line: str) -> None:
    if bash(line, DENY).verdict == "allow":
        assert not _leaves_a_mark(line, tmp_path), line


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_no_context_inside_of_another_hides_a_command_from_a_denial(tmp_path: Path) -> None:
    """Every pair of contexts in the long form, some of them in the short one."""
    lines = itertools.islice(pairs("zap"), 0, None, 1 if SOAK > 1 else 61)
    missed = [line for line in lines if bash(line, DENY).verdict == "allow" and _leaves_a_mark(line, tmp_path)]
    assert not missed
