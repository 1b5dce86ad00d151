"""The package index that this machine's pip uses, as a job needs to be told of it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urljoin, urlsplit

_ASK = """
import json, sys
from pip._internal.cli.main_parser import create_main_parser
from pip._internal.commands.install import InstallCommand
options, _ = InstallCommand("install", "").parser.parse_args([])
print(json.dumps({"index": options.index_url}))
"""


@dataclass(frozen=True)
class PackageIndex:
    """An index, and all that a job must be allowed to use it.

    Attributes:
        url: of the simple index.
        hosts: of the index, and of the files that it lists, each with its port where it is not the web's.
        private: the networks of those hosts' addresses that are not public.
    """

    url: str
    hosts: tuple[str, ...]
    private: tuple[str, ...]


def package_index(package: str) -> PackageIndex | None:
    """The index, asked for one package; None when it does not answer."""
    asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=True)
    url: str = json.loads(asked.stdout)["index"]
    page = f"{url.rstrip('/')}/{package}/"
    try:
        with urllib.request.urlopen(page, timeout=30) as answer:
            files = re.findall(r'href="([^"#]+)', answer.read().decode())
    except OSError:
        return None
    found = dict.fromkeys([_host(page), *(_host(urljoin(page, file)) for file in files[-1:])])
    names = [host.partition(":")[0] for host in found]
    addresses = {str(info[4][0]) for name in names for info in socket.getaddrinfo(name, 443)}
    private = sorted(f"{one}/32" for one in addresses if not ip_address(one).is_global)
    return PackageIndex(url, tuple(found), tuple(private))


def _host(url: str) -> str:
    parts = urlsplit(url)
    return parts.hostname or "" if parts.port in {None, 80, 443} else f"{parts.hostname}:{parts.port}"
