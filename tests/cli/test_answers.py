"""Answering: what is told of an ask that is open, settled, withdrawn, or driven by another process."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import Any

import pytest

from counterfoil.engine.mail import AnswerLetter, encode_letter
from counterfoil.events import Principal
from counterfoil.identity import AskID, SessionID
from counterfoil.ports import Holder
from counterfoil.stores import open_store
from tests.cli.pty import Person
from tests.cli.support import Cli, bash, one_line

SAY = {"text": "All is done."}


def parked(cli: Cli, command: str = "touch made") -> tuple[str, str, str]:
    """A run that is parked at its ask: script, session, ask."""
    script = cli.script({"calls": [bash(command)]}, SAY)
    assert cli("run", "x", "--script", script, "--ask=wait").code == 75
    (ask,) = cli("asks", "--json").json
    return script, ask["ask"]["origin_session_id"], ask["ask"]["ask_id"]


def receipt_of(cli: Cli, session: str) -> Any:
    (call,) = cli("inspect", session, "--json").json["calls"]
    return call["asks"][0]["receipt"]


def test_a_settled_ask_is_told_with_verdict_person_and_time(cli: Cli) -> None:
    _, session, ask = parked(cli)
    assert cli("answer", ask, "deny", "--note", "no").code == 0
    for verdict in ("allow", "deny"):
        result = cli("answer", ask, verdict)
        assert result.code == 1
        line = one_line(result)
        by = receipt_of(cli, session)["decided_by"]["name"]
        assert f"ask {ask} is settled: deny by {by}, 20" in line and "changed nothing" in line


def test_the_same_key_and_verdict_is_one_answer_also_later(cli: Cli) -> None:
    script, session, ask = parked(cli)
    first = cli("answer", ask, "allow", "--key", "k1")
    assert first.code == 0
    assert cli("answer", ask, "allow", "--key", "k1") == first
    assert cli("resume", session, "--script", script).code == 0
    assert cli("answer", ask, "allow", "--key", "k1").out == first.out
    assert cli("answer", ask, "deny", "--key", "k1").code == 1
    assert cli("answer", ask, "allow", "--key", "k2").code == 1
    assert receipt_of(cli, session)["idempotency_key"] == "k1"


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_has_a_length(cli: Cli, key: str) -> None:
    _, _, ask = parked(cli)
    assert cli("answer", ask, "allow", "--key", key).code == 2
    assert len(cli("asks", "--json").json) == 1


def test_a_withdrawn_ask_is_told_with_its_reason(cli: Cli) -> None:
    script, session, ask = parked(cli)
    assert cli("run", "y", "--script", script, "--resume", session, "--ask=deny").code == 0
    result = cli("answer", ask, "allow")
    assert result.code == 1
    assert f"ask {ask} was withdrawn: the run was interrupted" in one_line(result)


def test_an_unknown_ask_is_unknown(cli: Cli) -> None:
    _, _, ask = parked(cli)
    for name in ("ask_nothing", ask[:-1], ""):
        result = cli("answer", name, "allow")
        assert result.code == 1
        assert "no ask" in one_line(result)


def test_a_damaged_log_hides_no_ask_of_another_one(cli: Cli) -> None:
    _, _, ask = parked(cli)
    cli("run", "x", "--script", cli.script(SAY))
    bad = cli("sessions", "list", "--json").json[0]["session_id"]
    with contextlib.closing(sqlite3.connect(cli.state / "counterfoil.db")) as db:
        (number,) = db.execute("select no from sessions where session_id=?", (bad,)).fetchone()
        db.execute("update events set public = 'text' where place >> 40 = ?", (number,))
        db.commit()
    assert cli("answer", ask, "deny").code == 0
    assert "is settled: deny" in one_line(cli("answer", ask, "allow"))
    assert "damaged" in one_line(cli("answer", "ask_nothing", "allow"))


def test_a_copy_of_an_ask_is_told_by_the_log_that_it_was_opened_in(cli: Cli) -> None:
    _, session, ask = parked(cli)
    assert cli("sessions", "fork", session).code == 0
    assert f"resume {session}" in cli("answer", ask, "allow").out
    assert "is settled: allow" in one_line(cli("answer", ask, "deny"))


def test_a_letter_that_nobody_reads_is_kept_and_that_is_said(cli: Cli) -> None:
    """The holder is alive and reads nothing: it hangs, or is of another kind."""
    script, session, ask = parked(cli)

    async def meanwhile() -> Any:
        store = open_store(cli.state)
        lease = await store.acquire(SessionID(session), Holder(pid=1, host="attic"))
        try:
            return await asyncio.to_thread(cli, "answer", ask, "allow", "--wait", "0")
        finally:
            await store.release(lease)
            await store.close()

    result = asyncio.run(meanwhile())
    assert result.code == 1
    line = one_line(result)
    assert "process 1 on attic" in line and "has not read the answer yet" in line and "is kept" in line
    resumed = cli("resume", session, "--script", script)
    assert (resumed.code, resumed.out) == (0, "All is done.\n")
    assert receipt_of(cli, session)["verdict"] == "allow"


def test_a_letter_that_was_left_comes_before_an_answer_that_is_given_later(cli: Cli) -> None:
    _, session, ask = parked(cli)

    async def leave() -> None:
        store = open_store(cli.state)
        letter = AnswerLetter(
            ask_id=AskID(ask), verdict="deny", idempotency_key="k", principal=Principal(kind="local", name="early")
        )
        await store.post(SessionID(session), encode_letter(letter))
        await store.close()

    asyncio.run(leave())
    assert "is settled: deny by early" in one_line(cli("answer", ask, "allow"))


def test_an_answer_from_elsewhere_ends_the_dialogue_and_the_run_goes_on(cli: Cli) -> None:
    person = Person("run", "x", "--script", cli.script({"calls": [bash("touch made")]}, SAY))
    person.sees("with a note  > ")
    (ask,) = cli("asks", "--json").json
    answered = cli("answer", ask["ask"]["ask_id"], "allow")
    assert answered.code == 0
    assert "goes on with it" in answered.out
    seen = person.sees("All is done.\n")
    who = receipt_of(cli, "last")["decided_by"]["name"]
    assert f"\ncounterfoil: Bash {ask['ask']['ask_id']}: answered elsewhere: allow by {who}\n" in seen
    assert person.leaves() == 0
    assert (cli.workspace / "made").exists()


def test_an_answer_from_elsewhere_ends_the_dialogue_of_resume_too(cli: Cli) -> None:
    script, session, ask = parked(cli)
    person = Person("resume", session, "--script", script)
    person.sees("with a note  > ")
    assert cli("answer", ask, "deny", "--note", "later").code == 0
    assert "answered elsewhere: deny" in person.sees("All is done.\n")
    assert person.leaves() == 0
    assert not (cli.workspace / "made").exists()
    assert receipt_of(cli, session)["note"] == "later"


def test_a_key_that_is_pressed_too_late_answers_nothing(cli: Cli) -> None:
    calls = [{"calls": [bash("touch one", "a")]}, {"calls": [bash("touch two", "b")]}]
    person = Person("run", "x", "--script", cli.script(*calls, SAY))
    person.sees("with a note  > ")
    (ask,) = cli("asks", "--json").json
    assert cli("answer", ask["ask"]["ask_id"], "deny").code == 0
    person.sees("touch two")
    person.sees("with a note  > ")
    person.types("y\n")
    assert person.leaves() == 0
    assert sorted(p.name for p in cli.workspace.iterdir()) == ["two"]
