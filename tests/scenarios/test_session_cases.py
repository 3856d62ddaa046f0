"""The field cases S1, S2, S3 and S6 end to end: real processes, a real database, the three wire formats."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from counterfoil.engine import Session
from counterfoil.errors import SessionHeld, StoreUnavailable
from counterfoil.events import CallFinished, CallStarted, TextPart, text_of
from counterfoil.identity import START, SessionID
from counterfoil.ports import ToolOutput
from counterfoil.providers import make_provider
from counterfoil.state import TurnItem
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import SqliteStore
from counterfoil.tools import BuiltinTools
from counterfoil.tools.function import function_tool
from tests.support.harness import CountingTool, Rig, call, hang, turn
from tests.support.model_server import ModelServer

WIRES = ("openai_chat", "openai", "anthropic")
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "COLUMNS": "200"}


class Child:
    """A process that drives a session and hangs in a tool."""

    def __init__(self, process: asyncio.subprocess.Process, session: SessionID) -> None:
        self.process, self.session = process, session

    async def says(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 30)
        assert line, "the process ended"
        return line.decode().strip()

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def child(folder: Path, wire: str, url: str) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.scenarios.child", str(folder), wire, url),
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=asyncio.subprocess.PIPE,
    )
    started = Child(process, SessionID(""))
    try:
        started.session = SessionID(await started.says())
        yield started
    finally:
        await started.kill()


async def counterfoil(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """A command line in a process of its own: exit code, what it printed, what it said of faults."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "counterfoil", *arguments, "--state-dir", str(folder)),
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def rig_on(folder: Path, server: ModelServer, wire: str, *tools: Any) -> Rig:
    return Rig(
        {},
        *tools,
        store=SqliteStore(folder),
        provider=lambda meta: make_provider(wire, base_url=server.base_url, api_key="k"),
    )


# ---- S1 -----------------------------------------------------------------------------------------------------

OPEN = {
    "turns": [turn(call("look"), call("look"), call("act"), text="I begin.") | {"reasoning": "Hm."}],
    "end": "Done.",
}


@pytest.mark.crash
@pytest.mark.parametrize("wire", WIRES)
async def test_s1_a_process_that_is_killed_in_a_tool_leaves_a_session_that_any_prompt_goes_on_with(
    wire: str, tmp_path: Path
) -> None:
    script = {
        "turns": [turn(call("act", n=1), call("act", n=2), text="I begin.") | {"reasoning": "Hm."}],
        "end": "Done.",
    }
    async with ModelServer(script) as server:
        async with child(tmp_path, wire, server.base_url) as first:
            tool, running = (await first.says()).split()
            await first.kill()
        act = CountingTool("act")
        rig = rig_on(tmp_path, server, wire, act)
        async with await rig.engine.open(first.session) as session:
            assert (await session.prompt("and now?")).text == "Done."
    assert server.refusals == [] and tool == "act" and act.runs == []
    log = await rig.log(session.id)
    assert [(r.tool_call_id == running, r.status, r.executed) for r in log if isinstance(r, CallFinished)] == [
        (True, "interrupted", "unknown"),
        (False, "interrupted", "no"),
    ]
    body = server.requests[-1].raw.decode()
    assert body.index("not known whether its effects happened") < body.index("Not run") < body.index("and now?")
    assert verify(await rig.store.read(session.id, START, 1000)) is None
    await rig.store.close()


@pytest.mark.crash
async def test_s1_resuming_runs_reads_again_under_their_own_ids_and_nothing_else(tmp_path: Path) -> None:
    async with ModelServer(OPEN) as server:
        async with child(tmp_path, "anthropic", server.base_url) as first:
            running = {(await first.says()).split()[1] for _ in range(2)}
            await first.kill()
        look, act = CountingTool("look", read_only=True), CountingTool("act")
        rig = rig_on(tmp_path, server, "anthropic", look, act)
        async with await rig.engine.open(first.session) as session:
            assert (await session.resume()).text == "Done."
    assert server.refusals == []
    assert {call_id for call_id, _ in look.runs} == running and len(act.runs) == 1
    starts = [e.tool_call_id for e in await rig.log(session.id) if isinstance(e, CallStarted)]
    assert len(starts) == 5 and len(set(starts)) == 3
    await rig.store.close()


