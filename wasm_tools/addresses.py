"""Which addresses a guest's request may reach."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


def is_public(text: str) -> bool:
    """Whether an address is one of the open internet's.

    An IPv4 address inside an IPv6 one counts as itself: mapped, 6to4, Teredo and NAT64 lead there.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not address.is_multicast and not address.is_reserved


def is_reachable(text: str) -> bool:
    """Whether it is the address of one machine, private or not."""
    address = ip_address(text.partition("%")[0])
    return not (address.is_multicast or address.is_unspecified)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _NAT64) or int(address) >> 32 == 0:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
