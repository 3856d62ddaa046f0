"""What `serve` refuses to start as: one line, before anything is bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.test_tls import Authority
from tests.cli.support import Cli, one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tls-cert", "a"), "TLS needs a certificate and its key"),
        (("--tls-client-ca", "a"), "TLS needs a certificate and its key"),
        (("--tls-cert", "none", "--tls-key", "none"), "can't be read"),
        (("--tls-cert", "{ca}", "--tls-key", "{ca}"), "aren't a certificate and its key"),
        (("--auth", "oidc"), "needs an issuer and an audience"),
        (("--oidc-issuer", "https://x"), "with --auth oidc alone"),
        (("--auth", "oidc", "--oidc-issuer", "http://example.invalid", "--oidc-audience", "a"), "no https:// URL"),
        (("--host", "0.0.0.0"), "nobody would have to show a token"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    authority = Authority(tmp_path, "ca")
    given = [argument.format(ca=authority.file) for argument in arguments]
    script = cli.script({"text": "x"})
    done = cli("serve", "--port", "0", "--grpc-port", "0", "--provider", "scripted", "--script", script, *given)
    assert done.code == 2 and says in one_line(done)
