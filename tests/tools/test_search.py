from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from counterfoil.errors import ToolFailure
from counterfoil.tools import ToolOptions
from counterfoil.tools.glob_match import braces, matcher, name_or_path_matcher
from tests.tools.support import Bench

ENGINES = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(shutil.which("rg") is None, reason="needs ripgrep")),
]


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "d/e/a.py", True),
        ("src/**/x/*.{ts,tsx}", "src/a/b/x/q.tsx", True),
        ("src/**", "src/a/b", True),
        ("src", "src/a", False),
        ("a?[bc].txt", "axc.txt", True),
        ("**/a/**/b", "a/x/a/y/z/b", True),
    ],
)
def test_glob_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matcher(pattern)(path.split("/")) is expected


def test_globs_of_grep_are_about_names_at_any_depth() -> None:
    assert name_or_path_matcher("*.py")(["d", "a.py"])
    assert not name_or_path_matcher("!*.py")(["d", "a.py"])
    assert name_or_path_matcher("d/*.py")(["d", "a.py"])


def test_glob_bombs_end_quickly() -> None:
    began = time.monotonic()
    matcher("**/" * 200 + "*a*a*a*a*a*a*a*a*a*b")([f"{'a' * 100}{n}" for n in range(100)])
    with pytest.raises(ToolFailure, match="alternatives"):
        braces("{a,b}" * 20)
    assert time.monotonic() - began < 2


async def test_glob_puts_the_latest_first_and_leaves_out_what_is_ignored(bench: Bench) -> None:
    for at, name in enumerate(["old.py", "d/new.py", "build/x.py", ".git/x.py", "d/skip.py", "d/keep/skip.py"]):
        os.utime(bench.write(name, ""), (at, at))
    bench.write(".gitignore", "build/\nskip.py\n")
    bench.write("d/keep/.gitignore", "!skip.py\n")
    assert await bench.text("Glob", pattern="**/*.py") == "d/keep/skip.py\nd/new.py\nold.py"
    assert await bench.text("Glob", pattern="*.py", path="d") == "d/new.py"
    assert await bench.text("Glob", pattern=f"{bench.workspace.resolve()}/d/*.py") == "d/new.py"
    assert await bench.text("Glob", pattern="*.rs") == "No files found."
    with pytest.raises(ToolFailure, match=r"\.\."):
        await bench.call("Glob", pattern="../*")


async def test_glob_follows_no_link_out_of_the_workspace(bench: Bench) -> None:
    (bench.outside / "secret.py").write_text("")
    bench.write("in.py", "")
    (bench.workspace / "out").symlink_to(bench.outside)
    (bench.workspace / "out.py").symlink_to(bench.outside / "secret.py")
    (bench.workspace / "loop").symlink_to(bench.workspace)
    assert await bench.text("Glob", pattern="**/*.py") == "in.py"