# ---- S2 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
async def test_s2_three_open_calls_that_are_interrupted_have_their_results_before_the_next_prompt(
    wire: str, tmp_path: Path
) -> None:
    act = CountingTool("act", behaviour=hang)
    async with ModelServer({"turns": [turn(*(call("act", n=n) for n in range(3)))], "end": "Fine."}) as server:
        rig = rig_on(tmp_path, server, wire, act)
        async with await rig.session(provider=wire) as session:
            running = asyncio.ensure_future(session.prompt("go"))
            await act.started.wait()
            await session.steer("hurry up")
            session.cancel()
            assert (await running).stop_reason == "cancelled"
            assert (await session.prompt("something else")).text == "Fine."
    assert server.refusals == []
    body = server.requests[-1].raw.decode()
    assert body.count("Not run: the run was cancelled") == 2
    assert body.rindex("Not run") < body.index("hurry up") < body.index("something else")
    results = [e for e in await rig.log(session.id) if isinstance(e, CallFinished)]
    assert [(r.status, r.executed) for r in results] == [("cancelled", e) for e in ("unknown", "no", "no")]
    await rig.store.close()


# ---- S3 -----------------------------------------------------------------------------------------------------

ODD = (
    "sep \u2028 par \u2029 nel \u0085 nul \0 lone \ud83c end \U0001f600 "
    "ansi \x1b[31mred\x1b[0m \x1b]0;title\x07 bom \ufeff"
)
BYTES = r"printf 'bytes \377\376 \303( nul \000 esc \033[2J\033[1;1H sep \342\200\250 end\n'"


def odd_tools() -> list[Any]:
    """The same text by a tool of an embedder, by a function, and by a real command."""

    def say() -> str:
        """Say odd things."""
        return ODD

    return [
        CountingTool("raw", behaviour=lambda ctx, arguments: ToolOutput(parts=(TextPart(text=ODD),))),
        function_tool(say, read_only=True),
        CountingTool("fails", behaviour=_fail),
    ]


def _fail(ctx: Any, arguments: Any) -> str:
    raise RuntimeError(ODD)


def texts(session: Session) -> list[str]:
    return [text_of(r.parts) for i in session.state.history.items if isinstance(i, TurnItem) for r in i.results]


@pytest.mark.parametrize("wire", WIRES)
async def test_s3_odd_output_is_stored_reloaded_replayed_and_shown(wire: str, tmp_path: Path) -> None:
    calls = [call("raw"), call("say"), call("fails"), call("raw", odd="typed \u2028 by the model")]
    async with ModelServer({"turns": [turn(*calls)], "end": "Done."}) as server:
        rig = rig_on(tmp_path, server, wire, *odd_tools())
        async with await rig.session(provider=wire) as session:
            assert (await session.prompt("go")).text == "Done."
            said = texts(session)
        await rig.store.close()
        rig = rig_on(tmp_path, server, wire, *odd_tools())
        async with await rig.engine.open(session.id) as session:
            assert texts(session) == said
            assert (await session.prompt("again")).text == "Done."
    assert server.refusals == [] and len(said) == 4
    assert all("sep \u2028 par \u2029 nel \u0085" in text and "end \U0001f600" in text for text in said)
    assert not [text for text in said for sign in ("\0", "\x1b", "\ud83c") if sign in text]
    assert ["nul ␀ lone \ufffd end" in text for text in said] == [True, True, True, True]
    assert ["␛[31mred" in text for text in said] == [True, False, True, True], "what is a tool's own, or taken out"
    sent = strings(json.loads(server.requests[-1].raw))
    assert all(any(text in found for found in sent) for text in said)
    await rig.store.close()
    await check_shown(tmp_path, session.id)


