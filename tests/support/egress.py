"""Hosts for jobs to reach: names of a server on loopback, whose network is opened for the test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from orchestrator.adapters.egress.process import find_squid
from orchestrator.domain.egress.addresses import Network
from tests.fakes.name_server import NameServer, name_server

OPENED: tuple[Network, ...] = (ip_network("127.0.0.2/32"),)
HERE = "127.0.0.2"
CLOSED = "127.0.0.1"


def squid_or_skip() -> None:
    """Skip without squid, or without the right to be a name server; fail where everything must be there."""
    lacking = "squid is not installed" if find_squid() is None else ""
    if os.geteuid() != 0:
        lacking = "only root may listen on the port of name servers"
    if lacking:
        if os.environ.get("CI"):
            pytest.fail(lacking)
        pytest.skip(lacking)


@dataclass
class Site:
    """A server on every address of loopback, which sends back what it is sent, and the names that lead to it.

    Attributes:
        reached: the addresses that clients connected to.
    """

    port: int
    names: NameServer
    reached: list[str] = field(default_factory=list[str])

    def name(self, host: str, *addresses: str) -> str:
        self.names.names[host] = list(addresses)
        return host


@asynccontextmanager
async def site() -> AsyncGenerator[Site]:
    """A site that is there while the context lasts."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.reached.append(writer.get_extra_info("sockname")[0])
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with name_server() as names:
        server = await asyncio.start_server(echo, "0.0.0.0", 0)
        made = Site(server.sockets[0].getsockname()[1], names)
        try:
            yield made
        finally:
            server.close()
