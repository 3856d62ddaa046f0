"""Models behind APIs: one adapter for each wire format, each loaded when it is first made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from counterfoil.errors import ConfigError
from counterfoil.ports import Provider

WIRES = ("openai_chat", "openai", "anthropic", "scripted")
"""The wire formats by name."""

KEY_VARIABLES = {"openai_chat": "OPENAI_API_KEY", "openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The environment variable that usually holds a wire format's key."""

BASE_URLS = {
    "openai_chat": "https://api.openai.com/v1",
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
"""Where a wire format's API is, unless configured."""


def make_provider(
    wire: str,
    *,
    name: str = "",
    base_url: str = "",
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> Provider:
    """The adapter for `wire`. `timeout` is in seconds between bytes; for `scripted`, `base_url` is the script's path.

    Raises `ConfigError` for an unknown wire format or an unusable URL or key.
    """
    if wire == "openai_chat":
        from counterfoil.providers.openai_chat import OpenAIChat

        return OpenAIChat(name=name, base_url=base_url, api_key=api_key, headers=headers, timeout=timeout)
    if wire == "openai":
        from counterfoil.providers.openai import OpenAIResponses

        return OpenAIResponses(name=name, base_url=base_url, api_key=api_key, headers=headers, timeout=timeout)
    if wire == "anthropic":
        from counterfoil.providers.anthropic import Anthropic

        return Anthropic(name=name, base_url=base_url, api_key=api_key, headers=headers, timeout=timeout)
    if wire == "scripted":
        from counterfoil.providers.scripted import ScriptedProvider

        return ScriptedProvider(Path(base_url), name or wire)
    raise ConfigError(f"unknown wire format {wire!r}", hint=f"one of {', '.join(WIRES)}")
