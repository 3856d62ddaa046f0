"""Configuration: files in tiers, the environment and flags, merged into typed settings that know their sources."""

from counterfoil.config.explain import Report, explain
from counterfoil.config.load import NO_FLAGS, Flags, examine, fatal, load, user_folder
from counterfoil.config.merge import WIRES, merge
from counterfoil.config.provider import (
    api_key,
    chosen_provider,
    find_provider,
    model_name,
    with_choice,
)
from counterfoil.config.read import parse_tier, read_tier
from counterfoil.config.strict import Bounds, bounds_of
from counterfoil.config.values import (
    ModelSettings,
    PermissionSettings,
    Problem,
    ProviderSettings,
    Rule,
    Settings,
    Source,
    Tier,
    ToolSettings,
    UiSettings,
)

__all__ = [
    "NO_FLAGS",
    "WIRES",
    "Bounds",
    "Flags",
    "ModelSettings",
    "PermissionSettings",
    "Problem",
    "ProviderSettings",
    "Report",
    "Rule",
    "Settings",
    "Source",
    "Tier",
    "ToolSettings",
    "UiSettings",
    "api_key",
    "bounds_of",
    "chosen_provider",
    "examine",
    "explain",
    "fatal",
    "find_provider",
    "load",
    "merge",
    "model_name",
    "parse_tier",
    "read_tier",
    "user_folder",
    "with_choice",
]
