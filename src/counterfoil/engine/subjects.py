"""What a checker is shown of a call: its exact arguments or result, the person's words, what went before. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from counterfoil.events import FilePart, Part, text_of
from counterfoil.identity import Digest, ReviewJob, bytes_digest, result_digest, review_id, reviewed_digest
from counterfoil.policy.permissions import PRESENT_PLAN, CallFacts
from counterfoil.ports import Evidence, ReviewSubject
from counterfoil.state import OpenCall, SessionState, TurnItem
from counterfoil.state.history import HistoryCall, HistoryResult

MAX_FACTS = 256
MAX_FACTS_SIZE = 128_000
MAX_FACT = 400
MAX_PLAN = 8_000


def subject_of(
    state: SessionState,
    call: OpenCall,
    facts: CallFacts,
    job: ReviewJob,
    *,
    reason: str = "",
    result: tuple[Part, ...] | None = None,
) -> ReviewSubject:
    """What the check of `call` for `job` is about."""
    meta = state.meta
    return ReviewSubject(
        job=job,
        review_id=review_id(call.tool_call_id, job),
        session_id=meta.session_id,
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        arguments=call.arguments,
        arguments_digest=call.arguments_digest,
        targets=facts.targets,
        mode=meta.mode,
        workspace=meta.workspace,
        prompts=tuple(state.prompts),
        facts=tuple(earlier(state)),
        reason=reason,
        result=result,
    )


def digest_seen(subject: ReviewSubject, evidence: Evidence, prompts: tuple[str, ...]) -> Digest:
    """Digest of what the check saw. A result is what it is; a call is seen against what the person said last."""
    if subject.result is not None:
        return reviewed_digest(subject.job, subject.arguments_digest, result_digest(subject.result))
    said = bytes_digest("counterfoil/prompts/v1", msgspec.json.encode(prompts))
    read = [text for piece in evidence.pieces for text in (piece.origin, piece.digest)]
    return reviewed_digest(subject.job, subject.arguments_digest, said, *read, *evidence.missing)


def earlier(state: SessionState) -> list[str]:
    """What was done before in the session, one line each, the latest last; bounded in number and in size."""
    lines: list[str] = []
    size = 0
    for call, result in _latest_first(state):
        line = _fact(state, call, result)
        size += len(line)
        if len(lines) == MAX_FACTS or size > MAX_FACTS_SIZE:
            break
        lines.append(line)
    return lines[::-1]


def _latest_first(state: SessionState) -> Iterator[tuple[HistoryCall, HistoryResult]]:
    if state.open_turn is not None:
        for open_call in reversed(state.open_turn.calls):
            if open_call.result is not None:
                told = HistoryCall(
                    tool_call_id=open_call.tool_call_id, tool=open_call.tool, arguments=open_call.arguments
                )
                yield told, open_call.result
    for item in reversed(state.history.items):
        if isinstance(item, TurnItem):
            yield from zip(reversed(item.calls), reversed(item.results), strict=True)


def _fact(state: SessionState, call: HistoryCall, result: HistoryResult) -> str:
    arguments = msgspec.json.encode(call.arguments).decode()
    limit = MAX_PLAN if call.tool == PRESENT_PLAN else MAX_FACT
    if len(arguments) > limit:
        arguments = f"{arguments[:limit]}… ({len(arguments)} characters)"
    verdicts = [r.verdict for r in state.receipts.values() if r.tool_call_id == call.tool_call_id]
    answered = f", answered by a person: {', '.join(verdicts)}" if verdicts else ""
    files = sum(isinstance(part, FilePart) for part in result.parts)
    size = len(text_of(result.parts)) + files
    return f"{call.tool} {arguments}: {result.status}, result of {size} characters{answered}"
