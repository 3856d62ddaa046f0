from __future__ import annotations

import asyncio
import shutil
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from counterfoil.errors import ToolFailure
from counterfoil.events import TextPart, text_of
from counterfoil.tools import ToolOptions
from tests.tools.support import Bench, gone, pid_in

GRANDCHILD = "bash -c 'echo $$ > pid; exec sleep 600' & wait"


async def test_output_and_errors_come_in_the_order_written(bench: Bench) -> None:
    output = await bench.call("Bash", command="echo one; echo two >&2; echo three; exit 3")
    assert text_of(output.parts) == "one\ntwo\nthree\n[exit code 3]"
    assert output.is_error


async def test_there_is_nothing_to_read_and_the_folder_is_the_workspace(bench: Bench) -> None:
    assert await bench.text("Bash", command="cat; pwd") == str(bench.workspace.resolve())
    assert await bench.text("Bash", command="true") == "[no output, exit code 0]"


async def test_a_death_by_signal_is_told(bench: Bench) -> None:
    assert await bench.text("Bash", command="kill -9 $$") == "[exit code 137, ended by SIGKILL]"


async def test_a_time_out_kills_the_grandchildren_too(bench: Bench) -> None:
    output = await bench.call("Bash", command=GRANDCHILD, timeout=500)
    assert "timed out after 0.5 s" in text_of(output.parts)
    assert output.is_error
    assert await gone(await pid_in(bench.workspace / "pid"))


async def test_a_command_that_ignores_the_request_to_end_is_killed(bench: Bench) -> None:
    began = time.monotonic()
    output = await bench.call("Bash", command="trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", timeout=300)
    assert output.is_error
    assert time.monotonic() - began < 5
    assert await gone(await pid_in(bench.workspace / "pid"))


async def test_a_child_that_keeps_the_output_open_does_not_hang_the_call(bench: Bench) -> None:
    began = time.monotonic()
    output = await bench.call("Bash", command="bash -c 'echo $$ > pid; exec sleep 600' & until [ -s pid ]; do :; done")
    assert time.monotonic() - began < 5
    assert "left behind were stopped" in text_of(output.parts)
    assert not output.is_error
    assert await gone(await pid_in(bench.workspace / "pid"))


async def test_a_child_that_ended_by_itself_was_not_left_behind(bench: Bench) -> None:
    ended = "! kill -0 $(cat p) 2>/dev/null || grep -q '^State:.Z' /proc/$(cat p)/status"
    text = await bench.text("Bash", command=f"(true & echo $! > p); until {ended}; do :; done")
    assert text == "[no output, exit code 0]"


async def test_cancelling_kills_the_group_before_the_call_returns(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.call("Bash", command=GRANDCHILD))
    pid = await pid_in(bench.workspace / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)


