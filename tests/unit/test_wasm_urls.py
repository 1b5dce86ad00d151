"""Which requests a rule allows, and which addresses are public (BR-095)."""

from __future__ import annotations

import pytest

from wasm_tools.addresses import is_public, is_reachable
from wasm_tools.grants import HttpRule
from wasm_tools.host import HostDenied
from wasm_tools.urls import check_allowed, follow, parse_url

API = HttpRule(host="api.example.test", path_prefix="/repos", methods=("GET",))


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.test/repos",
        "https://API.EXAMPLE.TEST./repos/x?y=z",
        "https://api.example.test:443/repos/a%20b#part",
        "HTTPS://api.example.test/repos/",
    ],
)
def test_the_granted_host_and_path_pass_however_they_are_written(url: str) -> None:
    check_allowed("GET", parse_url(url), [API])


@pytest.mark.parametrize(
    ("method", "url", "said"),
    [
        ("GET", "https://api.example.test.evil.test/repos", "not among the hosts"),
        ("GET", "https://api.example.test@evil.test/repos", "user or password"),
        ("GET", "http://api.example.test/repos", "may reach https://api.example.test"),
        ("GET", "https://api.example.test:8443/repos", "not granted: https://api.example.test:8443"),
        ("GET", "https://evilapi.example.test/repos", "not among the hosts"),
        ("GET", "https://example.test/repos", "not among the hosts"),
        ("GET", "https://[::ffff:127.0.0.1]/repos", "not among the hosts"),
        ("GET", "https://api.example.test/reposition", "this path"),
        ("GET", "https://api.example.test/repos/../admin", ". or .. as a segment"),
        ("GET", "https://api.example.test/repos/%2e%2E/admin", ". or .. as a segment"),
        ("GET", "https://api.example.test/repos/..%2fadmin", ". or .. as a segment"),
        ("GET", "https://api.example.test/repos/..%5cadmin", ". or .. as a segment"),
        ("GET", "https://api.example.test\\@evil.test/repos", "backslash"),
        ("GET", "https://api.example.test/repos HTTP/1.1\r\nX: y", "control character"),
        ("POST", "https://api.example.test/repos", "may send GET"),
        ("GET", "ftp://api.example.test/repos", "does not start with https://"),
        ("GET", "/repos", "does not start with https://"),
        ("GET", "https:///repos", "no host name"),
        ("GET", "https://api.example.test:99999/repos", "can't be read"),
        ("GET", "https://[::1/repos", "can't be read"),
        ("GET", f"https://api.example.test/repos/{'x' * 9_000}", "8,192 characters"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(method: str, url: str, said: str) -> None:
    """BR-095: hosts are compared whole, not as prefixes of text."""
    with pytest.raises(HostDenied) as caught:
        check_allowed(method, parse_url(url), [API])
    assert said in str(caught.value)


def test_a_star_stands_for_what_lies_under_a_name_and_alone_for_any() -> None:
    under = HttpRule(host="*.example.test")
    check_allowed("GET", parse_url("https://a.b.example.test/"), [under])
    for other in ("https://example.test/", "https://evilexample.test/"):
        with pytest.raises(HostDenied):
            check_allowed("GET", parse_url(other), [under])
    check_allowed("GET", parse_url("https://anything.test/"), [HttpRule(host="*")])


def test_a_host_outside_of_ascii_is_looked_up_by_its_encoded_name() -> None:
    assert parse_url("https://b\u00fccher.test/").host == "xn--bcher-kva.test"


def test_a_redirect_is_read_as_a_url_of_its_own() -> None:
    here = parse_url("https://api.example.test/repos/a?token=1")
    assert follow(here, "b").path == "/repos/b"
    assert follow(here, "//other.test/x").host == "other.test"
    with pytest.raises(HostDenied):
        follow(here, "file:///etc/passwd")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
        *("::", "::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::"),
        *("168.63.129.16", "192.0.0.192", "192.88.99.1", "fec0::1", "3fff::1", "::ffff:0:7f00:1", "5f00::1"),
    ],
)
def test_addresses_of_one_network_only_are_not_public(address: str) -> None:
    """BR-095: loopback, link-local, private, metadata and whatever leads there."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_addresses_of_the_open_internet_are_public(address: str) -> None:
    assert is_public(address)


def test_a_group_or_no_machine_at_all_is_never_reached() -> None:
    assert is_reachable("127.0.0.1")
    assert not any(map(is_reachable, ("224.0.0.1", "0.0.0.0", "ff02::1", "::")))


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
        *("fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
    ],
)
def test_what_a_cloud_tells_its_machines_is_never_reached(address: str) -> None:
    """BR-095: also where private addresses were granted."""
    assert not is_reachable(address)
    assert not is_public(address)
