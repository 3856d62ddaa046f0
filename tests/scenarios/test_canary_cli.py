"""Identity contract, §2 and §7, through the program itself: nothing that it prints or logs shows what is private."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from counterfoil.events.codec import encode_envelope
from counterfoil.providers import make_provider
from tests.support.harness import CountingTool, Rig, call, turn
from tests.support.model_server import ModelServer

WIRES = ("openai_chat", "openai", "anthropic")
KEY = "CANARY-key-9876543210"
ROOT = Path(__file__).parents[2]
TYPED = "canary typed by a person"
ECHO = f"key {KEY}: call CANARY-pairing-0-0 has no output, nor has CANARY-pairing-0-1"


def bash(command: str) -> dict[str, Any]:
    return call("Bash", command=command, description="x")


SCRIPT: dict[str, Any] = {
    "pairing_prefix": "CANARY-pairing-",
    "turns": [
        turn(bash("echo one"), bash("echo two"), text="I look.") | {"reasoning": "Two things."},
        turn(call("Bash", id="CANARY-pairing-same"), call("Bash", id="CANARY-pairing-same")),
        {
            "attempts": [
                {"error": {"kind": "overloaded", "message": ECHO, "retry_after": 0.01}},
                turn(bash(f"echo {TYPED}"), call("nope")) | {"cut": True, "reasoning": "Cut."},
                turn(bash(f"echo {TYPED}"), call("nope")) | {"reasoning": "Once more."},
            ]
        },
        {"error": {"kind": "bad_request", "message": ECHO, "permanent": True}},
    ],
}


async def program(state: Path, *arguments: str) -> tuple[int, bytes]:
    """Run the command line with everything logged; its exit code and all that it printed."""
    hidden = ("COUNTERFOIL_", "OPENAI_", "ANTHROPIC_", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(state),
        "COUNTERFOIL_DEBUG": "1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "counterfoil", *arguments, "--state-dir", str(state / "s")),
        env=environment,
        cwd=state,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out


@pytest.mark.parametrize(("wire", "output"), list(zip(WIRES, ("jsonl", "json", "text"), strict=True)))
async def test_a_run_by_the_program_prints_and_logs_nothing_private(wire: str, output: str, tmp_path: Path) -> None:
    async with ModelServer(SCRIPT, require_key=KEY, count="answers") as server:
        base = server.root_url if wire == "anthropic" else server.base_url
        given = ("--provider", wire, "--base-url", base, "--model", "m", "--mode", "bypass")
        code, out = await program(tmp_path, "run", "go", *given, "--output", output)
    assert code == 1, out.decode()
    assert server.refusals == [] and len(server.requests) == 6
    assert KEY in str(server.requests[-1].headers) and b"CANARY-pairing-2-0" in server.requests[-1].raw
    assert b"CANARY" not in out, [line for line in out.decode().splitlines() if "CANARY" in line]
    if output != "text":
        assert TYPED.encode() in out or output == "json", "what a person or a tool says is shown"
    for arguments in (("sessions", "list"), ("sessions", "list", "--json"), ("asks",)):
        code, out = await program(tmp_path, *arguments)
        assert code == 0 and b"CANARY" not in out, out.decode()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_wrong_key_that_the_server_echoes_is_not_printed(wire: str, tmp_path: Path) -> None:
    echo = {"turns": [{"error": {"kind": "auth", "status": 401, "message": f"wrong key: {KEY}", "permanent": True}}]}
    async with ModelServer(echo) as server:
        base = server.root_url if wire == "anthropic" else server.base_url
        code, out = await program(tmp_path, "run", "go", "--provider", wire, "--base-url", base, "--model", "m")
    assert code == 1 and b"401" in out and b"CANARY" not in out, out.decode()


@pytest.mark.parametrize("wire", WIRES)
async def test_no_repr_of_what_an_embedder_holds_shows_what_is_private(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    act = CountingTool("act")
    script = {
        "pairing_prefix": "CANARY-pairing-",
        "turns": [turn(call("act"), call("act"), text="So.") | {"reasoning": "Hm."}, {"text": "Done."}],
    }
    async with ModelServer(script, require_key=KEY) as server:
        provider = make_provider(wire, base_url=server.base_url, api_key=KEY)
        rig = Rig({}, act, provider=lambda meta: provider)
        async with await rig.session() as session:
            watch = session.watch()
            outcome = await session.prompt("go")
            state = session.state
            shown = [repr(o) for o in (session, provider, rig.engine, rig.store, outcome, session._ctx, state)]
            shown += [repr(i) for i in state.history.items] + [str(state.meta), repr(act.runs)]
    assert outcome.text == "Done." and server.refusals == []
    shown += [part for e in [e async for e in watch] for part in (repr(e), encode_envelope(e).decode())]
    shown += [msgspec.json.encode(outcome).decode(), *map(str, vars(outcome) if hasattr(outcome, "__dict__") else ())]
    shown += [repr(vars(record)) + str(record.exc_info) for record in caplog.records]
    assert [text for text in shown if "CANARY" in text] == []
