"""Addresses that are no part of the public network, and are never reached for a job."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import TypeVar

Network = IPv4Network | IPv6Network
N = TypeVar("N", IPv4Network, IPv6Network)

# IANA's special-purpose registries, and one platform address of a cloud that looks like a public one.
_CLOSED_4 = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
)
# What is not 2000::/3 is not the public network; of what is, these carry other addresses inside, or nothing.
_CLOSED_6 = (
    "::/3",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
)
# What a machine in a cloud is told of itself, credentials among it: closed also where its network is opened.
_NEVER_4 = (
    "100.100.100.200/32",
    "168.63.129.16/32",
    "169.254.169.254/32",
    "169.254.170.0/24",
    "192.0.0.192/32",
)
_NEVER_6 = ("fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128")
# IPv4 in IPv6's clothes is judged as the IPv4 address that it is: a network around all of these would
# stand in the way of that.
_MAPPED = IPv6Network("::ffff:0:0/96")


def closed_networks(opened: Iterable[Network] = (), own: Iterable[Network] = ()) -> tuple[Network, ...]:
    """Every network that is closed to jobs; no two overlap.

    Args:
        opened: by the operator.
        own: addresses of this machine, which are closed too: what listens on them is not meant for jobs.
    """
    holes_4, holes_6 = _by_family(opened)
    own_4, own_6 = _by_family(own)
    four = _without((*(IPv4Network(one) for one in _CLOSED_4), *own_4), holes_4)
    six = _without((*(IPv6Network(one) for one in _CLOSED_6), *own_6), [_MAPPED, *holes_6])
    return (
        *collapse_addresses([*four, *(IPv4Network(one) for one in _NEVER_4)]),
        *collapse_addresses([*six, *(IPv6Network(one) for one in _NEVER_6)]),
    )


def _by_family(networks: Iterable[Network]) -> tuple[list[IPv4Network], list[IPv6Network]]:
    four: list[IPv4Network] = []
    six: list[IPv6Network] = []
    for one in networks:
        if isinstance(one, IPv4Network):
            four.append(one)
        else:
            six.append(one)
    return four, six


def parse_networks(text: str) -> tuple[Network, ...]:
    """Networks from a list with commas, such as `10.1.2.0/24, fd00::/64`.

    Raises:
        ValueError: one of them is none.
    """
    return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())


def _without(closed: Iterable[N], opened: list[N]) -> list[N]:
    left = list(closed)
    for hole in opened:
        left = [piece for network in left for piece in _pieces(network, hole)]
    return left


def _pieces(network: N, hole: N) -> list[N]:
    if not network.overlaps(hole):
        return [network]
    return list(network.address_exclude(hole)) if hole.subnet_of(network) and hole != network else []