async def test_a_hundred_megabytes_take_bounded_memory_and_the_text_names_the_file(bench: Bench) -> None:
    tracemalloc.start()
    output = await bench.call("Bash", command="echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    part = output.parts[0]
    assert isinstance(part, TextPart)
    assert peak < 16_000_000
    assert part.text.startswith("first\nxxx")
    assert part.text.endswith("xxx\nlast")
    assert part.truncated_bytes > 99_000_000
    (spill,) = bench.output_dir.iterdir()
    assert f"the first {spill.stat().st_size} bytes are in {spill}" in part.text
    assert spill.stat().st_size == 50 * 1024 * 1024


async def test_long_output_is_whole_in_the_file(bench: Bench) -> None:
    text = await bench.text("Bash", command="seq 1 100000")
    (spill,) = bench.output_dir.iterdir()
    assert spill.read_text() == "".join(f"{n}\n" for n in range(1, 100_001))
    assert f"the whole is in {spill}" in text
    assert len(text.encode()) < 256 * 1024


async def test_binary_output_becomes_text(bench: Bench) -> None:
    text = await bench.text("Bash", command="head -c 300000 /dev/urandom")
    assert len(text.encode()) <= 256 * 1024


async def test_progress_is_told(bench: Bench) -> None:
    await bench.call("Bash", command="printf 'step one\\n'")
    assert bench.progress == ["step one"]


async def test_a_command_that_can_not_start_was_not_run(bench: Bench) -> None:
    bench.workspace.rmdir()
    with pytest.raises(ToolFailure) as caught:
        await bench.call("Bash", command="true")
    assert caught.value.executed == "no"


async def test_a_background_command_is_read_bit_by_bit_and_killed(bench: Bench) -> None:
    command = "echo start; until [ -e go ]; do sleep 0.01; done; printf 'more €'; touch written; sleep 600"
    assert "shell_1" in await bench.text("Bash", command=command, run_in_background=True)
    seen = ""
    async with asyncio.timeout(10):
        while "start" not in seen:
            seen += await bench.text("BashOutput", bash_id="shell_1")
            await asyncio.sleep(0.005)
        bench.write("go", "")
        while "more €" not in seen:
            seen += await bench.text("BashOutput", bash_id="shell_1")
            await asyncio.sleep(0.005)
    assert seen.count("start") == 1
    assert "shell_1 was stopped" in await bench.text("KillShell", shell_id="shell_1")
    assert "had ended already" in await bench.text("KillShell", shell_id="shell_1")
    assert "killed" in await bench.text("BashOutput", bash_id="shell_1")


async def test_a_filter_shows_the_lines_that_match(bench: Bench) -> None:
    await bench.call("Bash", command="printf 'ok 1\\nbad\\nok 2\\n'; touch done", run_in_background=True)
    await bench.call("Bash", command="until [ -e done ]; do :; done")
    seen = ""
    async with asyncio.timeout(10):
        while "ended" not in seen:
            seen += await bench.text("BashOutput", bash_id="shell_1", filter="^ok|(a+)+$b")
            await asyncio.sleep(0.005)
    assert "ok 1\nok 2" in seen
    assert "bad" not in seen


async def test_a_background_command_has_a_bounded_buffer(bench: Bench) -> None:
    await bench.call("Bash", command="seq 1 300000; touch done; sleep 600", run_in_background=True)
    await bench.call("Bash", command="until [ -e done ]; do sleep 0.01; done")
    text = await bench.text("BashOutput", bash_id="shell_1")
    assert "bytes left out" in text
    assert len(text) <= 201_000


async def test_closing_kills_all_background_commands(bench: Bench) -> None:
    await bench.call("Bash", command=GRANDCHILD, run_in_background=True)
    pid = await pid_in(bench.workspace / "pid")
    await bench.tools.close()
    assert await gone(pid)
    with pytest.raises(ToolFailure, match="closed"):
        await bench.call("Bash", command="true", run_in_background=True)


async def test_an_unknown_shell_is_an_error_that_names_the_known(bench: Bench) -> None:
    with pytest.raises(ToolFailure, match="there are: none"):
        await bench.call("BashOutput", bash_id="shell_9")


async def test_a_sandbox_that_is_not_there_is_never_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, ToolOptions(sandbox="bwrap"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else f"/bin/{name}")
    with pytest.raises(ToolFailure, match="bwrap is not installed") as caught:
        await bench.call("Bash", command="touch ran")
    assert caught.value.executed == "no"
    assert not (bench.workspace / "ran").exists()


@pytest.mark.skipif(shutil.which("bwrap") is None or sys.platform != "linux", reason="needs bubblewrap")
async def test_the_sandbox_writes_the_workspace_and_nothing_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ToolOptions(sandbox="bwrap"))
    text = await bench.text(
        "Bash", command=f"touch here && ! touch {bench.outside}/x && ! touch /etc/x; ls /sys/class/net"
    )
    assert (bench.workspace / "here").exists()
    assert not (bench.outside / "x").exists()
    assert "Read-only" in text or "No such file" in text
