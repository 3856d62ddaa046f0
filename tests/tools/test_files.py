from __future__ import annotations

import base64
import io
import os
import tracemalloc
from pathlib import Path

import pytest

from counterfoil.errors import ToolFailure
from counterfoil.events import ImagePart
from counterfoil.tools.files import _Steady
from tests.tools.support import Bench

ODD_NAMES = ["new\nline.txt", "ünï côdé 文.txt", "-rf.txt", "a b'c\"d.txt", "$(id).txt", "~weird.txt"]


async def test_lines_are_numbered(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\r\nthree")
    assert await bench.text("Read", file_path="a.txt") == "     1\tone\n     2\ttwo\n     3\tthree"
    assert await bench.text("Read", file_path=str(bench.workspace / "a.txt"), offset=2, limit=1) == (
        "     2\ttwo\n[more lines follow: go on with offset 3]"
    )


async def test_long_files_and_long_lines_are_cut(bench: Bench) -> None:
    bench.write("a.txt", "x" * 5000 + "\n" + "y\n" * 3000)
    text = await bench.text("Read", file_path="a.txt")
    assert text.startswith("     1\t" + "x" * 2000 + " […]\n     2\ty\n")
    assert text.endswith("  2000\ty\n[more lines follow: go on with offset 2001]")


async def test_a_huge_file_is_read_in_bounded_memory(bench: Bench) -> None:
    with (bench.workspace / "huge.txt").open("wb") as file:
        file.write(b"first\n")
        file.write(b"z" * 60_000_000)
        file.write(b"\nlast\n")
    tracemalloc.start()
    text = await bench.text("Read", file_path="huge.txt")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text.endswith("     3\tlast")
    assert peak < 10_000_000


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_are_names(bench: Bench, name: str) -> None:
    await bench.call("Write", file_path=name, content="a\n")
    await bench.call("Edit", file_path=name, old_string="a", new_string="b")
    assert await bench.text("Read", file_path=name) == "     1\tb"
    assert (bench.workspace / name).read_text() == "b\n"


async def test_invalid_utf8_is_shown_and_said(bench: Bench) -> None:
    bench.write("a.txt", b"caf\xe9\n\x1b[31mred\n")
    text = await bench.text("Read", file_path="a.txt")
    assert "caf\ufffd" in text
    assert "not valid UTF-8" in text
    assert "␛[31mred" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a\0b", "binary"), (b"%PDF-1.7", "PDF"), ("text".encode("utf-16"), "UTF-16")],
)
async def test_what_is_no_text_is_refused_clearly(bench: Bench, content: bytes, words: str) -> None:
    bench.write("a", content)
    with pytest.raises(ToolFailure, match=words):
        await bench.call("Read", file_path="a")


async def test_images_are_parts(bench: Bench) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
    bench.write("a.png", png)
    output = await bench.call("Read", file_path="a.png")
    assert output.parts == (ImagePart(media_type="image/png", data=base64.b64encode(png).decode(), name="a.png"),)
    bench.write("big.png", png + b"\0" * (5 * 1024 * 1024))
    with pytest.raises(ToolFailure, match="limit"):
        await bench.call("Read", file_path="big.png")


async def test_missing_files_folders_and_pipes_are_told_apart(bench: Bench) -> None:
    bench.write("settings.py", "")
    os.mkfifo(bench.workspace / "pipe")
    assert "is empty" in await bench.text("Read", file_path="settings.py")
    with pytest.raises(ToolFailure, match=r"did you mean settings\.py"):
        await bench.call("Read", file_path="setings.py")
    with pytest.raises(ToolFailure, match="is a folder"):
        await bench.call("Read", file_path=".")
    with pytest.raises(ToolFailure, match="not a regular file"):
        await bench.call("Read", file_path="pipe")
    with pytest.raises(ToolFailure, match="NUL"):
        await bench.call("Read", file_path="a\0b")


def test_targets_show_where_a_link_leads(bench: Bench) -> None:
    (bench.workspace / "link").symlink_to(bench.outside / "secret")
    (bench.workspace / "up").symlink_to(bench.outside)
    read, write = bench.tools.get("Read"), bench.tools.get("Write")
    assert read is not None
    assert write is not None
    (use,) = read.targets(bench.ctx(), {"file_path": "link"}).paths
    assert (use.given, use.inside, use.write) == (str(bench.workspace / "link"), False, False)
    assert use.resolved == str((bench.outside / "secret").resolve())
    (use,) = write.targets(bench.ctx(), {"file_path": "up/new/file", "content": ""}).paths
    assert (use.resolved, use.inside, use.write) == (str(bench.outside.resolve() / "new/file"), False, True)
    (use,) = read.targets(bench.ctx(), {"file_path": "../outside/x"}).paths
    assert not use.inside
    (use,) = read.targets(bench.ctx(), {"file_path": "~/x"}).paths
    assert use.given == str(Path("~/x").expanduser())


async def test_without_a_check_nothing_outside_is_touched(bench: Bench) -> None:
    (bench.workspace / "link").symlink_to(bench.outside / "f")
    write = bench.tools.get("Write")
    assert write is not None
    with pytest.raises(ToolFailure, match="outside the workspace"):
        await write.run(bench.ctx(), {"file_path": "link", "content": "x"})
    assert not (bench.outside / "f").exists()


@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
async def test_a_link_that_was_swapped_after_the_check_is_not_followed(bench: Bench, tool: str) -> None:
    secret = bench.outside / "secret"
    secret.write_text("secret")
    bench.write("a.txt", "plain")
    arguments = {"file_path": "a.txt"}
    if tool == "Write":
        arguments["content"] = "x"
    if tool == "Edit":
        arguments |= {"old_string": "secret", "new_string": "x"}
    ctx, found = bench.ctx(), bench.tools.get(tool)
    assert found is not None
    found.targets(ctx, arguments)
    (bench.workspace / "a.txt").unlink()
    (bench.workspace / "a.txt").symlink_to(secret)
    with pytest.raises(ToolFailure, match="another file") as caught:
        await found.run(ctx, arguments)
    assert caught.value.executed == "no"
    assert secret.read_text() == "secret"


