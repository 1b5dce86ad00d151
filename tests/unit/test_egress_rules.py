"""PD-70, PD-71: which hosts a pattern opens, and which addresses stay closed."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from orchestrator.adapters.egress.own_addresses import own_networks
from orchestrator.domain.egress.addresses import closed_networks, parse_networks
from orchestrator.domain.egress.patterns import (
    PatternRefused,
    covered,
    is_host,
    parse_pattern,
    parse_patterns,
)


def closed(address: str, opened: str = "") -> bool:
    return any(ip_address(address) in network for network in closed_networks(parse_networks(opened)))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Example.ORG", "example.org"),
        (" example.org. ", "example.org"),
        ("*.example.org", "*.example.org"),
        ("example.org:8443", "example.org:8443"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("registry", "registry"),
        ("192.0.2.7", "192.0.2.7"),
        ("_dmarc.example.org", "_dmarc.example.org"),
    ],
)
def test_a_pattern_is_kept_in_one_spelling(written: str, kept: str) -> None:
    assert str(parse_pattern(written)) == kept


@pytest.mark.parametrize(
    "written",
    [
        "",
        "*",
        "*.org",
        "*example.org",
        "a.*.org",
        "https://example.org",
        "example.org/path",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:+80",
        "example.org:80:80",
        "user@example.org",
        "exam ple.org",
        "example..org",
        "-a.org",
        "a" * 64 + ".org",
        ".".join(["a" * 60] * 5),
        "127.1",
        "0x7f.0.0.1",
        "010.0.0.1",
        "2130706433",
        "[::1]:80",
        "::1",
        "example.org\nhttp_access allow all",
        "(.*)",
    ],
)
def test_what_names_no_host_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(PatternRefused, match=r"write a name such as|name at least two labels"):
        parse_pattern(written)


def test_a_pattern_opens_the_ports_of_the_web_or_the_one_it_names() -> None:
    assert parse_pattern("a.org").covers("A.org.", 443)
    assert parse_pattern("a.org").covers("a.org", 80)
    assert not parse_pattern("a.org").covers("a.org", 22)
    assert parse_pattern("a.org:22").covers("a.org", 22)
    assert not parse_pattern("a.org:22").covers("a.org", 443)
    assert covered(parse_patterns(["a.org", "*.b.org"]), "x.b.org", 443)
    assert not covered(parse_patterns(["a.org", "*.b.org"]), "b.org", 443)
    assert not covered(parse_patterns(["*.b.org"]), "evilb.org", 443)


def test_patterns_are_kept_once_and_bounded() -> None:
    assert len(parse_patterns(["a.org", "A.ORG", "a.org."])) == 1
    with pytest.raises(PatternRefused, match="101 hosts are more than the 100"):
        parse_patterns(f"h{number}.org" for number in range(101))


def test_only_one_way_of_writing_an_address_is_a_host() -> None:
    assert is_host("1.2.3.4")
    assert is_host("example.org")
    assert not [
        one for one in ("1.2.3", "0x1.2.3.4", "16909060", "1.2.3.4.5", "[::1]", "a b", "") if is_host(one)
    ]


def test_networks_that_are_not_public_are_closed_and_public_ones_are_not() -> None:
    for address in (
        *("127.0.0.1", "10.0.0.1", "169.254.169.254", "172.31.255.255", "192.168.0.1", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "168.63.129.16"),
        *(
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::1",
            "2002::1",
            "2001:db8::1",
        ),
    ):
        assert closed(address), address
    for address in ("8.8.8.8", "1.1.1.1", "151.101.0.223", "2606:4700::1111", "2a04:4e42::223"):
        assert not closed(address), address


def test_the_operator_opens_exactly_what_is_named() -> None:
    opened = "10.1.0.0/16, fd00::/8"
    assert not closed("10.1.2.3", opened)
    assert not closed("fd12::1", opened)
    assert closed("10.2.0.1", opened)
    assert closed("fc00::1", opened)
    assert not closed("10.255.0.1", "0.0.0.0/0")


def test_what_a_cloud_tells_its_machines_is_never_opened() -> None:
    for address in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"):
        assert closed(address, "0.0.0.0/0, ::/0"), address


@pytest.mark.parametrize("opened", ["", "10.1.0.0/16", "169.254.0.0/16", "0.0.0.0/0, ::/0", "fd00::/8"])
def test_no_two_closed_networks_overlap(opened: str) -> None:
    """Of two that do squid leaves one out; the IPv4 addresses within IPv6 count as IPv4 for it."""
    networks = closed_networks(parse_networks(opened))
    for network in networks:
        others = [one for one in networks if one is not network and one.version == network.version]
        assert not [one for one in others if one.overlaps(network)], network
        assert network.version == 4 or not network.overlaps(ip_network("::ffff:0:0/96"))


def test_the_addresses_of_this_machine_are_closed_unless_the_operator_opened_them(tmp_path: Path) -> None:
    (tmp_path / "fib_trie").write_text(
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 8.8.8.0\n        /24 link UNICAST\n     |-- 8.8.8.8\n"
        "        /32 host LOCAL\n     |-- 8.8.8.255\n        /32 link BROADCAST\n     |-- 10.0.0.4\n"
        "        /32 host LOCAL\nLocal:\n     |-- 8.8.8.8\n        /32 host LOCAL\n"
    )
    (tmp_path / "if_inet6").write_text("26064700000000000000000000001111 02 40 00 80     eth0\n")
    own = own_networks(tmp_path)
    assert [str(one) for one in own] == ["8.8.8.8/32", "10.0.0.4/32", "2606:4700::1111/128"]
    networks = closed_networks((), own)
    for address in ("8.8.8.8", "2606:4700::1111"):
        assert [one for one in networks if ip_address(address) in one], address
    assert not [one for one in networks if ip_address("8.8.8.9") in one]
    assert len(networks) == len(set(networks)) == len(closed_networks()) + 2
    opened = closed_networks(parse_networks("8.8.8.8/32"), own)
    assert not [one for one in opened if ip_address("8.8.8.8") in one]
    assert own_networks(tmp_path / "nowhere") == ()


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="has host bits set"):
        parse_networks("10.0.0.1/8")
