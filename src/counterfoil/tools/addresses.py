"""Which addresses a fetch may connect to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from counterfoil.errors import ToolFailure

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check(host: str, addresses: list[str], *, allow_private: bool) -> None:
    """Raises `ToolFailure` where the host has any address that may not be reached."""
    for text in addresses:
        reason = refusal(ipaddress.ip_address(text.split("%", 1)[0]), allow_private=allow_private)
        if reason:
            raise ToolFailure(f"{host} is at {text}, {reason}: not fetched", executed="no")


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Why the address may not be reached; None where it may."""
    real = _embedded(address)
    if real in _METADATA or real.is_link_local:
        return "a link-local or metadata address"
    if real.is_multicast or real.is_unspecified:
        return "not the address of a host"
    if not real.is_global and not allow_private:
        return "a private address"
    return None


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        return inner or address
    return address


__all__ = ["check", "refusal", "resolve"]
