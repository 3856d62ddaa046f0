"""What checkers wrote, for the owner and while it is fresh: bounded, in memory, never in an event."""

from __future__ import annotations

from collections import OrderedDict

from counterfoil.errors import ReviewNotFound, StaleReview
from counterfoil.events import ReviewDetail
from counterfoil.identity import ReviewID, Revision

KEPT = 64


class Details:
    """The newest detail of the last reviews of one driven session."""

    def __init__(self) -> None:
        self._kept: OrderedDict[ReviewID, tuple[Revision, ReviewDetail]] = OrderedDict()

    def keep(self, review: ReviewID, revision: Revision, detail: ReviewDetail) -> None:
        """Remember what the checker wrote at `revision`."""
        self._kept.pop(review, None)
        self._kept[review] = (revision, detail)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def get(self, review: ReviewID, revision: int) -> ReviewDetail:
        """What was written at `revision` or is still meant by it: a later disposition keeps the detail.

        Raises `ReviewNotFound`; `StaleReview` where the review was done again after `revision`.
        """
        found = self._kept.get(review)
        if found is None:
            raise ReviewNotFound(
                f"no live detail of review {review}", hint="it is kept while its run lives, for the last reviews"
            )
        if revision < found[0]:
            raise StaleReview(
                f"review {review} was done again since revision {revision}",
                hint=f"ask for revision {found[0]} or later",
            )
        return found[1]
