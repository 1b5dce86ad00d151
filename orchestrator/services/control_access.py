"""What a representative may do now, and where it acts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal, not_found
from orchestrator.domain.network.rights import Representative, Right, effective
from orchestrator.ports.representatives import RepresentativeStore
from orchestrator.services.network_members import Refused


@dataclass(frozen=True, slots=True)
class Acting:
    """A representative in one of its calls.

    Attributes:
        rights: what it may do now, by network; other networks don't exist for it.
        call_id: the acting call.
    """

    representative: Representative
    rights: dict[NetworkName, list[Right]]
    call_id: str

    @property
    def name(self) -> AgentName:
        """Its name."""
        return self.representative.name

    def network(self, named: str | None, needs: Right) -> NetworkName:
        """The named network, else the active one.

        Raises:
            Refused: `not_found`; `no_active_network`; `not_granted`.
        """
        if named is None:
            found = self.representative.active_network
            if found is None or found not in self.rights:
                raise Refused(
                    Refusal(
                        "no_active_network",
                        "name a network by networkId, or choose one with control_use_network",
                        {"networks": list(self.rights)},
                    )
                )
        else:
            found = self.known(named)
        self.check(found, needs)
        return found

    def known(self, named: str) -> NetworkName:
        """A network that it has any right in.

        Raises:
            Refused: `not_found`.
        """
        name = normal_name(named)
        if isinstance(name, Refusal) or name not in self.rights:
            raise Refused(not_found("network", named))
        return NetworkName(name)

    def check(self, network: NetworkName, needs: Right) -> None:
        """Raise unless it has the right.

        Raises:
            Refused: `not_granted`.
        """
        if needs not in self.rights.get(network, ()):
            has = [right.value for right in self.rights.get(network, ())]
            raise Refused(
                Refusal(
                    "not_granted",
                    f"this needs the right {needs.value!r} in network {network!r}; an operator grants it to "
                    "the representative, and access to its person",
                    {"needs": needs.value, "has": has},
                )
            )

    def within(self, needs: Right) -> list[NetworkName]:
        """The networks that it has the right in, the active one first."""
        first = self.representative.active_network
        found = [network for network, rights in self.rights.items() if needs in rights]
        return sorted(found, key=lambda network: network != first)


class ControlAccess:
    """Asks at every call anew: what was taken away is gone at once."""

    def __init__(self, store: RepresentativeStore) -> None:
        self._store = store

    async def acting(self, name: str, call_id: str) -> Acting:
        """The representative of a token, in one call.

        Raises:
            Refused: `not_a_representative`.
        """
        found = await self._store.get(AgentName(name))
        if found is None:
            raise Refused(Refusal("not_a_representative", f"{name!r} is no representative any more"))
        return Acting(found, effective(found, await self._store.access(found.person)), call_id)

    async def use(self, acting: Acting, named: str) -> NetworkName:
        """Make a network the active one.

        Raises:
            Refused: `not_found`.
        """
        network = acting.known(named)
        await self._store.put(replace(acting.representative, active_network=network))
        return network