def strings(value: Any) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in strings(item)]


async def check_shown(folder: Path, session: SessionID) -> None:
    """What people and programs are shown: whole lines, and nothing that a terminal would obey."""
    for command in (("inspect",), ("inspect", "--json"), ("sessions", "show"), ("sessions", "export")):
        code, out, err = await counterfoil(folder, *command, session)
        assert code == 0 and out and not [sign for sign in ("\0", "\x1b") if sign in out], (command, err)
        if command != ("inspect",):
            assert "end \U0001f600" in out, command
        if command == ("sessions", "export"):
            assert all(isinstance(json.loads(line), dict) for line in out.removesuffix("\n").split("\n"))


async def test_s3_the_bytes_of_a_real_command_and_of_a_file_are_text_everywhere(tmp_path: Path) -> None:
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    (work / "odd.txt").write_bytes(b"one \xff\xfe \x1b[31m \xe2\x80\xa8 two\r\nthree \xc3")
    calls = [
        call("Bash", command=BYTES, description="print odd bytes"),
        call("Read", file_path=str(work / "odd.txt")),
        call("Grep", pattern="two", path=str(work), output_mode="content"),
    ]
    async with ModelServer({"turns": [turn(*calls)], "end": "Done."}) as server:
        rig = rig_on(state, server, "openai_chat")
        rig.toolset = BuiltinTools(work, environment=dict(os.environ))
        async with await rig.session(provider="openai_chat") as session:
            assert (await session.prompt("go")).text == "Done."
    said = texts(session)
    assert "esc  sep \u2028 end" in said[0] and "bytes \ufffd\ufffd \ufffd( nul ␀" in said[0]
    assert "two" in said[1] and "three \ufffd" in said[1]
    assert not [text for text in said for sign in ("\0", "\x1b") if sign in text]
    assert server.refusals == [] and (await rig.engine.load(session.id)) == session.state
    await rig.store.close()


# ---- S6 -----------------------------------------------------------------------------------------------------


@pytest.mark.crash
async def test_s6_a_second_process_is_told_who_drives_the_session_and_gets_it_when_that_one_is_killed(
    tmp_path: Path,
) -> None:
    script = {"turns": [turn(call("act"))], "end": "Done."}
    async with ModelServer(script) as server, child(tmp_path, "openai_chat", server.base_url) as first:
        await first.says()
        rig = rig_on(tmp_path, server, "openai_chat", CountingTool("act"))
        before = await rig.store.head(first.session)
        with pytest.raises(SessionHeld) as refused:
            await rig.engine.open(first.session)
        assert str(first.process.pid) in refused.value.message and platform.node() in refused.value.message
        code, out, err = await counterfoil(tmp_path, "run", "me too", "--resume", first.session)
        assert code != 0 and out == "" and str(first.process.pid) in err and "Traceback" not in err
        code, out, err = await counterfoil(tmp_path, "sessions", "show", first.session)
        assert code == 0 and "go" in out, "it can be read meanwhile"
        assert await rig.store.head(first.session) == before, "nothing interleaves"
        await first.kill()
        async with await rig.engine.open(first.session) as session:
            assert (await session.prompt("now me")).text == "Done."
    assert server.refusals == []
    assert verify(await rig.store.read(session.id, START, 1000)) is None
    await rig.store.close()


async def test_s6_a_lease_is_free_again_when_its_session_is_closed_and_not_before(tmp_path: Path) -> None:
    async with ModelServer({"turns": []}) as server:
        one, two = (rig_on(tmp_path, server, "openai_chat") for _ in range(2))
        async with await one.session() as session:
            with pytest.raises((SessionHeld, StoreUnavailable)):
                await two.engine.open(session.id)
        async with await two.engine.open(session.id) as again:
            assert (await again.prompt("go")).stop_reason == "end_turn"
    for rig in (one, two):
        await rig.store.close()
