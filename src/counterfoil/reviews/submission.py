"""What a checker's turn says: an assessment, or why it is none. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from counterfoil.events import Category, Outage, ReviewDetail
from counterfoil.events.codec import clean_text
from counterfoil.events.visible import visible
from counterfoil.ports import Assessment, ModelTurn
from counterfoil.reviews.rubric import PROSE, SUBMIT

_Text = Annotated[str, msgspec.Meta(max_length=10 * PROSE)]


class _Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    assessment: Literal["clear", "concern", "unresolved"]
    categories: tuple[Category, ...]
    confidence: Literal["low", "medium", "high"]
    concern: _Text = ""
    evidence: _Text = ""
    next_step: _Text = ""


def assessed(turn: ModelTurn) -> Assessment | Outage:
    """The assessment that `turn` submits; else the outage that it is. Nothing in its text counts."""
    submitted = [call for call in turn.calls if call.tool == SUBMIT]
    if not submitted:
        return "missing_submission" if turn.calls or turn.text.strip() else "blank_assessment"
    if len(turn.calls) > 1 or submitted[0].arguments is None:
        return "malformed_assessment"
    try:
        said = msgspec.convert(submitted[0].arguments, _Submission, strict=True)
    except msgspec.ValidationError:
        return "invalid_assessment"
    if bool(said.categories) != (said.assessment == "concern"):
        return "invalid_assessment"
    detail = ReviewDetail(
        concern=_prose(said.concern), evidence=_prose(said.evidence), next_step=_prose(said.next_step)
    )
    categories = tuple(dict.fromkeys(said.categories))
    return Assessment(finding=said.assessment, categories=categories, confidence=said.confidence, detail=detail)


def _prose(text: str) -> str:
    cleaned = visible(clean_text(text))
    return cleaned if len(cleaned) <= PROSE else cleaned[: PROSE - 1] + "…"
