"""A name server on an address of loopback, whose answers a test changes as it goes."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

_A, _PTR, _AAAA = 1, 12, 28
_PORT = 53  # squid asks no other


class NameServer(asyncio.DatagramProtocol):
    """Answers with a life of zero seconds; a name that it does not know does not exist.

    Attributes:
        address: where it listens.
        names: every name's addresses, of either family; of `2.0.0.127.in-addr.arpa` and its like, names.
        asked: the names it was asked for.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.names: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, end = _name(data)
        (kind,) = struct.unpack("!H", data[end : end + 2])
        self.asked.append(name)
        found = [one for one in self.names.get(name, []) if _kind(one) == kind]
        flags = 0x8180 if name in self.names else 0x8183
        answer = data[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0) + data[12 : end + 4]
        for one in found:
            packed = _packed(one)
            answer += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed
        assert self._transport is not None
        self._transport.sendto(answer, addr)


def _kind(value: str) -> int:
    if ":" in value:
        return _AAAA
    return _A if value[-1].isdigit() else _PTR


def _packed(value: str) -> bytes:
    if _kind(value) == _PTR:
        return b"".join(bytes([len(one)]) + one.encode("ascii") for one in value.split(".")) + b"\0"
    return socket.inet_pton(socket.AF_INET6 if ":" in value else socket.AF_INET, value)


def _name(query: bytes) -> tuple[str, int]:
    labels: list[str] = []
    at = 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii").lower())
        at += query[at] + 1
    return ".".join(labels), at + 1


@asynccontextmanager
async def name_server() -> AsyncGenerator[NameServer]:
    """One that runs while the context lasts.

    Raises:
        PermissionError: the port of name servers is root's.
    """
    server = NameServer(f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}.53")
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=(server.address, _PORT))
    try:
        yield server
    finally:
        transport.close()
