"""A reviewer whose findings a test gives, and which keeps what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from counterfoil.events import ReviewDetail, Usage
from counterfoil.identity import ReviewJob, bytes_digest
from counterfoil.ports import Assessment, Checked, Evidence, Piece, ReviewRule, ReviewSubject

PROSE = "CHECKER-PROSE-CANARY"
DETAIL = ReviewDetail(concern=PROSE, evidence=PROSE, next_step=PROSE)
COST = Usage(input_tokens=11, output_tokens=3, requests=1)


def rule(*jobs: ReviewJob, **changes: Any) -> ReviewRule:
    """A policy over every tool."""
    return ReviewRule(**({"name": "guard", "jobs": jobs, "tools": ("*",), "checker": "scripted/checker"} | changes))


def result_of(finding: str) -> Checked:
    """What a check of this finding gives; `failed` is an outage."""
    if finding == "failed":
        return Checked(outage="timeout", usage=COST)
    categories = ("exfiltration",) if finding == "concern" else ()
    assessment = Assessment(finding=finding, categories=categories, confidence="high", detail=DETAIL)  # type: ignore[arg-type]
    return Checked(assessment=assessment, usage=COST)


class FakeReviewer:
    """Answers with `findings` in turn, the last for ever. `files`: what evidence there is, by origin; may change."""

    def __init__(self, *rules: ReviewRule, findings: Any = ("clear",), files: dict[str, str] | None = None) -> None:
        self.rules = rules
        self.seen: list[ReviewSubject] = []
        self.files = files if files is not None else {}
        self.closed = 0
        self.begun = asyncio.Event()
        self.before: Callable[[ReviewSubject], Any] | None = None
        self._findings = list(findings)

    def say(self, findings: Any) -> None:
        """What is found from now on, in turn, the last for ever."""
        self._findings = list(findings)

    async def gather(self, subject: ReviewSubject) -> Evidence:
        pieces = [Piece(origin=o, text=t, digest=bytes_digest("t", t.encode())) for o, t in self.files.items()]
        return Evidence(pieces=tuple(pieces))

    async def check(self, subject: ReviewSubject, rule: ReviewRule, evidence: Evidence) -> Checked:
        self.seen.append(subject)
        self.begun.set()
        if self.before is not None:
            waited = self.before(subject)
            if asyncio.iscoroutine(waited):
                await waited
        finding = self._findings.pop(0) if len(self._findings) > 1 else self._findings[0]
        if isinstance(finding, BaseException):
            raise finding
        return result_of(finding)

    async def close(self) -> None:
        self.closed += 1