def test_opening_follows_no_link_on_the_way(bench: Bench) -> None:
    from counterfoil.tools.files import open_file, replace_file

    (bench.outside / "f").write_text("secret")
    root = bench.workspace.resolve()
    (root / "folder").symlink_to(bench.outside)
    (root / "file").symlink_to(bench.outside / "f")
    for path in (root / "folder" / "f", root / "file"):
        with pytest.raises(ToolFailure, match="another file"):
            open_file(path)
        with pytest.raises(ToolFailure, match="another file"):
            replace_file(path, b"x")
    assert (bench.outside / "f").read_text() == "secret"


async def test_writing_through_a_link_inside_keeps_the_link_and_the_mode(bench: Bench) -> None:
    target = bench.write("real.sh", "a\n")
    target.chmod(0o751)
    (bench.workspace / "link").symlink_to("real.sh")
    await bench.call("Edit", file_path="link", old_string="a", new_string="b")
    assert (bench.workspace / "link").is_symlink()
    assert target.read_text() == "b\n"
    assert target.stat().st_mode & 0o777 == 0o751
    assert sorted(p.name for p in bench.workspace.iterdir()) == ["link", "real.sh"]


async def test_write_makes_folders_and_says_what_is_new(bench: Bench) -> None:
    assert "new file of 2 lines" in await bench.text("Write", file_path="a/b/c.txt", content="1\n2\n")
    assert (bench.workspace / "a/b/c.txt").read_text() == "1\n2\n"


async def test_write_over_a_file_needs_a_read_before(bench: Bench) -> None:
    bench.write("a.txt", "old\n")
    with pytest.raises(ToolFailure, match="not read in this session"):
        await bench.call("Write", file_path="a.txt", content="new\n")
    await bench.call("Read", file_path="a.txt")
    text = await bench.text("Write", file_path="a.txt", content="new\n")
    assert "-old\n+new" in text
    await bench.call("Write", file_path="a.txt", content="newer\n")


async def test_a_file_that_changed_since_it_was_read_is_refused(bench: Bench) -> None:
    path = bench.write("a.txt", "old\n")
    await bench.call("Read", file_path="a.txt")
    os.utime(path, (1, 1))
    await bench.call("Edit", file_path="a.txt", old_string="old", new_string="mine")
    path.write_text("theirs\n")
    for tool, arguments in (
        ("Write", {"content": "x"}),
        ("Edit", {"old_string": "theirs", "new_string": "x"}),
    ):
        with pytest.raises(ToolFailure, match="changed on disk"):
            await bench.call(tool, file_path="a.txt", **arguments)
    assert path.read_text() == "theirs\n"


async def test_edit_shows_a_diff_with_the_right_lines(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"{n}\n" for n in range(1, 101)))
    text = await bench.text("Edit", file_path="a.txt", old_string="50\n", new_string="fifty\n")
    assert "@@ -48,5 +48,5 @@\n 48\n 49\n-50\n+fifty\n 51\n 52" in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x", "x", "identical"),
        ("zzz", "y", "not found"),
        ("a", "b", r"2 times \(lines 1, 3\)"),
        ("", "b", "old_string is empty"),
    ],
)
async def test_edit_says_precisely_what_is_wrong(bench: Bench, old: str, new: str, words: str) -> None:
    path = bench.write("a.txt", "a\nq\na\n")
    with pytest.raises(ToolFailure, match=words) as caught:
        await bench.call("Edit", file_path="a.txt", old_string=old, new_string=new)
    assert caught.value.executed == "no"
    assert path.read_text() == "a\nq\na\n"


async def test_edit_replaces_all_where_asked(bench: Bench) -> None:
    path = bench.write("a.txt", "a a a")
    assert "3 places" in await bench.text("Edit", file_path="a.txt", old_string="a", new_string="b", replace_all=True)
    assert path.read_text() == "b b b"


async def test_crlf_and_the_byte_order_mark_are_kept(bench: Bench) -> None:
    path = bench.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    assert (await bench.text("Read", file_path="a.txt")).startswith("     1\tone\n")
    await bench.call("Edit", file_path="a.txt", old_string="one\ntwo\n", new_string="1\n2\n")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"
    await bench.call("Write", file_path="a.txt", content="new\nall\n")
    assert path.read_bytes() == b"\xef\xbb\xbfnew\r\nall\r\n"


async def test_mixed_line_ends_are_left_alone(bench: Bench) -> None:
    path = bench.write("a.txt", b"one\r\ntwo\nthree\r\n")
    await bench.call("Edit", file_path="a.txt", old_string="two", new_string="2")
    assert path.read_bytes() == b"one\r\n2\nthree\r\n"


async def test_a_file_that_is_not_utf8_is_not_damaged(bench: Bench) -> None:
    path = bench.write("a.txt", b"caf\xe9 x")
    with pytest.raises(ToolFailure, match="not valid UTF-8"):
        await bench.call("Edit", file_path="a.txt", old_string="x", new_string="y")
    with pytest.raises(ToolFailure, match="lone surrogates"):
        await bench.call("Write", file_path="b.txt", content="\ud83c")
    assert path.read_bytes() == b"caf\xe9 x"


def test_a_file_that_has_nothing_to_read_for_now_is_an_error() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with _Steady(io.FileIO(reader)) as file, pytest.raises(BlockingIOError):
        file.read(10)
    os.close(writer)
