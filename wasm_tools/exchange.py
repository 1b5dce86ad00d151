"""One HTTP exchange over one connection to one address, within one deadline.

The standard library's client follows nothing, reads no proxy from the environment and takes a connection
that is already made, so what was checked is what is reached.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from wasm_tools.host import HostDenied
from wasm_tools.urls import Target

_CHUNK_BYTES = 64 * 1024
_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it goes over the wire, credentials in it."""

    method: str
    target: Target
    headers: Sequence[tuple[str, str]]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A response as it came; nothing was taken out of it yet."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The first header of this name; "" when there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class TooMuch(Exception):
    """The response is over its bound."""


def exchange(
    request: Outgoing,
    addresses: Sequence[str],
    *,
    tls: ssl.SSLContext,
    deadline: float,
    max_bytes: int,
    opened: Callable[[socket.socket], None],
) -> Incoming:
    """Send a request to the first of the addresses that takes a connection, and read the answer whole.

    Args:
        request: what to send.
        addresses: literal ones; nothing is looked up.
        tls: for https; the certificate has to fit the target's host.
        deadline: on `time.monotonic`, for everything.
        max_bytes: of the body.
        opened: told of the socket, so that somebody else can shut it down.

    Raises:
        TooMuch: more than `max_bytes` came.
        HostDenied: it failed; the message names the host and never the query.
    """
    where = request.target.origin
    try:
        with _connected(request.target, addresses, tls, deadline, opened) as stream:
            connection = HTTPConnection(request.target.host)
            connection.sock = _Deadlined(stream, deadline)
            return _talk(connection, request, max_bytes)
    except (TimeoutError, _Late):
        raise HostDenied(f"{where} did not answer in time") from None
    except ssl.SSLCertVerificationError as error:
        raise HostDenied(f"the certificate of {where} is not valid: {error.verify_message}") from None
    except (OSError, HTTPException) as error:
        raise HostDenied(f"{where} could not be reached: {_words(error)}") from None


def _talk(connection: HTTPConnection, request: Outgoing, max_bytes: int) -> Incoming:
    target = request.target
    query = f"?{target.query}" if target.query else ""
    connection.putrequest(request.method, target.path + query, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", target.origin.partition("://")[2])
    for name, value in request.headers:
        connection.putheader(name, value.encode("utf-8"))
    connection.putheader("Connection", "close")
    if request.body is not None:
        connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body)
    with connection.getresponse() as response:
        body = bytearray()
        while chunk := response.read(min(_CHUNK_BYTES, max_bytes + 1 - len(body))):
            body += chunk
            if len(body) > max_bytes:
                raise TooMuch
        return Incoming(response.status, tuple(response.getheaders()), bytes(body))


def _connected(
    target: Target,
    addresses: Sequence[str],
    tls: ssl.SSLContext,
    deadline: float,
    opened: Callable[[socket.socket], None],
) -> socket.socket:
    failure: OSError = OSError("it has no address")
    for address in addresses:
        try:
            plain = socket.create_connection(
                (address, target.port), timeout=min(_CONNECT_S, _left_s(deadline))
            )
        except OSError as error:
            failure = error
            continue
        opened(plain)
        if target.scheme == "http":
            return plain
        try:
            plain.settimeout(_left_s(deadline))
            secured = tls.wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise
        opened(secured)
        return secured
    raise failure


class _Late(Exception):
    """The deadline has passed."""


def _left_s(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise _Late
    return left


class _Deadlined:
    """A socket whose every wait ends at the deadline, however the peer drips its bytes."""

    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._stream.settimeout(_left_s(self._deadline))
        self._stream.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._stream, self._deadline))

    def close(self) -> None:
        """The owner of the stream closes it."""


class _Reader(io.RawIOBase):
    def __init__(self, stream: socket.socket, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._stream.settimeout(_left_s(self._deadline))
        return self._stream.recv_into(buffer)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if isinstance(error, HTTPException) else str(error)
