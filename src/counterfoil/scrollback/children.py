"""What a root card shows of its children: how much evidence each has, and the most severe of it. Never the evidence."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from counterfoil.identity import SessionID
from counterfoil.scrollback.cards import Card, ChildCell
from counterfoil.scrollback.entries import EvidenceEntry
from counterfoil.scrollback.held import AskCell, RecordCell, Standing
from counterfoil.scrollback.order import Order
from counterfoil.scrollback.views import ChildView, most_severe


class Children:
    """Knows which card started which session, and what was seen of its evidence: by explicit origin alone."""

    def __init__(self, root: SessionID, order: Order[Any]) -> None:
        self._root, self._order = root, order
        self._cards: dict[SessionID, list[Card]] = defaultdict(list)
        self._evidence: dict[SessionID, list[Standing]] = defaultdict(list)

    def started(self, card: Card, child: ChildCell) -> None:
        """`card` started `child`. What was seen of it before counts too."""
        card.child(child)
        if card not in self._cards[child.id]:
            self._cards[child.id].append(card)

    def runs_for_another(self, child: SessionID, card: Card) -> bool:
        """Whether another card than `card` has started `child`, and it hasn't ended there."""
        starters = self._cards.get(child, ())
        return any(one is not card and one.children[child].stop_reason is None for one in starters)

    def evidence(self, standing: Standing) -> None:
        """Something stands alone: count it where it comes from a child."""
        origin = _origin(standing)
        if origin is not None and origin != self._root:
            self._evidence[origin].append(standing)
            self.changed(origin)

    def changed(self, origin: SessionID) -> None:
        """Evidence of `origin` changed."""
        for card in self._cards.get(origin, ()):
            self._order.touch(card.key)

    def views(self, card: Card) -> tuple[ChildView, ...]:
        """The children of `card`, in the order in which they started."""
        return tuple(self._view(child) for child in card.children.values())

    def _view(self, child: ChildCell) -> ChildView:
        evidence = self._evidence.get(child.id, ())
        return ChildView(
            child_session_id=child.id,
            session_kind=child.kind,
            member=child.member,
            preview=child.preview,
            agent_type=child.agent_type,
            background=child.background,
            stop_reason=child.stop_reason,
            calls=child.calls,
            refused=child.refused,
            evidence=len(evidence),
            severity=most_severe(piece.severity for piece in evidence),
            open_asks=sum(isinstance(piece, AskCell) and piece.open for piece in evidence),
        )


def _origin(standing: Standing) -> SessionID | None:
    if isinstance(standing, (RecordCell, AskCell)):
        return standing.origin
    return _origin_of_entry(standing)


def _origin_of_entry(entry: EvidenceEntry) -> SessionID | None:
    """The session that the evidence names; of a conflict, the one that is claimed."""
    if entry.record is not None:
        return entry.record.origin_session_id
    if entry.ask is not None:
        return entry.ask.ask.origin_session_id
    named = entry.receipt or entry.withdrawal
    return named.origin_session_id if named is not None else None
