"""Asks, answers, learned rules and reviews, by people who may."""

from __future__ import annotations

import asyncio
import json

import pytest

from counterfoil.client.interface import Client, OpenAsk
from counterfoil.errors import (
    AskIsSettled,
    AskNotFound,
    AskWithdrawn,
    ReviewNotFound,
    StaleReview,
    UsageError,
)
from counterfoil.events import AskSettled, CallFinished, CallStarted, ReviewAcknowledged, Verdict, text_of
from counterfoil.identity import AskID, HookID, SessionID
from tests.client.world import WRITE, World, asked, begin, finished, turns, until, whole_log

OTHER = {"tool": "Write", "arguments": {"file_path": "b.txt", "content": "y"}}
NOBODY = AskID("ask_" + "0" * 26)


async def test_an_ask_shows_what_would_run_and_the_answer_releases_exactly_it(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client, title="write")
    found = await asked(client, session)
    assert (found.ask.tool, found.ask.arguments) == ("Write", WRITE["arguments"])
    assert (found.session_id, found.session_title, found.ask.origin_session_id) == (session, "write", session)
    assert await client.get_ask(found.ask.ask_id) == found
    assert await client.list_asks() == (found,)
    receipt = await client.answer(found.ask.ask_id, "allow", note="fine")
    assert (receipt.decided_by.kind, receipt.decided_by.name) == ("user", "ada")
    assert (receipt.tool_call_id, receipt.arguments_digest) == (found.ask.tool_call_id, found.ask.arguments_digest)
    assert (await finished(client, session)).stop_reason == "end_turn"
    assert (world.workspace / "a.txt").read_text() == "x"
    assert (await until(client, session, AskSettled)).receipt == receipt
    assert await client.list_asks() == ()


