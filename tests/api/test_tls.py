"""`serve` over TLS as a real process: the certificate is checked, a client's own is wanted where that is said."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from counterfoil.client.connect import connect
from counterfoil.errors import CounterfoilError, Unreachable
from counterfoil.service.tokens import Tokens
from tests.support.server import Server


class Authority:
    """A certificate authority that exists for a test."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._certificate(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.public_bytes(Encoding.PEM))

    def _certificate(self, name: x509.Name, key: Any, constraints: x509.BasicConstraints) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(constraints, critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def issue(self, name: str) -> tuple[Path, Path]:
        """Files of a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._certificate(subject, key, x509.BasicConstraints(ca=False, path_length=None))
        cert, file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        cert.write_bytes(made.public_bytes(Encoding.PEM))
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return cert, file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def servers(folder: Path) -> Iterator[Any]:
    made: list[Server] = []

    def start(*more: str) -> Server:
        made.append(Server(folder, {"turns": [{"text": "done"}]}, *more))
        return made[-1]

    yield start
    for server in made:
        server.end()


async def who(url: str, env: dict[str, str]) -> str:
    async with connect(url, env) as client:
        return (await client.get_info()).principal_name


def both(server: Server) -> tuple[str, str]:
    assert server.url.startswith("https://")
    return server.url, f"grpcs://{server.grpc}"


async def test_over_tls_with_a_token(servers: Any, folder: Path) -> None:
    authority, other = Authority(folder, "right"), Authority(folder, "wrong")
    cert, key = authority.issue("server")
    _, bearer = Tokens(folder / "state").create("ada", "owner", now=0)
    server = servers("--auth", "tokens", "--tls-cert", str(cert), "--tls-key", str(key))
    for url in both(server):
        env = {"COUNTERFOIL_TOKEN": bearer, "SSL_CERT_FILE": str(authority.file)}
        assert await who(url, env) == "ada"
        with pytest.raises(Unreachable):
            await who(url, env | {"SSL_CERT_FILE": str(other.file)})
        with pytest.raises(CounterfoilError, match="a valid token is needed"):
            await who(url, {"SSL_CERT_FILE": str(authority.file)})
    with pytest.raises(CounterfoilError):
        await who(server.url.replace("https", "http"), {})


async def test_a_client_shows_a_certificate_where_one_is_wanted(servers: Any, folder: Path) -> None:
    authority, other = Authority(folder, "right"), Authority(folder, "wrong")
    cert, key = authority.issue("server")
    own, own_key = authority.issue("client")
    strange, strange_key = other.issue("stranger")
    server = servers("--tls-cert", str(cert), "--tls-key", str(key), "--tls-client-ca", str(authority.file))
    for url in both(server):
        env = {"SSL_CERT_FILE": str(authority.file)}
        shown = env | {"COUNTERFOIL_CLIENT_CERT": str(own), "COUNTERFOIL_CLIENT_KEY": str(own_key)}
        assert await who(url, shown)
        with pytest.raises(Unreachable):
            await who(url, env)
        with pytest.raises(Unreachable):
            await who(url, env | {"COUNTERFOIL_CLIENT_CERT": str(strange), "COUNTERFOIL_CLIENT_KEY": str(strange_key)})
