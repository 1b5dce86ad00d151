"""A network's profiles as arrays: exact search, without a database of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.domain.network.agents import AgentDefinition, AgentKind
from orchestrator.domain.network.identities import AgentName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.ports.embedder import Matrix, Scores

    Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ProfileIndex:
    """Agents in the order of their names; each array has a place for each.

    Attributes:
        wholes: one row an agent, of its whole profile.
        parts: the rows of all agents' parts; those of an agent begin at its `starts`.
    """

    agents: tuple[AgentDefinition, ...]
    places: Mapping[AgentName, int]
    tagged: Mapping[str, Sequence[int]]
    human: Mask
    autostart: Mask
    wholes: Matrix
    parts: Matrix
    starts: NDArray[np.int64]

    @classmethod
    def of(
        cls, agents: tuple[AgentDefinition, ...], keys: Sequence[str], vectors: Mapping[str, Matrix]
    ) -> ProfileIndex:
        """Arrays of these agents, whose `keys` all have a matrix in `vectors`; there is one at least."""
        import numpy as np  # only where profiles are searched

        tagged: dict[str, list[int]] = {}
        for place, agent in enumerate(agents):
            for tag in set(agent.tags):
                tagged.setdefault(tag, []).append(place)
        counts = [len(vectors[key]) - 1 for key in keys]
        return cls(
            agents=agents,
            places={agent.name: place for place, agent in enumerate(agents)},
            tagged=tagged,
            human=np.array([agent.kind is AgentKind.HUMAN for agent in agents], np.bool_),
            autostart=np.array([agent.launch.autostart for agent in agents], np.bool_),
            wholes=np.stack([vectors[key][0] for key in keys]),
            parts=np.concatenate([vectors[key][1:] for key in keys]),
            starts=np.cumsum([0, *counts[:-1]], dtype=np.int64),
        )

    def named(self, names: Iterable[AgentName]) -> Mask:
        """Where these agents are."""
        return self._mask(self.places[name] for name in names if name in self.places)

    def with_a_tag_of(self, tags: Iterable[str]) -> Mask:
        """Where agents carry one of these exact tags at least."""
        return self._mask(place for tag in tags for place in self.tagged.get(tag, ()))

    def scores(self, need: Matrix) -> Scores:
        """How near each agent is to a need (one row).

        The mean of its whole profile's cosine and its best part's. Either alone does worse: the whole hides
        a skill among many, and a part has no context (measured).
        """
        import numpy as np

        best = np.maximum.reduceat(self.parts @ need[0], self.starts)
        return (self.wholes @ need[0] + best) / 2

    def _mask(self, places: Iterable[int]) -> Mask:
        import numpy as np

        mask = np.zeros(len(self.agents), np.bool_)
        mask[list(places)] = True
        return mask
