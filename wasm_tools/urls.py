"""What a guest's URL means, decided once: what is checked is what is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, unquote, urljoin, urlsplit

from wasm_tools.grants import DEFAULT_PORTS, HttpRule
from wasm_tools.host import HostDenied

_MAX_URL_CHARS = 8_192
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_KEPT = "%/:=&?~!$'()*+,;@-._"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes.

    Attributes:
        host: in lower case, without a dot at the end; an IPv6 address without brackets.
        path: percent-encoded, "/" at least.
        query: percent-encoded, without the question mark.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, as a person writes them."""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.authority_host}{port}"

    @property
    def authority_host(self) -> str:
        """The host as it stands in a URL and in a Host header."""
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_url(url: str) -> Target:
    """Read a URL.

    Raises:
        HostDenied: it is not one that can be granted; the message says why.
    """
    if len(url) > _MAX_URL_CHARS:
        raise HostDenied(f"the URL has more than {_MAX_URL_CHARS:,} characters")
    if _UNSAFE.search(url):
        raise HostDenied("the URL has a space, a backslash or a control character; encode it")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise HostDenied(f"the URL can't be read: {error}") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise HostDenied("the URL does not start with https://")
    if "@" in parts.netloc:
        raise HostDenied("the URL has a user or password in it; the host adds credentials itself")
    path = quote(parts.path, safe=_KEPT) or "/"
    if any(part in {".", ".."} for part in re.split(r"[/\\]", unquote(path))):
        raise HostDenied("the URL's path has . or .. as a segment; write it without")
    host = _host(parts.hostname or "")
    return Target(
        parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path, quote(parts.query, safe=_KEPT)
    )


def follow(target: Target, location: str) -> Target:
    """Where a redirect leads.

    Raises:
        HostDenied: as `parse_url`.
    """
    return parse_url(urljoin(f"{target.origin}{target.path}", location))


def check_allowed(method: str, target: Target, rules: Iterable[HttpRule]) -> None:
    """Find the rule that allows a request.

    Raises:
        HostDenied: there is none; the message names the nearest thing that is wrong.
    """
    of_host = [rule for rule in rules if _fits_host(rule.host, target.host)]
    if not of_host:
        raise HostDenied(f"not granted: {target.host} is not among the hosts this tool may reach")
    of_origin = [
        rule for rule in of_host if (rule.scheme, rule.effective_port) == (target.scheme, target.port)
    ]
    if not of_origin:
        granted = ", ".join(sorted({rule.origin() for rule in of_host}))
        raise HostDenied(f"not granted: {target.origin}; this tool may reach {granted}")
    of_path = [rule for rule in of_origin if _fits_path(rule.path_prefix, target.path)]
    if not of_path:
        raise HostDenied(f"not granted: this path of {target.origin}")
    if not any(method in rule.methods for rule in of_path):
        granted = ", ".join(sorted({one for rule in of_path for one in rule.methods}))
        raise HostDenied(f"not granted: {method}; this tool may send {granted} there")


def _host(host: str) -> str:
    host = host.rstrip(".")
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        plain = ""
    if not plain or not re.fullmatch(r"[a-z0-9._-]{1,253}", plain):
        raise HostDenied("the URL has no host name that can be looked up")
    return plain


def _fits_host(granted: str, host: str) -> bool:
    if granted == "*":
        return True
    if granted.startswith("*."):
        return host.endswith(granted[1:])
    return granted.strip("[]") == host


def _fits_path(prefix: str, path: str) -> bool:
    plain, start = unquote(path), unquote(prefix).rstrip("/")
    return plain == start or plain.startswith(f"{start}/")
