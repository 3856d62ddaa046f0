"""One process drives a session and waits at its ask; another one answers. Kills at every point between them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.engine.mail import AnswerLetter, encode_letter, heard
from counterfoil.events import AskSettled, CallStarted, Receipt
from counterfoil.events.codec import event_of
from counterfoil.identity import AskID, SessionID
from counterfoil.ports.store import LetterNo
from counterfoil.stores import SqliteStore, open_store
from counterfoil.stores.rows import verify
from tests.scenarios.waiting import rig_on
from tests.support.harness import ME

pytestmark = pytest.mark.crash
ROOT = Path(__file__).parents[2]

Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a Python module as a process of its own. Whatever is left at the end is killed."""
    children: list[Process] = []
    home = tmp_path / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COUNTERFOIL_", "XDG_"))}
    env |= {"HOME": str(home), "COUNTERFOIL_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def begin(module: str, *arguments: str) -> Process:
        child = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=env,
            start_new_session=True,
        )
        children.append(child)
        return child

    yield begin
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


class Waiting:
    """The first process, once it waits at its ask."""

    def __init__(self, start: Start, folder: Path, way: str = "plain") -> None:
        self._start = start
        self._folder = folder
        self.process = start("tests.scenarios.waiting", str(folder), way)
        session, self.ask = self.line().split()
        self.session = SessionID(session)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def answers(self, verdict: str, *more: str) -> Process:
        """Another process that answers."""
        return self._start("counterfoil", "answer", self.ask, verdict, *more)

    async def post(self, verdict: str = "allow") -> LetterNo:
        """Leave an answer as `counterfoil answer` does while the session is held."""
        letter = AnswerLetter(
            ask_id=AskID(self.ask),
            verdict=verdict,  # type: ignore[arg-type]
            idempotency_key="k",
            principal=ME,
        )
        async with opened(self._folder) as store:
            return await store.post(self.session, encode_letter(letter))

    async def goes_on(self) -> str:
        """What the next process makes of the run; it must hold together."""
        async with (
            opened(self._folder) as store,
            await rig_on(store, str(self._folder)).engine.open(self.session) as session,
        ):
            return (await session.resume()).text

    async def receipts(self) -> list[Receipt]:
        """All receipts of the log, whose chain must hold."""
        async with opened(self._folder) as store:
            rows = await store.read(self.session, limit=10_000)
        assert verify(rows) is None
        events = [event_of(row) for row in rows]
        assert sum(isinstance(e, CallStarted) for e in events) <= 1
        return [e.receipt for e in events if isinstance(e, AskSettled)]

    def effects(self) -> int:
        made = self._folder / "made"
        return made.read_text().count("once") if made.exists() else 0


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteStore]:
    store = open_store(folder / "state")
    try:
        yield store
    finally:
        await store.close()


def ended(process: Process) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


async def test_the_process_that_waits_goes_on_at_once(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path)
    code, out, err = ended(first.answers("allow"))
    assert (code, err) == (0, "") and "goes on with it" in out
    assert first.line().startswith("started ")
    assert first.line() == "done all done"
    assert len(await first.receipts()) == first.effects() == 1


async def test_from_letter_to_start_it_takes_less_than_a_second(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path)
    async with opened(tmp_path) as store:
        await store.head(first.session)
        letter = AnswerLetter(ask_id=AskID(first.ask), verdict="allow", idempotency_key="k", principal=ME)
        posted = time.time()
        number = await store.post(first.session, encode_letter(letter))
        replied = await store.wait_reply(first.session, number)
        back = time.time()
    started = float(first.line().removeprefix("started "))
    assert heard(replied) == (await first.receipts())[0]
    print(f"\nletter to start {1000 * (started - posted):.1f} ms, to its reply {1000 * (back - posted):.1f} ms")
    assert started - posted < 1


async def test_a_holder_killed_at_its_ask_leaves_it_to_be_answered(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path)
    first.kill()
    code, out, _ = ended(first.answers("allow"))
    assert code == 0 and f"counterfoil resume {first.session}" in out
    assert await first.goes_on() == "all done"
    assert first.effects() == 1 and len(await first.receipts()) == 1


async def test_a_holder_killed_with_an_unread_letter_leaves_it_to_the_next(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path, "deaf")
    number = await first.post()
    first.kill()
    assert await first.receipts() == []
    assert await first.goes_on() == "all done"
    (receipt,) = await first.receipts()
    async with opened(tmp_path) as store:
        assert heard(await store.wait_reply(first.session, number)) == receipt
    assert first.effects() == 1


async def test_who_waits_for_a_holder_that_dies_answers_by_itself(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path, "deaf")
    answering = first.answers("deny")
    async with opened(tmp_path) as store:
        await store.wait_letters(first.session)
    assert answering.poll() is None
    first.kill()
    code, out, _ = ended(answering)
    assert code == 0 and "counterfoil resume" in out
    (receipt,) = await first.receipts()
    assert receipt.verdict == "deny"
    assert await first.goes_on() == "all done"
    assert first.effects() == 0


async def test_a_holder_killed_between_receipt_and_reply_leaves_one_receipt(start: Start, tmp_path: Path) -> None:
    first = Waiting(start, tmp_path, "mute")
    code, _, _ = ended(first.answers("allow"))
    assert first.process.wait(30) == -signal.SIGKILL
    assert code == 0
    (receipt,) = await first.receipts()
    assert receipt.verdict == "allow"
    await first.goes_on()
    assert len(await first.receipts()) == 1 and first.effects() <= 1


@pytest.mark.parametrize("held", [True, False])
async def test_of_two_answers_at_once_one_is_told_that_it_is_settled(start: Start, tmp_path: Path, held: bool) -> None:
    first = Waiting(start, tmp_path)
    if not held:
        first.kill()
    answering = {verdict: first.answers(verdict) for verdict in ("allow", "deny")}
    said = {verdict: ended(process) for verdict, process in answering.items()}
    (receipt,) = await first.receipts()
    (lost,) = set(said) - {receipt.verdict}
    assert said[receipt.verdict][0] == 0
    assert said[lost][0] == 1
    assert f"ask {first.ask} is settled: {receipt.verdict} by " in said[lost][2]
    if not held:
        assert await first.goes_on() == "all done"
    else:
        assert first.process.wait(30) == 0
    assert first.effects() == (receipt.verdict == "allow")
