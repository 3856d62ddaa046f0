"""Settings as they come out of all tiers, and where each came from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from counterfoil.config.schema import Effort, Wire
from counterfoil.events import Limits, Mode
from counterfoil.hooks.definition import HookDefinition
from counterfoil.identity import Digest
from counterfoil.ports import ReviewRule

TrustState = Literal["nothing", "untrusted", "changed", "trusted"]
"""`nothing`: the project's files ask for no trust. `changed`: what was trusted is another by now."""
TierName = Literal["default", "operator", "user", "project", "environment", "flag"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value came from: a tier, and the file and line, variable or flag in it."""

    tier: TierName
    place: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """As people read it: `file:line`, `$VARIABLE`, `--flag` or `default`."""
        where = self.place if self.line is None else f"{self.place}:{self.line}"
        return where or "default"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong with one value. `fatal`: nothing runs with it; else it is ignored, and said so."""

    source: Source
    field: str
    text: str
    hint: str = ""
    fatal: bool = True

    def __str__(self) -> str:
        """Place, field and fault, in one line."""
        return f"{self.source}: {self.field}: {self.text}" if self.field else f"{self.source}: {self.text}"


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """One value that one tier sets."""

    path: tuple[str, ...]
    value: object
    source: Source

    @property
    def field(self) -> str:
        """The path as people write it."""
        return ".".join(self.path)


class ReviewSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is reviewed, the first rule that covers a call first; and whether a checker's prose is kept in the log."""

    rules: tuple[ReviewRule, ...] = ()
    keep_detail: bool = False


class AskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Asks. `timeout`: seconds after which one that nobody answered is refused; 0 for never."""

    timeout: float = 0.0


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """One layer of configuration: a file, the environment or the flags. `found` is False for a file not there.

    `digest` is of the file's bytes, as they were read.
    """

    name: TierName
    place: str
    found: bool = True
    assignments: tuple[Assignment, ...] = ()
    problems: tuple[Problem, ...] = ()
    hooks: tuple[HookDefinition, ...] = ()
    reviews: object = None
    digest: Digest | None = None
    notes: tuple[Problem, ...] = ()


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is asked. Empty `provider` or `name`: nobody has chosen.

    `base_url` and `script` are set by flag or environment alone, for whichever provider is chosen.
    """

    provider: str = ""
    name: str = ""
    effort: Effort | None = None
    max_tokens: int = 0
    base_url: str = ""
    script: str = ""


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A server that speaks one of the wire formats. Empty `base_url`: the one of the wire's own vendor.

    For `scripted`, `base_url` is the script's path. `api_key_env` names the variable that holds the key; empty:
    the wire's own. The key itself is never here.
    """

    name: str
    wire: Wire
    base_url: str = ""
    api_key_env: str = ""
    headers: dict[str, str] = {}
    timeout: float | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One permission rule: a tool name, or a pattern with `*` over tool names."""

    pattern: str
    source: Source


class PermissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The mode and the rules of all tiers."""

    mode: Mode = "default"
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Tools that the model isn't given, by name or pattern."""

    disabled: tuple[str, ...] = ()


class UiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown."""

    notices: Literal["important", "all"] = "important"


class CompatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which other tools' files are read. `claude`: rules and hooks of `.claude/settings.json` and its kin."""

    claude: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, merged. `sources` says for each set value, by its dotted path, where it came from.

    `problems` are those of all tiers and of the merge; with a fatal one nothing may run. `notes` are what files say
    that has no use here. `trust` is how it stands with the project's folder. `unread` are files of other tools that
    are there, and not read for want of `compat`. `binding` is what the operator says that nobody may loosen.
    """

    state_dir: Path
    model: ModelSettings = ModelSettings()
    providers: dict[str, ProviderSettings] = {}
    permissions: PermissionSettings = PermissionSettings()
    limits: Limits = Limits()
    tools: ToolSettings = ToolSettings()
    ui: UiSettings = UiSettings()
    compat: CompatSettings = CompatSettings()
    asks: AskSettings = AskSettings()
    reviews: ReviewSettings = ReviewSettings()
    hooks: tuple[HookDefinition, ...] = ()
    trust: TrustState = "nothing"
    unread: tuple[str, ...] = ()
    binding: tuple[Assignment, ...] = ()
    notes: tuple[Problem, ...] = ()
    sources: dict[str, Source] = {}
    problems: tuple[Problem, ...] = ()
