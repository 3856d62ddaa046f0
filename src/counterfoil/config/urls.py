"""Is this a base URL that requests may go to?"""

from __future__ import annotations


def url_fault(url: str) -> tuple[str, str] | None:
    """What is wrong with a base URL, and what to do."""
    from urllib.parse import urlsplit

    hint = "like https://host/v1"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return f"{url!r} is not a URL", hint
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return f"{url!r} is not an http or https URL", hint
    if parts.username is not None or parts.password is not None:
        return "a URL with a user or a password in it would hold a key", "name a variable in `api_key_env`"
    if parts.query or parts.fragment:
        return f"{url!r} has a query or a fragment", hint
    return None
