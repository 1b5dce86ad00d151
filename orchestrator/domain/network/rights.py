"""What a representative may do in a network: never more than the person that it acts for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.network.identities import AgentName, NetworkName

OPERATOR = "operator"
"""The person who holds the operator token; every network is theirs."""


class Right(StrEnum):
    """Something that can be granted in one network."""

    OBSERVE = "observe"
    COMMUNICATE = "communicate"
    DELEGATE = "delegate"
    OPERATE = "operate"


Rights = Mapping[NetworkName, frozenset[Right]]


@dataclass(frozen=True, slots=True)
class Representative:
    """Acts for a person, over all networks that it was granted.

    Attributes:
        person: for whom.
        active_network: where it acts when a call names no network.
        grants: what it was given in each network.
    """

    name: AgentName
    person: str
    created_at: datetime
    active_network: NetworkName | None = None
    grants: Rights = field(default_factory=dict[NetworkName, frozenset[Right]])


def effective(representative: Representative, access: Rights) -> dict[NetworkName, list[Right]]:
    """What it may do now, by network: what it was granted and its person may. Other networks are not there.

    Args:
        representative: with its grants.
        access: its person's.
    """
    found: dict[NetworkName, list[Right]] = {}
    for network, granted in sorted(representative.grants.items()):
        may: Collection[Right] = Right if representative.person == OPERATOR else access.get(network, ())
        rights = [right for right in Right if right in granted and right in may]
        if rights:
            found[network] = rights
    return found
