"""How fast the scrollback takes events, and whether one more costs the same at the end as at the beginning.

    python benchmarks/scrollback.py [EVENTS …]

Prints events per second and the cost of one `apply` in the first and the last tenth, for 1 000, 10 000 and 100 000
events of a session as it is lived: prompts, streamed answers, calls with hooks, reviews, asks and receipts.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice

from counterfoil import events as ev
from counterfoil.events.base import Envelope
from counterfoil.identity import (
    AskID,
    HookID,
    Offset,
    Revision,
    RunID,
    SessionID,
    ToolCallID,
    arguments_digest,
    review_id,
)
from counterfoil.scrollback import Scrollback

ROOT = SessionID("ses_benchmark")
PERSON = ev.Principal(kind="local", name="ada")
GUARD = ev.Definition(name="guard")


def one_turn(turn: int) -> Iterator[ev.Event]:
    """What one turn with one call publishes."""
    call, arguments = ToolCallID(f"call_{turn:026}"), {"command": f"make test-{turn}", "timeout": 60}
    digest = arguments_digest(arguments)
    yield ev.TurnStarted(turn=turn, provider="p", model="m")
    for _ in range(6):
        yield ev.MessageDelta(turn=turn, text="some words of an answer ")
    yield ev.AssistantMessage(turn=turn, text="some words of an answer " * 6, reasoning="hm")
    yield ev.CallAccepted(
        tool_call_id=call, turn=turn, position=0, tool="Bash", arguments=arguments, arguments_digest=digest
    )
    yield ev.TurnFinished(turn=turn, usage=ev.Usage(input_tokens=100, output_tokens=10, requests=1))
    hook = ev.HookRecord(
        hook_id=HookID(f"hook_{turn:026}"),
        revision=Revision(turn * 3 + 1),
        phase="PreToolUse",
        origin_session_id=ROOT,
        tool_call_id=call,
        definition=GUARD,
        outcome="notice",
        severity="notable",
        message="looks fine",
    )
    yield ev.HookRecorded(record=hook)
    review = review_id(call, "action")
    for number, state in enumerate(("pending", "clear"), 2):
        yield ev.HookRecorded(
            record=ev.HookRecord(
                hook_id=HookID(review),
                revision=Revision(turn * 3 + number),
                phase="review",
                origin_session_id=ROOT,
                tool_call_id=call,
                definition=GUARD,
                outcome="reviewed",
                severity="benign",
                review=ev.Review(review_id=review, job="action", state=state),  # type: ignore[arg-type]
            )
        )
    ask = ev.Ask(
        ask_id=AskID(f"ask_{turn:026}"),
        origin_session_id=ROOT,
        tool_call_id=call,
        tool="Bash",
        arguments=arguments,
        arguments_digest=digest,
        reason="no rule allows it",
    )
    yield ev.AskOpened(ask=ask)
    yield ev.AskSettled(
        receipt=ev.Receipt(
            ask_id=ask.ask_id,
            origin_session_id=ROOT,
            tool_call_id=call,
            verdict="allow",
            decided_by=PERSON,
            decided_at=turn,
            arguments_digest=digest,
        )
    )
    yield ev.CallStarted(tool_call_id=call, arguments_digest=digest)
    yield ev.CallProgress(tool_call_id=call, text="12 of 40 passed")
    yield ev.CallFinished(tool_call_id=call, status="ok", parts=ev.text_parts("40 passed"), executed="yes")


def session() -> Iterator[Envelope]:
    """The events of one endless session, as they are published."""
    offset, run = 0, RunID("run_1")

    def events() -> Iterator[ev.Event]:
        yield ev.SessionCreated(session_id=ROOT, owner=PERSON, workspace="/w", provider="p", model="m")
        yield ev.RunStarted(run_id=run)
        yield ev.UserPrompt(parts=ev.text_parts("make it pass"))
        turn = 0
        while True:
            turn += 1
            yield from one_turn(turn)

    for seq, event in enumerate(events(), 1):
        durable = type(event) not in ev.TRANSIENT
        offset += durable
        yield Envelope(
            session_id=ROOT,
            run_id=run,
            seq=seq,
            offset=Offset(offset) if durable else None,
            recorded_at=seq,
            event=event,
        )


def measure(count: int) -> None:
    """One session of `count` events."""
    envelopes = list(islice(session(), count))
    seen, tenth = Scrollback(ROOT), max(1, count // 10)
    stamps = [time.perf_counter()]
    for start in range(0, count, tenth):
        for envelope in envelopes[start : start + tenth]:
            seen.apply(envelope)
        stamps.append(time.perf_counter())
    first, last = ((stamps[at + 1] - stamps[at]) / tenth * 1e6 for at in (0, 9))
    speed = count / (stamps[-1] - stamps[0])
    began = time.perf_counter()
    entries = len(seen.entries)
    listed = (time.perf_counter() - began) * 1e3
    tracemalloc.start()
    kept = Scrollback(ROOT).extend(envelopes)
    memory = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    assert len(kept) == len(seen)
    print(
        f"{count:>8} events  {speed:>9,.0f} events/s   apply: first tenth {first:5.2f} µs, last {last:5.2f} µs   "
        f"{entries:>6} entries listed in {listed:6.1f} ms   {memory:6.1f} MB"
    )


if __name__ == "__main__":
    for size in [int(word.replace("_", "")) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        measure(size)
