"""One app behind an address of this machine's own."""

from __future__ import annotations

import ipaddress
import socket

from starlette.types import ASGIApp

from orchestrator.adapters.sockets.http_listener import HttpListener

_MOST_PEERS = 1024  # every agent from outside comes in here


class LoopbackSocket:
    """Listens on a loopback address; nothing of it is encrypted, so it leaves the machine by a proxy only.

    Args:
        app: what is served.
        address: `HOST:PORT`, the host a number; port 0 is any free one.
    """

    def __init__(self, app: ASGIApp, address: str) -> None:
        self._listener = HttpListener(app, most_peers=_MOST_PEERS)
        self._address = address
        self.url = ""

    async def open(self) -> None:
        """Listen; from then on `url` says where.

        Raises:
            OSError: the address is none of this machine's own, or is taken.
        """
        host, port = _loopback(self._address)
        family = socket.AF_INET6 if host.version == 6 else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((str(host), port))
            await self._listener.open(bound)
        except OSError as error:
            bound.close()
            raise OSError(f"can't listen on {self._address}: {error.strerror or error}") from error
        named = f"[{host}]" if host.version == 6 else str(host)
        self.url = f"http://{named}:{bound.getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening; requests under way are cut off after a moment."""
        await self._listener.close()


def _loopback(address: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    host, _, port = address.rpartition(":")
    try:
        number, at = ipaddress.ip_address(host.strip("[]")), int(port)
    except ValueError:
        raise OSError(f"can't listen on {address!r}: write HOST:PORT, such as 127.0.0.1:7411") from None
    if not number.is_loopback:
        raise OSError(
            f"can't listen on {address}: only this machine's own addresses are taken, such as "
            "127.0.0.1:7411; put a proxy that speaks TLS in front of it"
        )
    return number, at
