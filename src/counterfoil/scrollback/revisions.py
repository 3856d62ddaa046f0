"""What a consumer does with an update of a record that it holds (identity contract, section 4). One pure function."""

from __future__ import annotations

from typing import Literal

from counterfoil.events import HookRecord

Step = Literal["open", "replace", "ignore", "conflict", "legacy"]
"""`open`: a record that wasn't known. `legacy`: one without identity, which touches no identified one."""


def step(held: HookRecord | None, incoming: HookRecord) -> Step:
    """What `incoming` does to the record `held` under the same id.

    A higher revision replaces, a lower one is ignored, an equal one with the same payload is ignored. An equal one with
    another payload, or any that claims another call or origin, is a conflict: the held record stays as it is.
    """
    if not incoming.hook_id or incoming.revision < 1:
        return "legacy"
    if incoming.review is not None and incoming.review.review_id != incoming.hook_id:
        return "conflict"
    if held is None:
        return "open"
    if incoming.revision < held.revision or incoming == held:
        return "ignore"
    if (incoming.tool_call_id, incoming.origin_session_id) != (held.tool_call_id, held.origin_session_id):
        return "conflict"
    return "conflict" if incoming.revision == held.revision else "replace"


def contradiction(held: HookRecord | None, incoming: HookRecord) -> str:
    """Why `incoming` is a conflict, in words."""
    if held is None or (incoming.review is not None and incoming.review.review_id != incoming.hook_id):
        return "hook_id and review_id differ"
    if (incoming.tool_call_id, incoming.origin_session_id) != (held.tool_call_id, held.origin_session_id):
        return f"{held.hook_id} is claimed for another call or origin"
    return f"{held.hook_id} says two things at revision {held.revision}"
