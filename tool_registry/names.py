"""The names tools are shown under: legal for every provider, stable, collision-proof, reversible.

A name depends on the set of offered tools only, never on the order in which they came.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tool_registry.tool import ToolSource

MAX_NAME_CHARS = 64
LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")

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


def _digest(request: NameRequest) -> str:
    return hashlib.sha256(f"{request.owner}\0{request.original}".encode()).hexdigest()[:8]


def _suffixed(name: str, request: NameRequest) -> str:
    return f"{name[: MAX_NAME_CHARS - 9]}_{_digest(request)}"


def _legal(request: NameRequest) -> str:
    name = _ILLEGAL.sub("_", request.proposed)
    return name if len(name) <= MAX_NAME_CHARS else _suffixed(name, request)


def assign_names(requests: Iterable[NameRequest]) -> Mapping[NameRequest, str]:
    """Give every request a name; all of those that collide get a suffix of their own.

    A fixed name never moves: those that collide with it do.
    """
    wanted: defaultdict[str, list[NameRequest]] = defaultdict(list)
    for request in requests:
        wanted[request.proposed if request.fixed else _legal(request)].append(request)
    names: dict[NameRequest, str] = {}
    for name, rivals in wanted.items():
        for request in rivals:
            alone = len(rivals) == 1
            names[request] = name if alone or request.fixed else _suffixed(name, request)
    return names
