"""What an embedder can set, and what an engine needs from outside."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from counterfoil.events import GrantChanged, Limits, Mode, Principal, Relationship, SessionKind
from counterfoil.identity import IdSource
from counterfoil.policy.permissions import Rules
from counterfoil.ports import Clock, EventStore, Holder, HookRunner, Provider, Reviewer, Toolset
from counterfoil.state import Meta


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and rules. Times are seconds.

    `standing_grants` are rules that people let be learned for good, for this session's workspace; without it, those
    of the session's own log hold, and with it a rule that was revoked there holds nowhere. `on_grant` is
    told when one is learned with scope `always`, after it is durable in the session's log.
    `compaction_ratio`: share of `context_window(model)` tokens at which history is compacted, 0 for never.
    `ask_timeout`: seconds after which an ask that nobody answered is denied (a held result withheld), 0 for never.
    `keep_review_detail`: the checker's prose is kept in the private half of the log.
    `provider_retries`: how often a turn is asked again after an error that may pass.
    """

    rules: Rules = Rules()
    max_parallel: int = 8
    max_calls_per_turn: int = 128
    malformed_turn_retries: int = 1
    empty_turn_nudges: int = 2
    provider_retries: int = 5
    retry_base: float = 0.5
    retry_cap: float = 30.0
    retry_after_cap: float = 120.0
    compaction_ratio: float = 0.8
    compaction_keep: int = 6
    max_tokens: int = 0
    effort: str | None = None
    context_window: Callable[[str], int] = lambda model: 200_000
    system_prompt: Callable[[Meta], str] = lambda meta: ""
    ask_timeout: float = 0.0
    keep_review_detail: bool = False
    standing_grants: Callable[[Meta], tuple[str, ...]] | None = None
    on_grant: Callable[[Meta, GrantChanged], None] = lambda meta, change: None


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a session begins with."""

    owner: Principal
    workspace: str
    provider: str
    model: str
    base_url: str = ""
    mode: Mode = "default"
    limits: Limits = Limits()
    title: str = ""
    kind: SessionKind = SessionKind.MAIN
    relationship: Relationship | None = None


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The adapters that an engine works with."""

    store: EventStore
    provider_for: Callable[[Meta], Provider]
    toolset_for: Callable[[Meta], Toolset]
    clock: Clock
    ids: IdSource
    holder: Holder
    settings: EngineSettings
    hooks_for: Callable[[Meta], HookRunner]
    reviewer_for: Callable[[Meta], Reviewer | None]
    transcript_dir: str | None
    output_dir: str
    environment: dict[str, str]
