"""What a call still needs before it may start."""

from __future__ import annotations

from typing import Literal

import msgspec

from counterfoil.events import HookRecord


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing (`go`), a person's answer (`ask`), or it is refused (`block`), and why.

    `review`: what the question is about, where a review raised it; then only a person may answer, for this once.
    `substitution`: it is asked for nothing but a shell substitution.
    """

    verdict: Literal["go", "ask", "block"]
    reason: str = ""
    review: HookRecord | None = None
    substitution: bool = False
