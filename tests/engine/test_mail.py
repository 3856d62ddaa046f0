"""Letters: whoever doesn't drive a session answers, cancels and steers through the store."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from counterfoil.engine import Session, mail
from counterfoil.engine.mail import AnswerLetter, CancelLetter, SteerLetter, encode_letter, heard
from counterfoil.errors import (
    AskIsSettled,
    AskNotFound,
    AskWithdrawn,
    CodecError,
    CounterfoilError,
    NotResumable,
    StoreUnavailable,
    UsageError,
)
from counterfoil.events import AskOpened, AskSettled, Principal, Receipt, RunFinished
from counterfoil.identity import AskID, RunID
from counterfoil.ports import Lease
from counterfoil.ports.store import LETTER_BYTES, LetterNo
from counterfoil.stores.memory import MemoryStore
from tests.support.harness import ME, CountingTool, Rig, call, first, hang, turn

THEM = Principal(kind="local", name="next door")
ONE_CALL = {"turns": [turn(call("act", a=1)), {"text": "done"}]}


def answer(ask_id: str, verdict: Any = "allow", *, key: str = "k", note: str = "", scope: Any = "once") -> AnswerLetter:
    return AnswerLetter(
        ask_id=AskID(ask_id), verdict=verdict, idempotency_key=key, principal=THEM, note=note, scope=scope
    )


async def post(rig: Rig, session: Session, letter: mail.AnyLetter) -> LetterNo:
    return await rig.store.post(session.id, encode_letter(letter))


async def told(rig: Rig, session: Session, letter: mail.AnyLetter) -> Receipt | None:
    """Post and hear the reply."""
    return heard(await rig.store.wait_reply(session.id, await post(rig, session, letter)))


async def asked(session: Session) -> tuple[asyncio.Task[Any], Any]:
    """A run that waits at its ask; the ask."""
    watching = asyncio.ensure_future(first(session, AskOpened))
    running = asyncio.ensure_future(session.prompt("go"))
    return running, (await watching).ask


async def parked(rig: Rig) -> tuple[Session, Any]:
    """A closed session with an open ask."""
    session = await rig.session("default")
    running, ask = await asked(session)
    session.park()
    assert (await running).parked
    await session.close()
    return session, ask


async def test_an_answer_by_letter_lets_the_run_go_on() -> None:
    tool = CountingTool("act")
    rig = Rig(ONE_CALL, tool)
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        receipt = await told(rig, session, answer(ask.ask_id, note="fine"))
        assert receipt is not None and (receipt.verdict, receipt.decided_by, receipt.note) == ("allow", THEM, "fine")
        assert (await running).text == "done"
        (settled,) = [e for e in await rig.log(session.id) if isinstance(e, AskSettled)]
        assert settled.receipt == receipt
    assert tool.runs == [(ask.tool_call_id, {"a": 1})]


async def test_of_two_letters_one_settles_and_the_other_is_told_by_which() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        one, two = [await post(rig, session, answer(ask.ask_id, v, key=v)) for v in ("deny", "allow")]
        receipt = heard(await rig.store.wait_reply(session.id, one))
        with pytest.raises(AskIsSettled) as caught:
            heard(await rig.store.wait_reply(session.id, two))
        assert caught.value.receipt == receipt
        await running
    assert (await rig.kinds(session.id)).count("ask.settled") == 1


async def test_letters_are_read_before_a_run_goes_on() -> None:
    tool = CountingTool("act")
    rig = Rig(ONE_CALL, tool)
    session, ask = await parked(rig)
    number = await post(rig, session, answer(ask.ask_id))
    async with await rig.engine.open(session.id) as again:
        assert (await again.resume()).text == "done"
    receipt = heard(await rig.store.wait_reply(session.id, number))
    assert receipt is not None and receipt.decided_by == THEM
    assert len(tool.runs) == 1 and (await rig.kinds(session.id)).count("ask.opened") == 1


async def test_a_letter_is_read_before_a_new_prompt_withdraws_its_ask() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    session, ask = await parked(rig)
    number = await post(rig, session, answer(ask.ask_id, "deny"))
    async with await rig.engine.open(session.id) as again:
        await again.prompt("something else")
    receipt = heard(await rig.store.wait_reply(session.id, number))
    assert receipt is not None and receipt.verdict == "deny"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"letter":"later.kind"}',
        b'{"letter":"answer","ask_id":7}',
        b'{"letter":"answer","ask_id":"a","verdict":"maybe","idempotency_key":"k","principal":{"kind":"local","name":""}}',
        b"[" * 60_000,
    ],
)
async def test_a_letter_that_cannot_be_read_is_refused_and_the_next_one_is_read(body: bytes) -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        bad = await rig.store.post(session.id, body)
        assert await told(rig, session, answer(ask.ask_id))
        with pytest.raises(CounterfoilError):
            heard(await rig.store.wait_reply(session.id, bad))
        assert (await running).text == "done"


async def test_the_poster_meets_the_error_that_the_holder_met() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        with pytest.raises(AskNotFound, match="ask_other"):
            await told(rig, session, answer("ask_other"))
        with pytest.raises(UsageError, match="offers allow, deny"):
            await told(rig, session, answer(ask.ask_id, "release"))
        session.cancel()
        await running
        with pytest.raises(AskWithdrawn, match="was withdrawn: the run was cancelled"):
            await told(rig, session, answer(ask.ask_id))


async def test_a_fault_of_our_own_is_an_error_to_the_poster_and_the_next_letter_is_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        monkeypatch.setattr(session, "steer", None)
        assert session.state.run is not None
        with caplog.at_level(logging.CRITICAL, "counterfoil.engine"), pytest.raises(CounterfoilError, match="handled"):
            await told(rig, session, SteerLetter(run_id=session.state.run.run_id, text="x", principal=THEM))
        assert await told(rig, session, answer(ask.ask_id))
        await running


class ForgetfulStore(MemoryStore):
    """Loses replies: as if the holder died before it wrote them, or the disk were full for once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.fault: Exception | None = None
        self.dead = True

    async def reply(self, lease: Lease, number: LetterNo, body: bytes) -> None:
        self.asked.set()
        if self.fault is not None:
            fault, self.fault, self.dead = self.fault, None, False
            raise fault
        if self.dead:
            await asyncio.Event().wait()
        await super().reply(lease, number, body)


