"""SIGKILL at every durable step of a real run; then another process goes on. No effect happens twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from counterfoil.events import CallAccepted, CallFinished, CallStarted, HookRecorded, RunFinished, RunStarted
from counterfoil.events.codec import event_of
from counterfoil.identity import START
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
ROOT = Path(__file__).parents[2]
STEPS = 24
"""More than the run has: the last ones show that the run ends by itself."""


def run(folder: Path, command: str, step: int = 0, when: str = "before") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.child", str(folder), command, str(step), when],
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


async def check_log(folder: Path) -> None:
    """What must hold of the log and the files, wherever the process died."""
    store = SqliteStore(folder / "state")
    (found,) = await store.sessions()
    rows = await store.read(found.session_id, START, 10_000)
    await store.close()
    assert verify(rows) is None
    log = [event_of(row) for row in rows]
    accepted = {e.tool_call_id: e for e in log if isinstance(e, CallAccepted)}
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
    if call.tool in ("append", "asked"):
        assert starts <= 1 and times <= 1, f"{call.tool} ran {times} times"
    if result.executed == "yes":
        assert times >= 1
    elif result.executed == "no":
        assert times == 0
    else:
        assert call.tool in ("append", "asked") and result.status == "interrupted" and starts == 1
