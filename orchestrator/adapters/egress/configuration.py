"""Squid's configuration as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.egress.addresses import Network
from orchestrator.domain.egress.patterns import HostPattern

JOB_HEADER = "X-Portside-Job"
GENERATION_HEADER = "X-Portside-Generation"
# What the log's reader reads; see `orchestrator.adapters.egress.log`.
LOG_FORMAT = "%{job}note %.300>ru %Ss/%03>Hs %<a %>st %<st %tr %err_code"
# Pages that squid has, by whose names it says in an answer and in the log why it refused.
CLOSED = "ERR_CONFLICT_HOST"
UNRESOLVED = "ERR_DNS_FAIL"

_CONNECT_S = 20
_IDLE_S = 600
_ADDRESSES = 16_384


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that may connect.

    Attributes:
        key: 64 hexadecimal digits; whoever sends it is the job.
    """

    job_id: str
    key: str
    hosts: Sequence[HostPattern]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where squid works.

    Attributes:
        port: on loopback.
        closed: networks that no name may lead to.
        nameservers: addresses of name servers; none are the system's.
    """

    port: int
    closed: Sequence[Network]
    nameservers: Sequence[str] = ()


def configuration(layout: Layout, jobs: Mapping[str, Admitted], generation: str) -> str:
    """The whole file.

    Args:
        layout: where it works.
        jobs: who may connect where.
        generation: names this text; a request with it in a header is answered by a redirect that repeats
            it, which is how one knows that the text is in force.
    """
    lines = [*_frame(layout), *_generation(generation), *_closed(layout.closed)]
    for number, job in enumerate(jobs.values()):
        lines += _job(number, job)
    return "\n".join([*lines, "http_access deny all", ""])


def _frame(layout: Layout) -> list[str]:
    servers = [f"dns_nameservers {' '.join(layout.nameservers)}"] if layout.nameservers else []
    return [
        f"http_port 127.0.0.1:{layout.port}",
        "pid_filename none",
        "visible_hostname portside",
        f"logformat portside {LOG_FORMAT}",
        # Of jobs alone: whoever else knocks at the port must not fill the log.
        "acl of_job note job",
        "access_log stdio:/proc/self/fd/1 logformat=portside of_job",
        "cache_log /dev/null",
        "debug_options ALL,0",
        "coredump_dir none",
        "netdb_filename none",
        "pinger_enable off",
        "cache deny all",
        "cache_mem 0 MB",
        "memory_pools off",
        f"connect_timeout {_CONNECT_S} seconds",
        f"forward_timeout {_CONNECT_S * 2} seconds",
        "request_timeout 30 seconds",
        f"read_timeout {_IDLE_S} seconds",
        "dns_timeout 10 seconds",
        # Between the look at an address and the connection to it the address must not change.
        f"ipcache_size {_ADDRESSES}",
        "negative_dns_ttl 60 seconds",
        *servers,
        "acl CONNECT method CONNECT",
    ]


def _generation(generation: str) -> list[str]:
    return [
        f"acl asks_generation req_header {GENERATION_HEADER} ^{generation}$",
        f"deny_info 307:http://{generation}.invalid/ asks_generation",
        "http_access deny asks_generation",
        "http_access deny !CONNECT",
    ]


def _closed(networks: Iterable[Network]) -> list[str]:
    lines = [f"acl closed dst {network}" for network in networks]
    return [
        *lines,
        # A name that had no address when it was looked at must not have one a moment later.
        "acl resolved4 dst 0.0.0.0/1 128.0.0.0/1",
        "acl resolved6 dst ::/1 8000::/1",
        "acl resolved any-of resolved4 resolved6",
        "acl unresolved annotate_transaction resolved=no",
        f"deny_info {CLOSED} closed",
        f"deny_info {UNRESOLVED} unresolved",
    ]


def _job(number: int, job: Admitted) -> list[str]:
    """What one job may reach. Each rule begins with the name: only an allowed one is looked up."""
    lines = [
        f"acl job{number} req_header {JOB_HEADER} ^{job.key}$",
        f"acl known{number} annotate_transaction job={job.job_id}",
    ]
    for place, host in enumerate(job.hosts):
        name, ports = f"host{number}x{place}", f"port{number}x{place}"
        # -n: an address has whatever name its owner's name server says; that name opens nothing.
        below = rf"dstdom_regex -n ^.+\.{re.escape(host.host)}$"
        lines += [
            f"acl {name} {below if host.below else f'dstdomain -n {host.host}'}",
            f"acl {ports} port {' '.join(map(str, host.ports))}",
            f"http_access deny job{number} known{number} {name} {ports} closed",
            f"http_access deny job{number} known{number} {name} {ports} !resolved unresolved",
            f"http_access allow job{number} known{number} {name} {ports}",
        ]
    return lines
