"""SIGKILL at every durable step of a real run; then another process goes on. No effect happens twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from counterfoil.events import (
    AskOpened,
    AskSettled,
    AskWithdrawn,
    CallAccepted,
    CallFinished,
    CallHeld,
    CallStarted,
    Event,
    HookRecorded,
    RunFinished,
    RunStarted,
)
from counterfoil.events.codec import event_of
from counterfoil.identity import START, result_digest
from counterfoil.stores.rows import verify
from counterfoil.stores.sqlite import SqliteStore

pytestmark = [pytest.mark.crash]

SCRIPT = """
turns:
  - text: "Let me see."
    calls: [{tool: look, id: call_0}, {tool: look, id: call_1}, {tool: append, id: call_2}]
  - calls: [{tool: asked, id: call_0}, {tool: put, id: call_1}]
  - text: "Done."
"""
ONCE = ("append", "asked", "risky", "fetch")
"""Tools that must never run twice for one call."""
ROOT = Path(__file__).parents[2]
STEPS = 24
"""More than the run has: the last ones show that the run ends by itself."""


def run(
    folder: Path, command: str, step: int = 0, when: str = "before", answers: str = "yes"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.child", str(folder), command, str(step), when, answers],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def effects(folder: Path, name: str) -> list[str]:
    file = folder / f"{name}.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", range(2, STEPS + 1))
async def test_a_kill_at_any_durable_step_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path, step: int, when: str
) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    first = run(tmp_path, "prompt", step, when)
    if first.returncode != -signal.SIGKILL:
        assert first.returncode == 0 and "stop end_turn" in first.stdout, first.stderr
        assert step > 16
        return
    second = run(tmp_path, "resume")
    assert second.returncode == 0, second.stderr
    assert "stop end_turn" in second.stdout or "stop completed" in second.stdout, second.stdout
    await check_log(tmp_path)


GUARDED = """
turns:
  - calls: [{tool: peek, id: call_0}, {tool: peek, id: call_1}, {tool: fetch, id: call_2}]
  - calls: [{tool: risky, id: call_0}, {tool: asked, id: call_1}]
  - text: "Done."
"""
SOAK = os.environ.get("COUNTERFOIL_SOAK") == "1"
SEED = 20
LIVES = 60
"""No walk has so many: one that has isn't getting anywhere."""


@pytest.mark.parametrize("walk", range(60 if SOAK else 8))
async def test_lives_that_end_at_random_steps_lose_no_ask_and_no_result(tmp_path: Path, walk: int) -> None:
    """Lives of a few durable steps each, some in which nobody answers, until the run has come to its end."""
    (tmp_path / "script.yaml").write_text(GUARDED)
    chance = random.Random(f"{SEED}/{walk}")
    command, kills = "prompt", 0
    for _ in range(LIVES):
        step, when = chance.randint(2, 14), chance.choice(["before", "after"])
        life = run(tmp_path, command, step, when, chance.choice(["yes", "yes", "no"]))
        assert life.returncode in (0, -signal.SIGKILL), life.stderr
        kills += life.returncode != 0
        command = "resume"
        if "stop end_turn" in life.stdout or "stop completed" in life.stdout:
            break
    else:
        raise AssertionError(f"not at its end after {LIVES} lives (seed {SEED}, walk {walk})")
    print(f"walk {walk} of seed {SEED}: {kills} kills")
    await check_log(tmp_path)


def check_asks(log: list[Event]) -> None:
    """No ask is lost, none is put again once its answer is stored, no answer comes twice."""
    opened = {e.ask.ask_id: e.ask for e in log if isinstance(e, AskOpened)}
    ended = [e.receipt.ask_id for e in log if isinstance(e, AskSettled)]
    ended += [e.ask_id for e in log if isinstance(e, AskWithdrawn)]
    assert Counter(ended) == Counter(list(opened)), "each ask has one end"
    about = Counter((e.receipt.tool_call_id, e.receipt.result_digest) for e in log if isinstance(e, AskSettled))
    assert max(about.values(), default=0) <= 1, "asked again after its answer was stored"


def check_holds(log: list[Event]) -> None:
    """What was held is released as it was, once, and a guarded result never passes unheld."""
    held = {e.tool_call_id: e for e in log if isinstance(e, CallHeld)}
    tools = {e.tool_call_id: e.tool for e in log if isinstance(e, CallAccepted)}
    for e in log:
        if isinstance(e, CallFinished) and e.status == "ok" and tools[e.tool_call_id] in ("fetch", "peek", "risky"):
            assert result_digest(e.parts) == held[e.tool_call_id].result_digest
    starts = [(e.tool_call_id, e.attempt) for e in log if isinstance(e, CallStarted)]
    after_hold = [at for at, e in enumerate(log) if isinstance(e, CallStarted) and _held_before(log[:at], e)]
    assert not after_hold and len(starts) == len(set(starts)), "nothing runs again once its result is kept"


def _held_before(log: list[Event], start: CallStarted) -> bool:
    return any(isinstance(e, CallHeld) and e.tool_call_id == start.tool_call_id for e in log)


async def check_log(folder: Path) -> None:
    """What must hold of the log and the files, wherever the process died."""
    store = SqliteStore(folder / "state")
    (found,) = await store.sessions()
    rows = await store.read(found.session_id, START, 10_000)
    await store.close()
    assert verify(rows) is None
    log = [event_of(row) for row in rows]
    accepted = {e.tool_call_id: e for e in log if isinstance(e, CallAccepted)}
    check_asks(log)
    check_holds(log)
    finished = [e for e in log if isinstance(e, CallFinished)]
    started = Counter(e.tool_call_id for e in log if isinstance(e, CallStarted))
    assert Counter(e.tool_call_id for e in finished) == Counter(list(accepted)), "each call has one result"
    assert len([e for e in log if isinstance(e, RunStarted)]) == len([e for e in log if isinstance(e, RunFinished)])
    revisions = [e.record.revision for e in log if isinstance(e, HookRecorded)]
    assert revisions == sorted(set(revisions)) and revisions, "no revision comes twice, over any death"
    for result in finished:
        check_call(folder, accepted[result.tool_call_id], result, started[result.tool_call_id])


def check_call(folder: Path, call: CallAccepted, result: CallFinished, starts: int) -> None:
    """`executed` tells the truth about the file outside."""
    times = effects(folder, call.tool).count(call.tool_call_id)
    if call.tool in ONCE:
        assert starts <= 1 and times <= 1, f"{call.tool} ran {times} times"
    if result.executed == "yes":
        assert times >= 1
    elif result.executed == "no":
        assert times == 0
    else:
        assert call.tool in ONCE and result.status == "interrupted" and starts == 1
