"""What a configuration file may say: one struct for each table, strict types, no other fields."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from counterfoil.events import Mode

Wire = Literal["openai", "openai_chat", "anthropic", "scripted"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class FileTable(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables. Only fields that the file sets have a value."""


class ModelTable(FileTable, kw_only=True):
    """`[model]`: which model is asked. `max_tokens`: 0 leaves it to the provider."""

    provider: _Text | msgspec.UnsetType = msgspec.UNSET
    name: _Text | msgspec.UnsetType = msgspec.UNSET
    effort: Effort | msgspec.UnsetType = msgspec.UNSET
    max_tokens: _Count | msgspec.UnsetType = msgspec.UNSET


class ProviderTable(FileTable, kw_only=True):
    """`[providers.NAME]`: a server that speaks one of the wire formats. `timeout` is in seconds."""

    wire: Wire | msgspec.UnsetType = msgspec.UNSET
    base_url: _Text | msgspec.UnsetType = msgspec.UNSET
    api_key_env: _Text | msgspec.UnsetType = msgspec.UNSET
    headers: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    timeout: _Seconds | msgspec.UnsetType = msgspec.UNSET


class PermissionsTable(FileTable, kw_only=True):
    """`[permissions]`: the mode, and rules over tool names. The rules of all files add up."""

    mode: Mode | msgspec.UnsetType = msgspec.UNSET
    allow: list[str] | msgspec.UnsetType = msgspec.UNSET
    ask: list[str] | msgspec.UnsetType = msgspec.UNSET
    deny: list[str] | msgspec.UnsetType = msgspec.UNSET


class LimitsTable(FileTable, kw_only=True):
    """`[limits]`: bounds of one run; zero means none."""

    max_turns: _Count | msgspec.UnsetType = msgspec.UNSET
    max_tool_calls: _Count | msgspec.UnsetType = msgspec.UNSET
    max_consecutive_failures: _Count | msgspec.UnsetType = msgspec.UNSET
    max_tokens: _Count | msgspec.UnsetType = msgspec.UNSET
    max_repeated_turns: _Count | msgspec.UnsetType = msgspec.UNSET


class ToolsTable(FileTable, kw_only=True):
    """`[tools]`: tools that the model isn't given."""

    disabled: list[str] | msgspec.UnsetType = msgspec.UNSET


class UiTable(FileTable, kw_only=True):
    """`[ui]`: what is shown."""

    notices: Literal["important", "all"] | msgspec.UnsetType = msgspec.UNSET


class CompatTable(FileTable, kw_only=True):
    """`[compat]`: whether settings files of the ecosystem are read too. Only the operator and the person say so."""

    claude: bool | msgspec.UnsetType = msgspec.UNSET


class AsksTable(FileTable, kw_only=True):
    """`[asks]`: `timeout` is in seconds; 0 for none."""

    timeout: Annotated[float, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET


class FileConfig(FileTable, kw_only=True):
    """A whole configuration file."""

    model: ModelTable | msgspec.UnsetType = msgspec.UNSET
    providers: dict[str, ProviderTable] | msgspec.UnsetType = msgspec.UNSET
    permissions: PermissionsTable | msgspec.UnsetType = msgspec.UNSET
    limits: LimitsTable | msgspec.UnsetType = msgspec.UNSET
    tools: ToolsTable | msgspec.UnsetType = msgspec.UNSET
    ui: UiTable | msgspec.UnsetType = msgspec.UNSET
    compat: CompatTable | msgspec.UnsetType = msgspec.UNSET
    asks: AsksTable | msgspec.UnsetType = msgspec.UNSET
    state_dir: _Text | msgspec.UnsetType = msgspec.UNSET
