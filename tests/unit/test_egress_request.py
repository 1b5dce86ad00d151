"""PD-70: what the loopback proxy makes of a request, and what it passes on of it."""

from __future__ import annotations

import pytest

from worker.egress.request import NotForProxy, parse_request


def test_connect_names_its_target_and_begins_with_nothing() -> None:
    request = parse_request(b"CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\n\r\n")
    assert (request.target, request.first, request.is_tunnel) == ("a.org:443", b"", True)


def test_a_plain_request_goes_to_its_host_alone_and_ends_the_connection() -> None:
    request = parse_request(
        b"POST http://a.org/x?y=1 HTTP/1.1\r\nHost: a.org\r\nContent-Length: 2\r\nProxy-Connection: keep-alive\r\n"
        b"Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\n\r\n"
    )
    assert request.target == "a.org:80"
    assert request.first == (
        b"POST /x?y=1 HTTP/1.1\r\nHost: a.org\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("asked", "target", "path"),
    [
        (b"http://a.org", "a.org:80", b"/"),
        (b"http://a.org?x", "a.org:80", b"/?x"),
        (b"HTTP://A.org:8080/", "A.org:8080", b"/"),
    ],
)
def test_an_address_may_be_short(asked: bytes, target: str, path: bytes) -> None:
    request = parse_request(b"GET " + asked + b" HTTP/1.1\r\nHost: a.org\r\n\r\n")
    assert request.target == target
    assert request.first.startswith(b"GET " + path + b" HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "head",
    [
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
        b"GET https://a.org/ HTTP/1.1\r\n\r\n",
        b"GET ftp://a.org/ HTTP/1.1\r\n\r\n",
        b"GET http://user@a.org/ HTTP/1.1\r\n\r\n",
        b"GET http://a.org/ HTTP/2\r\n\r\n",
        b"GET http://a.org/ x HTTP/1.1\r\n\r\n",
        b"get http://a.org/ HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ],
)
def test_what_is_no_request_to_a_proxy_is_told_how_to_ask(head: bytes) -> None:
    with pytest.raises(NotForProxy, match="proxy"):
        parse_request(head)
