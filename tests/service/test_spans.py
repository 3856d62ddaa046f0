"""Traces: one span for each run, turn, call, hook, review and ask, with the engine's ids, under the right parent."""

from __future__ import annotations

import contextlib
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from counterfoil import events as ev
from counterfoil.client.local import LocalClient
from counterfoil.identity import review_id
from counterfoil.service.access import Caller
from counterfoil.service.application import Application
from counterfoil.service.spans import Span, Spans
from counterfoil.service.tracing import OpenTelemetry, Tracer
from tests.client.world import WRITE, World, asked, begin, finished, globs, turns
from tests.scrollback.builders import ROOT, RUN, Log, accepted, created, record, settled
from tests.scrollback.builders import asked as asks
from tests.scrollback.builders import finished as ended

CALL = "call_a"


def spans_of(*events: ev.Event) -> dict[str, Span]:
    log = Log()
    log.add(created(), ev.RunStarted(run_id=RUN), *events)
    followed = Spans(ROOT)
    found = [span for envelope in log.envelopes for span in followed.feed(envelope)]
    assert len({span.span for span in found}) == len(found), "each has its own id"
    return {span.name: span for span in found}


def test_each_thing_is_a_span_under_what_it_belongs_to() -> None:
    review = ev.Review(review_id=review_id(accepted(CALL).tool_call_id, "action"), job="action", state="pending")
    found = spans_of(
        ev.TurnStarted(turn=1, provider="p", model="m"),
        ev.TurnFinished(turn=1, usage=ev.Usage(input_tokens=3, output_tokens=4), model="m-1"),
        accepted(CALL, "Write", secret="never told"),
        record("h", message="never told"),
        record(review.review_id, 1, review=review),
        asks("ask_1", secret="never told"),
        record(review.review_id, 2, review=ev.Review(review_id=review.review_id, job="action", state="released")),
        settled("ask_1"),
        ended(CALL, text="never told"),
        ev.RunFinished(run_id=RUN, stop_reason="end_turn"),
    )
    assert set(found) == {"chat m", "hook h", "review action", "ask", "execute_tool Write", "invoke_agent counterfoil"}
    run, call = found["invoke_agent counterfoil"], found["execute_tool Write"]
    assert run.parent is None and call.parent == found["chat m"].parent == run.span
    assert {found[name].parent for name in ("hook h", "review action", "ask")} == {call.span}
    assert {span.trace for span in found.values()} == {run.trace}
    assert all(run.start <= span.start <= span.end <= run.end for span in found.values())
    assert call.attributes["gen_ai.tool.call.id"] == CALL and call.attributes["gen_ai.tool.name"] == "Write"
    assert found["ask"].attributes["gen_ai.tool.call.id"] == CALL
    assert found["ask"].attributes["counterfoil.ask.verdict"] == "allow"
    assert found["chat m"].attributes["gen_ai.usage.input_tokens"] == 3
    assert found["review action"].attributes["counterfoil.hook.revision"] == 2
    assert "never told" not in repr(found)


def test_what_failed_says_so() -> None:
    found = spans_of(
        accepted(CALL, "Bash"),
        ended(CALL, "error"),
        ev.RunFinished(
            run_id=RUN, stop_reason="provider_error", error=ev.ErrorInfo(code="overloaded", message="never told")
        ),
    )
    assert found["execute_tool Bash"].failed == "error"
    assert found["invoke_agent counterfoil"].failed == "overloaded" and "never told" not in repr(found)


async def test_a_run_becomes_a_trace(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    async with contextlib.AsyncExitStack() as stack:
        world = World(tmp_path, "local", stack)
        served = await world.serve(turns(*globs(1), WRITE))
        app = Application(served.app.local, world.workspace, Tracer(OpenTelemetry(exporter)))
        client = LocalClient(app, Caller(principal=ev.Principal(kind="user", name="ada")))
        session = await begin(client)
        await client.answer((await asked(client, session)).ask.ask_id, "deny")
        await finished(client, session)
        await app.close(1)
    told: list[ReadableSpan] = list(exporter.get_finished_spans())
    assert sorted(span.name for span in told) == [
        "ask",
        "chat m",
        "chat m",
        "chat m",
        "execute_tool Glob",
        "execute_tool Write",
        "invoke_agent counterfoil",
    ]
    run = next(span for span in told if span.parent is None)
    by_id = {span.context.span_id: span for span in told}
    for span in told:
        assert span.context.trace_id == run.context.trace_id
        assert span.parent is None or span.parent.span_id in by_id
        assert span.resource.attributes["service.name"] == "counterfoil"
    write = next(span for span in told if span.name == "execute_tool Write")
    assert write.attributes is not None and write.attributes["counterfoil.call.status"] == "denied"
