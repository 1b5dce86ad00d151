"""The addresses of this machine, as its kernel lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from orchestrator.domain.egress.addresses import Network

_PROC = Path("/proc/net")
_LOCAL_4 = re.compile(r"\|-- (\S+)\s+/32 host LOCAL")


def own_networks(proc: Path = _PROC) -> tuple[Network, ...]:
    """Each address as a network of its own; none where the kernel tells of none."""
    return tuple(sorted(set(_found(proc)), key=lambda network: (network.version, network)))


def _found(proc: Path) -> Iterator[Network]:
    for address in _LOCAL_4.findall(_text(proc / "fib_trie")):
        yield ip_network(address)
    for line in _text(proc / "if_inet6").splitlines():
        yield ip_network(int(line.split()[0], 16).to_bytes(16, "big"))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""  # no such family here, or no such kernel