async def test_a_denial_with_a_note_tells_the_model_and_nothing_runs(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    await client.answer(found.ask.ask_id, "deny", note="Use b.txt instead.")
    assert (await finished(client, session)).stop_reason == "end_turn"
    result = await until(client, session, CallFinished)
    assert (result.status, result.executed) == ("denied", "no")
    assert "Use b.txt instead." in text_of(result.parts) and "ada" in text_of(result.parts)
    assert not (world.workspace / "a.txt").exists()
    assert not [e for e in await whole_log(client, session) if isinstance(e.event, CallStarted)]


async def test_the_same_answer_with_the_same_key_is_one_answer_and_any_other_is_refused(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    receipt = await client.answer(ask, "allow", idempotency_key="k1")
    assert await client.answer(ask, "allow", idempotency_key="k1") == receipt
    others: list[tuple[Verdict, str]] = [("deny", "k1"), ("allow", "k2"), ("allow", "")]
    for verdict, key in others:
        with pytest.raises(AskIsSettled) as late:
            await client.answer(ask, verdict, idempotency_key=key)
        assert late.value.receipt == receipt
    with pytest.raises(AskIsSettled) as over:
        await client.get_ask(ask)
    assert over.value.receipt == receipt
    await finished(client, session)
    assert len([e for e in await whole_log(client, session) if isinstance(e.event, AskSettled)]) == 1


async def test_of_many_answers_at_once_one_wins_and_the_call_runs_once(world: World) -> None:
    service = await world.serve(turns(WRITE))
    client = service.client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    clients = [service.client("ada"), service.client("bob", "approver", of="ada")] * 4
    answers = await asyncio.gather(
        *(c.answer(ask, "allow" if n % 3 else "deny", idempotency_key=f"k{n}") for n, c in enumerate(clients)),
        return_exceptions=True,
    )
    won = [a for a in answers if not isinstance(a, BaseException)]
    lost = [a for a in answers if isinstance(a, BaseException)]
    assert len(won) == 1 and len(lost) == 7
    assert all(isinstance(one, AskIsSettled) and one.receipt == won[0] for one in lost)
    await finished(client, session)
    started = [e for e in await whole_log(client, session) if isinstance(e.event, CallStarted)]
    assert len(started) == (1 if won[0].verdict == "allow" else 0)


async def test_an_answer_that_the_ask_doesnt_offer_changes_nothing(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    found = await asked(client, session)
    with pytest.raises(UsageError):
        await client.answer(found.ask.ask_id, "release")
    assert await client.list_asks(session) == (found,)


async def test_an_ask_of_a_cancelled_run_is_withdrawn_for_everybody(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    await client.cancel(session)
    await finished(client, session)
    with pytest.raises(AskWithdrawn):
        await client.answer(ask, "allow")
    with pytest.raises(AskWithdrawn):
        await client.get_ask(ask)
    assert not (world.workspace / "a.txt").exists()


async def test_an_ask_that_nobody_put_isnt_there(world: World) -> None:
    client = (await world.serve()).client()
    for missing in (client.get_ask(NOBODY), client.answer(NOBODY, "allow")):
        with pytest.raises(AskNotFound):
            await missing


async def test_an_answer_for_the_session_learns_the_rule_that_was_shown_until_it_is_revoked(world: World) -> None:
    client = (await world.serve(turns(WRITE, WRITE, end="done"))).client()
    session = await begin(client)
    found = await asked(client, session)
    assert found.ask.rule is not None
    await client.answer(found.ask.ask_id, "allow", scope="session")
    assert (await finished(client, session)).stop_reason == "end_turn", "the second call wasn't asked about"
    (grant,) = await client.list_grants(session)
    assert (grant.rule, grant.scope, grant.ask_id) == (found.ask.rule, "session", found.ask.ask_id)
    await client.revoke_grant(session, grant.rule)
    assert await client.list_grants(session) == ()
    with pytest.raises(UsageError):
        await client.revoke_grant(session, grant.rule)


async def test_a_rule_that_a_person_wrote_is_learned_in_place_of_the_one_shown(world: World) -> None:
    served = await world.serve(turns(WRITE, WRITE, end="done"))
    client = served.client()
    session = await begin(client)
    found = await asked(client, session)
    for bad in ("Bash(rm *)", "Write(", "x" * 400, "*"):
        with pytest.raises(UsageError):
            await client.answer(found.ask.ask_id, "allow", scope="session", rule=bad)
    with pytest.raises(UsageError):
        await client.answer(found.ask.ask_id, "allow", rule="Edit(/**)")
    assert (await asked(client, session)).ask.ask_id == found.ask.ask_id, "it is still open"
    await client.answer(found.ask.ask_id, "allow", scope="session", rule="Edit(/**)")
    assert (await finished(client, session)).stop_reason == "end_turn", "the second call wasn't asked about"
    (grant,) = await client.list_grants(session)
    assert (grant.rule, grant.ask_id) == ("Edit(/**)", found.ask.ask_id) and found.ask.rule != grant.rule


async def test_asks_of_all_sessions_are_listed_and_those_of_one_alone(world: World) -> None:
    client = (await world.serve(turns(WRITE))).client()
    sessions = [await begin(client) for _ in range(3)]
    found = [await asked(client, session) for session in sessions]
    assert {o.ask.ask_id for o in await client.list_asks()} == {o.ask.ask_id for o in found}
    assert await client.list_asks(sessions[1]) == (found[1],)


async def test_an_answer_reaches_a_run_that_another_service_drives(world: World) -> None:
    script = turns(WRITE)
    driving = (await world.serve(script)).client()
    session = await begin(driving)
    other = (await world.serve(script)).client()
    found = await asked(other, session)
    async with asyncio.timeout(10):
        receipt = await other.answer(found.ask.ask_id, "allow", idempotency_key="k")
        assert await driving.answer(found.ask.ask_id, "allow", idempotency_key="k") == receipt
        assert (await finished(other, session)).stop_reason == "end_turn"
    assert (world.workspace / "a.txt").read_text() == "x"


# ---- reviews ------------------------------------------------------------------------------------------------


def guard(world: World) -> str:
    """A configuration with a scripted checker that has a concern about everything."""
    assessment = {"assessment": "concern", "categories": ["authority"], "confidence": "high", "concern": "Why this?"}
    file = world.root / "guard.json"
    file.write_text(json.dumps({"turns": [{"calls": [{"tool": "submit_assessment", "arguments": assessment}]}]}))
    provider = f'[providers.guard]\nwire = "scripted"\nbase_url = "{file}"\n'
    return provider + '[reviews]\nchecker = "guard/any"\nkeep_detail = true\n'


async def reviewed(world: World) -> tuple[Client, SessionID, OpenAsk]:
    client = (await world.serve(turns(WRITE), guard(world))).client()
    session = await begin(client, mode="accept_edits")
    return client, session, await asked(client, session)


async def test_a_concern_is_listed_and_its_words_are_untrusted(world: World) -> None:
    client, session, found = await reviewed(world)
    (record,) = await client.list_reviews(session)
    assert record.review is not None and record.review.ask_id == found.ask.ask_id
    assert (record.review.state, record.tool_call_id) == ("asked", found.ask.tool_call_id)
    detail = await client.get_detail(session, record.hook_id, record.revision)
    assert (detail.untrusted_concern, detail.review_id, detail.session_id) == ("Why this?", record.hook_id, session)
    assert b"Why this?" not in b"".join([chunk async for chunk in client.export(session)])
    (policy,) = [p for p in await client.get_status() if p.checker == "guard/any"][:1]
    assert policy.jobs and policy.enforcement


async def test_an_acknowledgement_is_recorded_once_and_never_of_what_is_past(world: World) -> None:
    client, session, found = await reviewed(world)
    (record,) = await client.list_reviews(session)
    for _ in range(2):
        await client.acknowledge(session, record.hook_id, record.revision)
    marks = [e.event for e in await whole_log(client, session) if isinstance(e.event, ReviewAcknowledged)]
    assert [(m.review_id, m.revision, m.decided_by.name) for m in marks] == [(record.hook_id, record.revision, "ada")]
    with pytest.raises(StaleReview):
        await client.acknowledge(session, record.hook_id, record.revision - 1)
    with pytest.raises(ReviewNotFound):
        await client.acknowledge(session, HookID("rev_" + "0" * 26), 1)
    with pytest.raises(ReviewNotFound):
        await client.get_detail(session, HookID("rev_" + "0" * 26), 1)
    assert await client.get_ask(found.ask.ask_id) == found, "it decided nothing"
