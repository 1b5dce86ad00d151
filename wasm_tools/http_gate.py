"""Every request of one call of a guest: checked, pinned, given its credentials, and cleaned on the way back.

rule -> count and rate -> look up -> address -> credentials -> send -> redirect? from the start
                                                                 -> bounds -> redact -> the guest
"""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from tool_registry.redaction import Redactor
from wasm_tools.addresses import is_public, is_reachable
from wasm_tools.exchange import Incoming, Outgoing, TooMuch, exchange
from wasm_tools.grants import TOKEN, Credential, HttpGrant
from wasm_tools.host import HostDenied, HttpRequest, HttpResponse, OverLimit
from wasm_tools.limits import Limits
from wasm_tools.urls import Target, check_allowed, follow, parse_url

_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_S = 30.0
_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "upgrade",
        "te",
        "trailer",
    }
    | {"expect", "keep-alive", "proxy-authorization", "proxy-connection"}
)
_OF_ONE_ORIGIN = frozenset({"authorization", "cookie"})
_OF_A_BODY = frozenset({"content-type", "content-language", "content-encoding"})
BODY_ENCODING = "x-portside-body"
"""The response header that says `base64` where the body was no text."""


@dataclass(frozen=True, slots=True)
class HttpOutside:
    """What the gate is given.

    Attributes:
        resolve: the addresses of a host and port, within seconds; raises OSError.
        secret: a secret's value, within seconds; None when it is not there.
        wait_s: takes one request from the declared rate; None, or the seconds to wait.
        opened: told of each socket.
        public: which addresses are the open internet's.
    """

    resolve: Callable[[str, int, float], Sequence[str]]
    secret: Callable[[str, float], str | None]
    wait_s: Callable[[], float | None]
    tls: ssl.SSLContext
    opened: Callable[[socket.socket], None]
    public: Callable[[str], bool] = is_public


class HttpGate:
    """The requests of one call; not for more than one thread."""

    def __init__(self, grant: HttpGrant, limits: Limits, outside: HttpOutside) -> None:
        self._grant = grant
        self._outside = outside
        self._limits = limits
        self._requests_left = limits.http_requests
        self._bytes_left = limits.http_bytes
        self._redactor = (
            Redactor()
        )  # of every secret that this call has sent: a site may hand one to the next

    def send(self, request: HttpRequest, remaining_s: float) -> HttpResponse:
        """Send a request, and follow where it is redirected as long as that is granted too.

        Raises:
            HostDenied: it is not granted, over the declared rate, or it failed.
            OverLimit: the call has sent all that it may, or more than its bytes were sent or came.
        """
        wish_s = _LONGEST_S if request.timeout_ms is None else request.timeout_ms / 1_000
        deadline = time.monotonic() + min(wish_s, remaining_s, _LONGEST_S)
        outgoing = Outgoing(
            request.method.upper(),
            parse_url(request.url),
            _own_headers(request.headers),
            None if request.body is None else request.body.encode(),
        )
        try:
            return self._followed(outgoing, deadline)
        except HostDenied as denied:
            raise HostDenied(self._redactor.text(str(denied))) from None

    def _followed(self, outgoing: Outgoing, deadline: float) -> HttpResponse:
        for _ in range(_MAX_REDIRECTS + 1):
            incoming = self._once(outgoing, deadline)
            location = incoming.header("location")
            if incoming.status not in _REDIRECTS or not location:
                return _shown(incoming, self._redactor)
            outgoing = _redirected(outgoing, incoming.status, location)
        raise HostDenied(f"more than {_MAX_REDIRECTS} redirects")

    def _once(self, outgoing: Outgoing, deadline: float) -> Incoming:
        target = outgoing.target
        check_allowed(outgoing.method, target, self._grant.allow)
        self._count(_weight(outgoing.headers, outgoing.body))
        addresses = self._addresses(target, deadline)
        secrets = self._secrets(target, deadline)
        for one, value in secrets:
            for form in _as_sent(one, value):
                self._redactor.learn({one.secret: form})
        try:
            incoming = exchange(
                _with_credentials(outgoing, secrets),
                addresses,
                tls=self._outside.tls,
                deadline=deadline,
                max_bytes=self._bytes_left,
                opened=self._outside.opened,
            )
        except TooMuch:
            raise self._too_many_bytes() from None
        self._bytes_left -= _weight(incoming.headers, incoming.body)
        if self._bytes_left < 0:
            raise self._too_many_bytes()
        if incoming.header("content-encoding").lower() not in {"", "identity"}:
            raise HostDenied(f"{target.origin} answered compressed, which it was told not to")
        return incoming

    def _count(self, size: int) -> None:
        if self._requests_left == 0:
            raise OverLimit(
                f"sent its {self._limits.http_requests} HTTP requests, its limit, and another one"
            )
        self._requests_left -= 1
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise self._too_many_bytes()
        wait_s = self._outside.wait_s()
        if wait_s is not None:
            raise HostDenied(f"over the rate of HTTP requests that this tool was given; wait {wait_s:.1f} s")

    def _too_many_bytes(self) -> OverLimit:
        return OverLimit(
            f"sent and received more over HTTP than its limit of {self._limits.http_bytes:,} bytes"
        )

    def _addresses(self, target: Target, deadline: float) -> Sequence[str]:
        """Look the host up, once: whatever its name says next, the connection goes to these.

        Raises:
            HostDenied: it has none, or one of them is not to be reached.
        """
        try:
            found = self._outside.resolve(target.host, target.port, max(0.0, deadline - time.monotonic()))
        except (OSError, UnicodeError):
            raise HostDenied(f"{target.host} can't be looked up") from None
        fits = is_reachable if self._grant.allow_private else self._outside.public
        if not found or not all(map(fits, found)):
            raise HostDenied(f"not granted: {target.host} is at an address that is not public")
        return found

    def _secrets(self, target: Target, deadline: float) -> list[tuple[Credential, str]]:
        found: list[tuple[Credential, str]] = []
        for credential in self._grant.credentials.values():
            if target.host not in {host.strip("[]") for host in credential.hosts}:
                continue
            value = self._outside.secret(credential.secret, max(0.0, deadline - time.monotonic()))
            if value is None:
                raise HostDenied(
                    f"the secret {credential.secret} is not set; the operator sets it with"
                    f" 'portside secrets set {credential.secret}'"
                )
            found.append((credential, value))
        return found


