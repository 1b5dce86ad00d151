"""The names tools are shown under: legal for every provider, stable, collision-proof, reversible.

A name depends on the set of offered tools only, never on the order in which they came.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tool_registry.tool import ToolSource

MAX_NAME_CHARS = 64
LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_CHARS = 8
_MAX_HASHES = 7  # 56 digits and an underscore leave room for a name

LOCAL_NAMES = frozenset({"shell", "read_file", "write_file", "list_dir", "apply_patch", "finish"})
COLLABORATION_NAMES = frozenset(
    {"search_for_agents", "send_collaboration_request", "check_collaboration_result"}
)


def protected_for(name: str) -> ToolSource | None:
    """Who owns a reserved name; None when anybody may have it."""
    if name in LOCAL_NAMES:
        return ToolSource.LOCAL
    if name in COLLABORATION_NAMES or name.startswith(("network_", "control_")):
        return ToolSource.NETWORK
    if name.startswith("portside_"):
        return ToolSource.MANAGEMENT
    return None


def may_hold(name: str, source: ToolSource) -> bool:
    """Whether a tool of this source may be shown under this name.

    A worker's proxy stands for a tool that the orchestrator's registry has let pass, so it may hold any
    name but a local tool's.
    """
    owner = protected_for(name)
    if source is ToolSource.PROXY:
        return owner is not ToolSource.LOCAL
    return owner is None or owner is source


@dataclass(frozen=True, slots=True, order=True)
class NameRequest:
    """A tool that wants a name.

    Attributes:
        owner: who offers it.
        original: the owner's own name, unique within the owner.
        proposed: the name it would like; may be illegal or too long.
        fixed: take `proposed` as it is (names that are protocol).
    """

    owner: str
    original: str
    proposed: str
    fixed: bool = False

    @property
    def legal(self) -> str:
        """The proposed name with every illegal character replaced; it may be too long."""
        return self.proposed if self.fixed else _ILLEGAL.sub("_", self.proposed)


def _named(request: NameRequest, hashes: int) -> str:
    """The legal name, ending in so many groups of eight digits of its hash."""
    name = request.legal
    if not request.fixed and len(name) > MAX_NAME_CHARS:
        hashes = max(hashes, 1)
    if not hashes:
        return name
    whole = f"{request.owner}\0{request.original}".encode("utf-8", "surrogatepass")
    suffix = hashlib.sha256(whole).hexdigest()[: _HASH_CHARS * hashes]
    return f"{name[: MAX_NAME_CHARS - 1 - len(suffix)]}_{suffix}"


def assign_names(requests: Iterable[NameRequest]) -> Mapping[NameRequest, str]:
    """Give every request a name; all of those that collide get a suffix of their own.

    A fixed name never moves: those that collide with it do. A suffixed name that meets another's is
    suffixed longer, and so is the other, so that names differ whatever was proposed; only fixed names that
    are equal stay equal.
    """
    hashes = dict.fromkeys(requests, 0)
    names = {request: _named(request, 0) for request in hashes}
    for _ in range(_MAX_HASHES):
        holders = Counter(names.values())
        movable = [one for one, name in names.items() if holders[name] > 1 and not one.fixed]
        if not movable:
            break
        for request in movable:
            hashes[request] += 1
            names[request] = _named(request, hashes[request])
    return names
