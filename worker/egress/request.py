"""What a command asks of a proxy, as bytes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_METHOD = re.compile(r"[A-Z]{1,20}")
_ABSOLUTE = re.compile(r"http://([^/?#\s@]+)([/?][^\s#]*)?", re.IGNORECASE)
_HTTP_PORT = 80
# Between this client and this proxy; the host is told to end the connection after one answer, so that no
# later request for another host gets there.
_OF_ONE_HOP = frozenset(
    {"connection", "proxy-connection", "proxy-authorization", "proxy-authenticate", "keep-alive", "upgrade"}
)


class NotForProxy(Exception):
    """It is no request to a proxy; the message says what is."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """One request.

    Attributes:
        target: host and port.
        first: what the host is sent before all else; empty for CONNECT, whose client begins itself.
    """

    target: str
    first: bytes = b""

    @property
    def is_tunnel(self) -> bool:
        """The client wants the bare connection."""
        return not self.first


def parse_request(head: bytes) -> ProxyRequest:
    """Read a request's head, with its empty line.

    Raises:
        NotForProxy: it is another kind of request, or none.
    """
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not _METHOD.fullmatch(parts[0]) or not parts[2].startswith("HTTP/1."):
        raise NotForProxy("this is a proxy for HTTP/1.1: set HTTP_PROXY and HTTPS_PROXY to it")
    method, target, version = parts
    if method == "CONNECT":
        return ProxyRequest(target)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise NotForProxy("a proxy is asked with the whole address, http://host/path, or with CONNECT")
    authority, path = absolute.groups()
    kept = [line for line in lines[1:] if line and line.partition(":")[0].strip().lower() not in _OF_ONE_HOP]
    path = path if path and path.startswith("/") else f"/{path or ''}"
    first = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""])
    return ProxyRequest(_with_port(authority), first.encode("latin-1"))


def _with_port(authority: str) -> str:
    return authority if re.search(r":\d+$", authority) else f"{authority}:{_HTTP_PORT}"
