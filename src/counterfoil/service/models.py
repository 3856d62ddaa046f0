"""What is known about models: context windows and prices, from a maintained table. Loaded when first asked."""

from __future__ import annotations

from functools import lru_cache

DEFAULT_WINDOW = 128_000
"""Tokens that a model takes where the table doesn't know it."""


@lru_cache(maxsize=64)
def context_window(model: str) -> int:
    """The context window of `model` in tokens, or `DEFAULT_WINDOW`."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return DEFAULT_WINDOW
    return info.context_window or DEFAULT_WINDOW
