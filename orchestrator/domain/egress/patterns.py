"""The hosts that a job was allowed to reach, as a person writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

MAX_PATTERNS = 100
WEB_PORTS = (80, 443)
_MAX_NAME = 253
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_HOW = "write a name such as example.org, *.example.org for all names below it, or example.org:8443"


class PatternRefused(ValueError):
    """A pattern names no host; the message says what to write."""


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One host, or all names below it, on the ports of the web or on one other.

    Attributes:
        host: lower-case, in ASCII, without a dot at the end.
        below: every name under `host`, and not `host` itself.
        port: the only one; None is 80 and 443.
    """

    host: str
    below: bool = False
    port: int | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that it opens."""
        return WEB_PORTS if self.port is None else (self.port,)

    def covers(self, host: str, port: int) -> bool:
        """Whether it opens this host on this port."""
        name = host.lower().rstrip(".")
        named = name.endswith(f".{self.host}") if self.below else name == self.host
        return named and port in self.ports

    def __str__(self) -> str:
        port = "" if self.port is None else f":{self.port}"
        return f"{'*.' if self.below else ''}{self.host}{port}"


def parse_pattern(text: str) -> HostPattern:
    """Read one pattern.

    Raises:
        PatternRefused: it names no host.
    """
    name, colon, digits = text.strip().partition(":")
    below = name.startswith("*.")
    host = _ascii(name.removeprefix("*."), text)
    if below and "." not in host:
        raise PatternRefused(f"{text!r} would open a whole top-level domain; name at least two labels")
    if not _names_host(host):
        raise PatternRefused(f"{text!r} is not a host; {_HOW}")
    return HostPattern(host, below, _port(digits, text) if colon else None)


def parse_patterns(texts: Iterable[str]) -> tuple[HostPattern, ...]:
    """Read all of a job's patterns; each is kept once, in the order given.

    Raises:
        PatternRefused: one names no host, or there are more than 100.
    """
    patterns = tuple(dict.fromkeys(parse_pattern(text) for text in texts))
    if len(patterns) > MAX_PATTERNS:
        raise PatternRefused(
            f"{len(patterns)} hosts are more than the {MAX_PATTERNS} that a job may be allowed"
        )
    return patterns


def covered(patterns: Iterable[HostPattern], host: str, port: int) -> bool:
    """Whether any of the patterns opens this host on this port."""
    return any(pattern.covers(host, port) for pattern in patterns)


def is_host(text: str) -> bool:
    """Whether a connection may ask for this: a name, or an IPv4 address in its usual form."""
    return _names_host(text.lower().rstrip("."))


def _names_host(host: str) -> bool:
    labels = host.split(".")
    if len(host) > _MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return False
    # A last label of digits is an address, and only one way of writing an address means one address.
    return _is_address(host) if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]) else True


def _is_address(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except AddressValueError:
        return False


def _ascii(name: str, text: str) -> str:
    try:
        return name.rstrip(".").encode("idna").decode("ascii").lower() if name else ""
    except UnicodeError:
        raise PatternRefused(f"{text!r} is not a host; {_HOW}") from None


def _port(digits: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 65_536:
        raise PatternRefused(f"{text!r} has no port after the colon; {_HOW}")
    return int(digits)
