"""Properties: equal views however events arrive; no evidence lost or misplaced; what is handed out never changes."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.events.codec import decode_event, encode_event, envelope_of, kind_of
from counterfoil.identity import SessionID
from counterfoil.scrollback import EvidenceEntry, ReasoningEntry, Scrollback
from tests.scrollback.builders import ROOT, asked
from tests.scrollback.events import Drawn, drawn_sessions, log_of
from tests.support.sessions import SESSION, session_log
from tests.support.sessions import Log as StoredLog
from tests.support.strategies import examples


def final(seen: Scrollback) -> tuple[Any, ...]:
    keys = [seen.key(at) for at in range(len(seen))]
    head = (seen.session, seen.open_asks, seen.records, seen.through, seen.counts)
    return (seen.entries, seen.calls, keys, *head)


def arrives_alike(root: SessionID, log: list[Envelope], data: st.DataObject) -> None:
    """Whole, with everything twice, without what is transient, in two halves that overlap, and through the codec."""
    whole = final(Scrollback(root).extend(log))
    durable = [e for e in log if e.offset is not None]
    cut = data.draw(st.integers(0, len(log)))
    back = data.draw(st.integers(0, cut))
    lived = len([e for e in log[:cut] if e.offset is not None])
    wire = [msgspec.structs.replace(e, event=decode_event(kind_of(e.event), encode_event(e.event))) for e in durable]
    ways = {
        "each twice": [e for e in log for _ in range(2)],
        "all twice": [*log, *log],
        "replay": durable,
        "replay through the codec": wire,
        "replay, then live with overlap": [*durable[:lived], *log[back:]],
        "live, then live again from before": [*log[:cut], *log[back:]],
    }
    for way, envelopes in ways.items():
        assert final(Scrollback(root).extend(envelopes)) == whole, way


@examples(150)
@given(drawn_sessions, st.data())
def test_views_are_equal_however_the_events_arrive(drawn: Drawn, data: st.DataObject) -> None:
    arrives_alike(ROOT, log_of(drawn), data)


@examples(40)
@given(session_log(), st.data())
def test_views_of_real_sessions_are_equal_however_the_events_arrive(log: StoredLog, data: st.DataObject) -> None:
    stream: list[Envelope] = []
    for at, row in enumerate(log.rows):
        envelope = envelope_of(row)
        delta = ev.MessageDelta(turn=1, text=str(at))
        seqs = {"seq": at * 2} if envelope.run_id else {}
        stream.append(msgspec.structs.replace(envelope, offset=None, event=delta, **seqs))
        stream.append(msgspec.structs.replace(envelope, **({"seq": at * 2 + 1} if envelope.run_id else {})))
    arrives_alike(SESSION, stream, data)


@examples(100)
@given(drawn_sessions, st.data())
def test_any_one_event_again_at_any_time_changes_nothing(drawn: Drawn, data: st.DataObject) -> None:
    log = log_of(drawn)
    first = data.draw(st.integers(0, len(log) - 1))
    seen = Scrollback(ROOT).extend(log[: data.draw(st.integers(first + 1, len(log)))])
    before, live = final(seen), seen.live
    assert not seen.apply(log[first])
    assert (final(seen), seen.live) == (before, live)


@examples(100)
@given(drawn_sessions)
def test_no_evidence_is_shown_on_a_card_that_it_does_not_name(drawn: Drawn) -> None:
    for call in Scrollback(ROOT).extend(log_of(drawn)).calls:
        for record in call.records:
            assert (record.tool_call_id, record.origin_session_id) == (call.tool_call_id, ROOT)
        for ask in call.asks:
            assert (ask.ask.tool_call_id, ask.ask.origin_session_id) == (call.tool_call_id, ROOT)
            ids = (ask.ask.ask_id, ask.ask.tool_call_id, ask.ask.origin_session_id, ask.ask.arguments_digest)
            r = ask.receipt
            assert r is None or (r.ask_id, r.tool_call_id, r.origin_session_id, r.arguments_digest) == ids
        for seen in call.acknowledged:
            assert seen.review_id in {r.hook_id for r in call.records}


def shown(seen: Scrollback) -> Counter[str]:
    """What can be seen, only counted: each piece of evidence by its own name, all else by its sort."""
    out: Counter[str] = Counter()
    for call in seen.calls:
        out["call"] += 1
        out.update(f"record {r.hook_id}" for r in call.records)
        out.update(f"ask {a.ask.ask_id}" for a in call.asks)
        out.update(f"receipt {a.receipt.ask_id}" for a in call.asks if a.receipt)
    for entry in seen.entries:
        out[type(entry).__name__ if "Card" not in type(entry).__name__ else "card"] += 1
    del out["EvidenceEntry"]
    for piece in seen.evidence:
        if piece.record is not None:
            out[f"record {piece.record.hook_id}"] += 1
        if piece.ask is not None:
            out[f"ask {piece.ask.ask.ask_id}"] += 1
        receipt = piece.receipt or (piece.ask.receipt if piece.ask else None)
        if receipt is not None:
            out[f"receipt {receipt.ask_id}"] += 1
        if piece.withdrawal is not None:
            out["withdrawal"] += 1
    return out


def come(log: list[Envelope]) -> Counter[str]:
    """How many pieces must be seen at the least, by the events alone: one for each id that was ever published."""
    out: Counter[str] = Counter()
    for envelope in log:
        event = envelope.event
        if isinstance(event, ev.HookRecorded):
            out[f"record {event.record.hook_id}"] = 1
        elif isinstance(event, ev.AskOpened):
            out[f"ask {event.ask.ask_id}"] = 1
        elif isinstance(event, ev.AskSettled):
            out[f"receipt {event.receipt.ask_id}"] = 1
        elif envelope.session_id == ROOT and isinstance(event, (ev.UserPrompt, ev.RunFinished)):
            out["PromptEntry" if isinstance(event, ev.UserPrompt) else "RunEntry"] += 1
        elif envelope.session_id == ROOT and isinstance(event, ev.AssistantMessage):
            out["MessageEntry"] += 1
            out["ReasoningEntry"] += bool(event.reasoning)
    return out


@examples(150)
@given(drawn_sessions)
def test_nothing_visible_ever_disappears(drawn: Drawn) -> None:
    log, seen = log_of(drawn), Scrollback(ROOT)
    before: Counter[str] = Counter()
    for number, envelope in enumerate(log, 1):
        seen.apply(envelope)
        now = shown(seen)
        assert before <= now, before - now
        assert come(log[:number]) <= now, come(log[:number]) - now
        assert now["card"] == now["call"]
        before = now


@examples(60)
@given(drawn_sessions, st.data())
def test_what_was_handed_out_never_changes(drawn: Drawn, data: st.DataObject) -> None:
    log = log_of(drawn)
    cut = data.draw(st.integers(0, len(log)))
    seen = Scrollback(ROOT).extend(log[:cut])
    handed = (seen.calls, seen.entries, seen.evidence, seen.open_asks, seen.session, seen.live, seen.counts)
    kept = copy.deepcopy(handed)
    seen.extend(log[cut:])
    assert handed == kept


def test_changing_a_conflict_that_was_handed_out_changes_nothing() -> None:
    seen = Scrollback(ROOT).extend(log_of([(asked("ask_1", x=[1]), ROOT), (asked("ask_1", x=[2]), ROOT)]))
    for entry in (*seen.evidence, *(seen.entry(at) for at in range(len(seen)))):
        assert isinstance(entry, EvidenceEntry) and entry.ask is not None
        _spoil(entry.ask.ask.arguments)
    assert [e.ask.ask.arguments for e in seen.evidence if e.ask] == [{"x": [1]}, {"x": [2]}]


@examples(60)
@given(session_log(max_runs=2))
def test_changing_what_was_handed_out_changes_nothing(log: StoredLog) -> None:
    seen = Scrollback(SESSION).extend(envelope_of(row) for row in log.rows)
    before = copy.deepcopy(final(seen))
    asks = [a for call in seen.calls for a in call.asks] + list(seen.open_asks)
    for handed in [*(call.arguments for call in seen.calls), *(a.ask.arguments for a in asks)]:
        _spoil(handed)
    seen.counts.clear()
    assert final(seen) == before


def _spoil(value: Any) -> None:
    inner = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    for item in inner:
        _spoil(item)
    if isinstance(value, dict):
        value["spoilt"] = True
    elif isinstance(value, list):
        value.append("spoilt")


@examples(60)
@given(drawn_sessions)
def test_hidden_is_counted_and_nothing_else_is_hidden(drawn: Drawn) -> None:
    from counterfoil.scrollback import entry_shown, severity_of

    seen = Scrollback(ROOT).extend(log_of(drawn))
    standing = sum(not entry_shown(entry, "important") for entry in seen.entries)
    on_cards = sum(record.severity == "benign" for call in seen.calls for record in call.records)
    assert seen.hidden("important") == standing + on_cards and seen.hidden("all") == 0
    assert all(entry_shown(entry, "all") for entry in seen.entries)
    for entry in seen.entries:
        assert entry_shown(entry, "important") or severity_of(entry) == "benign"
        assert not isinstance(entry, ReasoningEntry) or entry.text == ""