def _weight(headers: Sequence[tuple[str, str]], body: bytes | None) -> int:
    return sum(len(name) + len(value.encode()) for name, value in headers) + len(body or b"")


def _as_sent(credential: Credential, value: str) -> tuple[str, ...]:
    """A secret as a site may hand it back: as it is, in a host's name, a password without its user."""
    plain = value.strip()
    password = (plain.partition(":")[2],) if credential.location == "basic" else ()
    return (value, plain.lower(), *password)


def _own_headers(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    for name, value in headers:
        if name.lower() in _OURS:
            raise HostDenied(f"the header {name} is set by the host; leave it out")
        if not TOKEN.fullmatch(name) or any(char in value for char in "\r\n\0"):
            raise HostDenied("a header's value has a line break, or its name is none")
    return [*headers, ("Accept-Encoding", "identity")]


def _redirected(before: Outgoing, status: int, location: str) -> Outgoing:
    target = follow(before.target, location)
    after = replace(before, target=target)
    if status == 303 or (status in {301, 302} and before.method == "POST"):
        method = before.method if before.method == "HEAD" else "GET"
        kept = [header for header in after.headers if header[0].lower() not in _OF_A_BODY]
        after = replace(after, method=method, body=None, headers=kept)
    if target.origin != before.target.origin:
        kept = [header for header in after.headers if header[0].lower() not in _OF_ONE_ORIGIN]
        after = replace(after, headers=kept)
    return after


def _with_credentials(plain: Outgoing, secrets: Sequence[tuple[Credential, str]]) -> Outgoing:
    """The request with what only the host knows; nothing of it ever goes back to the guest."""
    headers = list(plain.headers)
    target = plain.target
    for credential, stored in secrets:
        value = stored.strip()
        if "\r" in value or "\n" in value:
            raise HostDenied(f"the secret {credential.secret} has a line break and fits no request")
        name = credential.name or "Authorization"
        match credential.location:
            case "query":
                pair = f"{quote(name, safe='')}={quote(value, safe='')}"
                target = replace(target, query=f"{target.query}&{pair}" if target.query else pair)
            case "path":
                target = replace(target, path=target.path.replace(name, quote(value, safe="")))
            case "bearer" | "basic" | "header" as location:
                headers = [header for header in headers if header[0].lower() != name.lower()]
                headers.append((name, _header_value(location, value)))
    return replace(plain, headers=headers, target=target)


def _header_value(location: str, value: str) -> str:
    if location == "bearer":
        return f"Bearer {value}"
    return value if location == "header" else "Basic " + base64.b64encode(value.encode()).decode()


def _shown(incoming: Incoming, redactor: Redactor) -> HttpResponse:
    headers = [(redactor.text(name), redactor.text(value)) for name, value in incoming.headers]
    headers = [(name.lower(), value) for name, value in headers if name.lower() != BODY_ENCODING]
    clean = redactor.text(incoming.body.decode("utf-8", "surrogateescape"))
    try:
        clean.encode()
    except UnicodeEncodeError:
        raw = clean.encode("utf-8", "surrogateescape")
        text = _decoded(raw, incoming.header("content-type"))
        if text is not None:
            clean = redactor.text(text)
        else:
            clean = base64.b64encode(raw).decode()
            headers.append((BODY_ENCODING, "base64"))
    return HttpResponse(incoming.status, tuple(headers), clean)


def _decoded(raw: bytes, content_type: str) -> str | None:
    """Text in the charset that it declares, where that is one of the usual ones."""
    parameters = (part.partition("=") for part in content_type.split(";")[1:])
    named = {key.strip().lower(): value.strip().strip('"').lower() for key, _, value in parameters}
    charset = named.get("charset", "")
    if charset not in {"iso-8859-1", "latin1", "windows-1252", "iso-8859-15", "utf-16"}:
        return None
    return raw.decode(charset, "replace")
