"""Keys of shared resources: one key per repository, however its address is written."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlsplit

from orchestrator.domain.network.refusals import Refusal

MAX_KEY_CHARS = 512

_SCP = re.compile(r"(?:[^@/:\s]+@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]+):(?P<path>(?!\d+(?:/|$))[^\s]+)")
_HOST_PATH = re.compile(r"(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d+)?)/(?P<path>\S+)")
_DEFAULT_PORTS = {"ssh": 22, "git+ssh": 22, "https": 443, "http": 80, "git": 9418}


def resource_key(text: str) -> str | Refusal:
    """The canonical key of a resource.

    `git@host:o/r.git`, `ssh://git@host/o/r` and `https://host/o/r/` are `host/o/r`: the host is lower-cased,
    user and password, default port, query, `.git` and outer slashes are dropped; the path keeps its case. Any
    other name, such as `billing-db`, is its own key.

    Returns:
        The key, or `invalid_resource` for an empty, over-long or local one (a path or a `file:` address).
    """
    key = unicodedata.normalize("NFC", text).strip()
    if not key or len(key) > MAX_KEY_CHARS or not key.isprintable():
        return _invalid(text, f"a key has 1 to {MAX_KEY_CHARS} printable characters")
    if key.startswith(("/", "./", "../", "~", "file:")) or key in {".", ".."} or "\\" in key:
        return _invalid(
            text, "a local path means something else on every machine; give a repository's address"
        )
    if "://" in key:
        return _of_url(key)
    if match := _HOST_PATH.fullmatch(key) or _SCP.fullmatch(key):
        return _of_parts(match["host"], match["path"])
    return key


def _of_url(url: str) -> str | Refusal:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _invalid(url, "the address can't be read")
    if not host:
        return _invalid(url, "the address has no host")
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme.lower()):
        host = f"{host}:{port}"
    return _of_parts(host, parts.path)


def _of_parts(host: str, path: str) -> str:
    place = "/".join(part for part in path.split("/") if part).removesuffix(".git")
    return f"{host.lower()}/{place}" if place else host.lower()


def _invalid(text: str, why: str) -> Refusal:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return Refusal("invalid_resource", f"{shown!r} names no resource: {why}")
