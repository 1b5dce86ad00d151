"""Which addresses a guest's request may reach."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_PUBLIC_6 = IPv6Network("2000::/3")
# IANA's registries have these as special too; the library calls them global.
_SPECIAL = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv6Network("3fff::/20"))
# Where a machine in a cloud is told of itself, credentials among it: closed to tools, whatever was granted.
_METADATA = (
    IPv4Network("100.100.100.200/32"),
    IPv4Network("168.63.129.16/32"),
    IPv4Network("169.254.169.254/32"),
    IPv4Network("169.254.170.0/24"),
    IPv4Network("192.0.0.192/32"),
    IPv6Network("fd00:ec2::254/128"),
    IPv6Network("fd00:ec2::23/128"),
    IPv6Network("fd20:ce::254/128"),
)


def is_public(text: str) -> bool:
    """Whether an address is one of the open internet's.

    An IPv4 address inside an IPv6 one counts as itself: mapped, 6to4, Teredo and NAT64 lead there.
    """
    address = _meant(text)
    if isinstance(address, IPv6Address) and address not in _PUBLIC_6:
        return False
    closed = (*_SPECIAL, *_METADATA)
    return address.is_global and not address.is_multicast and not any(address in one for one in closed)


def is_reachable(text: str) -> bool:
    """Whether it is the address of one machine, private or not, and no cloud's metadata service."""
    address = _meant(text)
    return not (address.is_multicast or address.is_unspecified or any(address in one for one in _METADATA))


def _meant(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text.partition("%")[0])
    return (_embedded(address) or address) if isinstance(address, IPv6Address) else address


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _NAT64) or 1 < int(address) < 2**32:  # beside :: and ::1
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
