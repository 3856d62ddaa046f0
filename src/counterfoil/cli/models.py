"""`counterfoil models`: which models a provider has, with context window and price where known."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterfoil.cli import exits, options

if TYPE_CHECKING:
    from counterfoil.config import ProviderSettings

_TABLE = {"openai": "openai", "openai_chat": "openai", "anthropic": "anthropic"}
TIMEOUT = 10.0
MOST = 16_000_000


def models(
    provider: options.Provider = None,
    base_url: options.BaseUrl = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no server: only what the table knows.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """List a provider's models. Asks its server where there is a key or a base URL, else shows the table."""
    from counterfoil.cli import faults
    from counterfoil.cli.compose import load_settings
    from counterfoil.cli.terminal import print_json
    from counterfoil.config import Flags, chosen_provider, find_provider, with_choice
    from counterfoil.errors import CounterfoilError, UsageError

    settings = with_choice(load_settings(None, Flags(provider=provider, base_url=base_url)), os.environ)
    found = find_provider(settings, chosen_provider(settings, os.environ))
    if found.wire == "scripted":
        raise UsageError("a scripted provider has no models", hint="choose another --provider")
    rows = _known(found) if not found.base_url else []
    if not offline:
        try:
            rows = _merged(_served(found), rows or _known(found))
        except CounterfoilError as fault:
            if found.base_url:
                raise
            faults.say(f"warning: {fault}; this is what the table knows")
    if as_json:
        print_json(rows)
    else:
        _print(rows)
    return exits.DONE


def _known(provider: ProviderSettings) -> list[dict[str, Any]]:
    """What the maintained table knows of a vendor's models."""
    from genai_prices.data_snapshot import get_snapshot

    vendor = next(p for p in get_snapshot().providers if p.id == _TABLE[provider.wire])
    return [
        {"id": m.id, "name": m.name, "context_window": m.context_window, "price": _price(m.prices)}
        for m in vendor.models
        if not m.deprecated
    ]


def _price(prices: Any) -> str:
    latest = prices[-1].prices if isinstance(prices, list) and prices else prices
    return str(latest or "")


def _merged(served: list[str], known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = {row["id"]: row for row in known}
    empty = {"name": None, "context_window": None, "price": ""}
    return [{**table.get(name, empty), "id": name} for name in served]


def _served(provider: ProviderSettings) -> list[str]:
    """The models that the server itself lists. Raises `ProviderError`, `ConfigError`."""
    import httpx

    from counterfoil.config import api_key
    from counterfoil.errors import ProviderError
    from counterfoil.providers import BASE_URLS

    key = api_key(provider, os.environ)
    headers = dict(provider.headers)
    base = (provider.base_url or BASE_URLS[provider.wire]).rstrip("/")
    if provider.wire == "anthropic":
        headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
        base = base if base.endswith("/v1") else f"{base}/v1"
    elif key:
        headers["authorization"] = f"Bearer {key}"
    try:
        body = _get(f"{base}/models", headers, _page(provider))
        return sorted(str(entry["id"]) for entry in json.loads(body)["data"])
    except httpx.HTTPStatusError as fault:
        status = fault.response.status_code
        kind = "auth" if status in (401, 403) else "bad_request"
        hint = "check the key" if kind == "auth" else "name a model with --model"
        raise ProviderError(kind, f"{base}/models answered {status}", permanent=True, hint=hint) from fault
    except (httpx.HTTPError, httpx.InvalidURL) as fault:
        what = f"{base} can't be reached ({type(fault).__name__})"
        raise ProviderError("unreachable", what, permanent=False, hint="check --base-url, or use --offline") from fault
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise ProviderError("malformed", f"{base}/models is no list of models", permanent=True) from fault


def _get(url: str, headers: dict[str, str], page: dict[str, str]) -> bytes:
    """What the server sends, within a bound on its size and on the time for all of it. Raises `httpx.HTTPError`."""
    import httpx

    until = time.monotonic() + TIMEOUT
    got = bytearray()
    with httpx.stream("GET", url, headers=headers, timeout=TIMEOUT, params=page) as response:
        response.raise_for_status()
        for piece in response.iter_bytes():
            got += piece
            if len(got) > MOST or time.monotonic() > until:
                raise httpx.ReadTimeout("the list has no end", request=response.request)
    return bytes(got)


def _page(provider: ProviderSettings) -> dict[str, str]:
    return {"limit": "1000"} if provider.wire == "anthropic" else {}


def _print(rows: list[dict[str, Any]]) -> None:
    from counterfoil.cli.layout import Cell, Column, Row
    from counterfoil.cli.render import print_table
    from counterfoil.scrollback import visible_line

    if not rows:
        print("no models")
        return
    columns = [Column(title="model"), Column(title="window", right=True), Column(title="price", grows=True)]
    cells = [(r["id"], str(r["context_window"] or ""), r["price"]) for r in rows]
    print_table(columns, [Row(cells=[Cell(visible_line(text)) for text in row]) for row in cells])