@pytest.fixture(params=ENGINES, ids=lambda rg: "rg" if rg else "python")
def search(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, ToolOptions(ripgrep=request.param, hidden=lambda path: path.name == ".env"))
    bench.write("a.py", "import os\nx = 1\ny = 2\nz = 3\nprint(x)\n")
    bench.write("d/b.txt", "X marks\nnothing\n")
    bench.write("d.py", "x\n")
    bench.write("ignored.py", "x\n")
    bench.write(".gitignore", "ignored.py\n")
    bench.write(".git/config", "x\n")
    bench.write(".env", "x=secret\n")
    bench.write("bin", b"x\0x")
    return bench


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "x"}, ["a.py", "d.py"]),
        ({"pattern": "x", "-i": True}, ["a.py", "d/b.txt", "d.py"]),
        ({"pattern": "x", "output_mode": "count"}, ["a.py:2", "d.py:1"]),
        ({"pattern": "x", "output_mode": "content", "glob": "a.*"}, ["a.py:2:x = 1", "a.py:5:print(x)"]),
        ({"pattern": "x", "output_mode": "content", "-n": False, "path": "d.py"}, ["d.py:x"]),
        ({"pattern": "marks$", "type": "txt", "output_mode": "content"}, ["d/b.txt:1:X marks"]),
        ({"pattern": "^y", "output_mode": "content", "-C": 1}, ["a.py-2-x = 1", "a.py:3:y = 2", "a.py-4-z = 3"]),
        (
            {"pattern": "import|print", "output_mode": "content", "-A": 1},
            ["a.py:1:import os", "a.py-2-x = 1", "--", "a.py:5:print(x)"],
        ),
        (
            {"pattern": "x|y", "output_mode": "content", "-B": 1, "path": "a.py"},
            ["a.py-1-import os", "a.py:2:x = 1", "a.py:3:y = 2", "a.py-4-z = 3", "a.py:5:print(x)"],
        ),
        (
            {"pattern": "1.y", "multiline": True, "output_mode": "content"},
            ["a.py:2:x = 1", "a.py:3:y = 2"],
        ),
        ({"pattern": "x", "glob": "!a.py"}, ["d.py"]),
        ({"pattern": "x", "head_limit": 1}, ["a.py", "[there is more: narrow the search, or raise head_limit]"]),
        ({"pattern": "secret"}, ["No matches found."]),
        ({"pattern": "-x"}, ["No matches found."]),
        ({"pattern": "x", "path": "d"}, ["No matches found."]),
    ],
)
async def test_grep(search: Bench, arguments: dict[str, Any], expected: Sequence[str]) -> None:
    assert (await search.text("Grep", **arguments)).split("\n") == expected


async def test_r8_a_hidden_file_is_left_out_by_every_way(search: Bench) -> None:
    (search.workspace / "alias").symlink_to(".env")
    assert "secret" not in await search.text("Grep", pattern="secret", output_mode="content")
    assert "secret" not in await search.text("Grep", pattern="secret", output_mode="content", path=".env")
    assert "secret" not in await search.text("Grep", pattern="secret", output_mode="content", path="alias")
    assert await search.text("Glob", pattern="{.env,alias}") == "No files found."


async def test_grep_says_what_is_wrong_with_a_pattern_a_type_or_a_path(search: Bench) -> None:
    for arguments in ({"pattern": "("}, {"pattern": "x", "type": "nope"}, {"pattern": "x", "path": "nowhere"}):
        with pytest.raises(ToolFailure) as caught:
            await search.call("Grep", **arguments)
        assert caught.value.executed == "no"


async def test_a_regular_expression_bomb_ends_quickly(search: Bench) -> None:
    search.write("bomb.txt", "a" * 200_000 + "!\n")
    began = time.monotonic()
    assert await search.text("Grep", pattern="(a|a)*(a+)+b$", path="bomb.txt") == "No matches found."
    assert time.monotonic() - began < 5


async def test_odd_names_and_long_lines_do_not_break_the_result(search: Bench) -> None:
    search.write("q/new\nline", "needle " + "x" * 5000 + "\n")
    search.write("q/-dash", b"needle \xff\x1b[31m\n")
    lines = (await search.text("Grep", pattern="needle", output_mode="content", path="q")).split("\n")
    assert lines[0] == "q/-dash:1:needle \ufffd␛[31m"
    assert lines[1].startswith("q/new␊line:1:needle xxx")
    assert len(lines[1]) < 600
    assert len(lines) == 2


async def test_grep_follows_no_link_out_of_the_workspace(search: Bench) -> None:
    (search.outside / "s").write_text("needle")
    (search.workspace / "out").symlink_to(search.outside)
    (search.workspace / "outfile").symlink_to(search.outside / "s")
    assert await search.text("Grep", pattern="needle") == "No matches found."


async def test_a_file_that_is_too_large_to_search_is_not_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.tools.grep_python.FILE_LIMIT", 10)
    search = Bench(tmp_path, ToolOptions(ripgrep=False))
    search.write("large", "needle in the hay\n")
    assert "not searched, for their size of more than 10 bytes: 1 files" in await search.text("Grep", pattern="needle")


@pytest.mark.parametrize("tool", ["Glob", "Grep"])
async def test_ignore_rules_that_are_a_pipe_do_not_hang_the_search(bench: Bench, tool: str) -> None:
    bench.write("a.py", "a")
    os.mkfifo(bench.workspace / ".gitignore")
    assert "a.py" in await bench.text(tool, pattern="a*")