async def test_a_holder_that_dies_between_receipt_and_reply_leaves_one_answer() -> None:
    store = ForgetfulStore()
    tool = CountingTool("act")
    rig = Rig(ONE_CALL, tool, store=store)
    session = await rig.session("default")
    running, ask = await asked(session)
    number = await post(rig, session, answer(ask.ask_id))
    await store.asked.wait()
    await running
    await session.close()
    assert await store.replied(session.id, number) is None
    store.dead = False
    async with await rig.engine.open(session.id) as again:
        receipt = heard(await store.wait_reply(session.id, number))
        assert again.state.receipts[ask.ask_id] == receipt
    assert (await rig.kinds(session.id)).count("ask.settled") == 1 and len(tool.runs) == 1


async def test_a_store_that_fails_for_once_gets_the_letter_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "PAUSE", 0)
    store = ForgetfulStore()
    store.fault = StoreUnavailable("full")
    rig = Rig(ONE_CALL, CountingTool("act"), store=store)
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        assert await told(rig, session, answer(ask.ask_id))
        await running
    assert (await rig.kinds(session.id)).count("ask.settled") == 1


async def test_a_driven_run_is_cancelled_by_letter_and_another_one_is_not() -> None:
    tool = CountingTool("act", behaviour=hang)
    rig = Rig(ONE_CALL, tool)
    async with await rig.session() as session:
        running = asyncio.ensure_future(session.prompt("go"))
        await tool.started.wait()
        assert session.state.run is not None
        with pytest.raises(UsageError, match="is over"):
            await told(rig, session, CancelLetter(run_id=RunID("run_before"), principal=THEM))
        assert not running.done()
        await told(rig, session, CancelLetter(run_id=session.state.run.run_id, principal=THEM))
        assert (await running).stop_reason == "cancelled"


async def test_a_parked_run_is_cancelled_by_a_letter_that_was_left_and_a_new_one_is_not() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    session, ask = await parked(rig)
    assert session.state.run is not None
    number = await post(rig, session, CancelLetter(run_id=session.state.run.run_id, principal=THEM))
    async with await rig.engine.open(session.id) as again:
        with pytest.raises(NotResumable):
            await again.resume()
        assert ask.ask_id in again.state.withdrawn
        assert (await again.prompt("on")).stop_reason == "end_turn"
    assert heard(await rig.store.wait_reply(session.id, number)) is None
    stops = [e.stop_reason for e in await rig.log(session.id) if isinstance(e, RunFinished)]
    assert stops == ["cancelled", "end_turn"]


async def test_a_steer_by_letter_is_input_for_the_run() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        assert session.state.run is not None
        run_id = session.state.run.run_id
        await told(rig, session, SteerLetter(run_id=run_id, text="in blue", principal=THEM))
        await told(rig, session, answer(ask.ask_id))
        await running
        with pytest.raises(UsageError, match="is over"):
            await told(rig, session, SteerLetter(run_id=run_id, text="in red", principal=THEM))
    log = str(await rig.log(session.id))
    assert "in blue" in log and "in red" not in log


async def test_long_texts_are_refused_before_they_are_posted_and_long_receipts_are_cut() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    with pytest.raises(UsageError, match="too long"):
        encode_letter(answer("a", note="x" * LETTER_BYTES))
    async with await rig.session("default") as session:
        running, ask = await asked(session)
        await session.answer(ask.ask_id, "deny", principal=ME, note="n" * 2 * LETTER_BYTES)
        with pytest.raises(AskIsSettled) as caught:
            await told(rig, session, answer(ask.ask_id))
        assert caught.value.receipt.verdict == "deny"
        await running


async def test_a_reply_that_cannot_be_read_is_said() -> None:
    for body in (b"", b"{}", b'{"reply":"later"}', b"\xff"):
        with pytest.raises(CodecError):
            heard(body)


async def test_closing_reads_no_more_and_leaves_no_task() -> None:
    rig = Rig(ONE_CALL, CountingTool("act"))
    before = asyncio.all_tasks()
    session = await rig.session("default")
    await session.close()
    assert asyncio.all_tasks() == before
    number = await post(rig, session, answer("ask_other"))
    assert await rig.store.replied(session.id, number) is None
