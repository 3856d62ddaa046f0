"""A client of the server that a URL names, with the bearer token that the environment has for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from counterfoil.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from counterfoil.client.wire import WireClient

TOKEN = "COUNTERFOIL_TOKEN"  # noqa: S105 - a variable's name
CLIENT_CERT, CLIENT_KEY = "COUNTERFOIL_CLIENT_CERT", "COUNTERFOIL_CLIENT_KEY"
TOKEN_FILE = "COUNTERFOIL_TOKEN_FILE"  # noqa: S105
FORMS = "http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH"


def connect(url: str, env: Mapping[str, str] = os.environ) -> WireClient:
    """A client of the server at `url`; nothing is sent yet. Raises `UsageError` for what names none.

    The token is what `COUNTERFOIL_TOKEN` says, or the first line of the file that `COUNTERFOIL_TOKEN_FILE` names. A
    private certificate authority is trusted where `SSL_CERT_FILE` names its certificate; `COUNTERFOIL_CLIENT_CERT` and
    `COUNTERFOIL_CLIENT_KEY` name what is shown to a server that wants a certificate.
    """
    token = token_of(env)
    if url.startswith("unix:"):
        from counterfoil.client import http

        path = url.removeprefix("unix:").removeprefix("//")
        if not path:
            raise UsageError("--connect unix: names no socket", hint=FORMS)
        return http.connect("http://localhost", token, uds=path)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as fault:
        raise UsageError(f"--connect {url!r} is not a URL: {fault}", hint=FORMS) from fault
    if not host or parts.scheme not in ("http", "https", "grpc", "grpcs") or parts.username or parts.password:
        raise UsageError(f"--connect {url!r} names no server", hint=FORMS)
    if parts.query or parts.fragment or parts.path.strip("/"):
        raise UsageError(f"--connect {url!r}: only a host and a port are named", hint=FORMS)
    if token and parts.scheme in ("http", "grpc") and not _is_here(host):
        raise UsageError(
            f"the token would be sent to {host} in the clear", hint="use https:// or grpcs://, or a tunnel to loopback"
        )
    if parts.scheme in ("grpc", "grpcs"):
        from counterfoil.client import grpc

        name = f"[{host}]" if ":" in host else host
        if parts.scheme == "grpc":
            return grpc.connect(f"{name}:{port or 8712}", token)
        return grpc.connect(f"{name}:{port or 8712}", token, roots=_roots(env), own=_own(env))
    from counterfoil.client import http

    secured = _context(env) if parts.scheme == "https" else True
    return http.connect(f"{parts.scheme}://{parts.netloc}", token, verify=secured)


def token_of(env: Mapping[str, str]) -> str | None:
    """The bearer token of the environment. Raises `UsageError` for a file that can't be read, or holds none."""
    token = env.get(TOKEN, "")
    if not token and (file := env.get(TOKEN_FILE)):
        try:
            token = Path(file).expanduser().read_text(encoding="utf-8").split("\n", 1)[0]
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{TOKEN_FILE}: {file} can't be read: {fault}") from fault
        if not token.strip():
            raise UsageError(f"{TOKEN_FILE}: the first line of {file} is empty")
    token = token.strip()
    if token and not (token.isascii() and token.isprintable()):
        raise UsageError("the token has characters that no token has", hint="`counterfoil token create` prints one")
    return token or None


def _is_here(host: str) -> bool:
    from counterfoil.api.door import is_loopback

    return is_loopback(host)


def _context(env: Mapping[str, str]) -> ssl.SSLContext:
    """How a server's certificate is checked, and what is shown to it."""
    import ssl

    roots = _roots(env)
    try:
        context = ssl.create_default_context(cadata=roots.decode("ascii", "ignore") if roots else None)
        if env.get(CLIENT_CERT):
            context.load_cert_chain(env[CLIENT_CERT], env.get(CLIENT_KEY) or None, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as fault:
        raise UsageError(f"certificates of this client can't be read: {fault}", hint=f"check {CLIENT_CERT}") from fault
    return context


def _own(env: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    """Key and certificate of this client, in PEM; None where there are none."""
    if not env.get(CLIENT_CERT):
        return None
    try:
        cert = Path(env[CLIENT_CERT]).read_bytes()
        return Path(env.get(CLIENT_KEY) or env[CLIENT_CERT]).read_bytes(), cert
    except OSError as fault:
        raise UsageError(f"certificates of this client can't be read: {fault}", hint=f"check {CLIENT_CERT}") from fault


def _roots(env: Mapping[str, str]) -> bytes:
    """The certificates of authorities: those of `SSL_CERT_FILE`, else those that the system's Python trusts."""
    import ssl

    file = env.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    if not file:
        return b""
    try:
        return Path(file).read_bytes()
    except OSError as fault:
        raise UsageError(f"the certificates of {file} can't be read: {fault.strerror}") from fault
