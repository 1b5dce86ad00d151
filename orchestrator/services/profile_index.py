"""A network's profiles as arrays: exact search, without a database of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.domain.network.agents import AgentDefinition, AgentKind
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.identities import AgentName
from orchestrator.domain.network.profiles import ProfileTexts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestrator.ports.embedder import Matrix, Scores

    Mask: TypeAlias = NDArray[np.bool_]

Declared = Mapping[AgentName, tuple[Capability, ...]]
"""What the live instances of agents say they can do besides their agent's profile."""


@dataclass(frozen=True, slots=True)
class Profile:
    """An agent and what is compared with a need.

    Attributes:
        vectors: one row for `every` of the texts; there is one part at least.
    """

    agent: AgentDefinition
    texts: ProfileTexts
    vectors: Matrix


@dataclass(frozen=True, slots=True)
class ProfileIndex:
    """Profiles in the order of their agents' names; each array but `rows` has a place for each.

    Attributes:
        revision: of the network's profiles, when these were read.
        declared: at that time; part of the texts.
        rows: the vectors of all profiles, one profile after the other; those of one begin at its `starts`.
    """

    revision: int
    declared: Declared
    profiles: tuple[Profile, ...]
    places: Mapping[AgentName, int]
    tagged: Mapping[str, Sequence[int]]
    human: Mask
    autostart: Mask
    rows: Matrix
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, revision: int, declared: Declared, profiles: Sequence[Profile]) -> ProfileIndex:
        """Arrays of these profiles; there is one at least."""
        import numpy as np  # only where profiles are searched

        agents = [one.agent for one in profiles]
        tagged: dict[str, list[int]] = {}
        for place, agent in enumerate(agents):
            for tag in set(agent.tags):
                tagged.setdefault(tag, []).append(place)
        rows = np.concatenate([one.vectors for one in profiles])
        ends = np.cumsum([len(one.vectors) for one in profiles], dtype=np.int64)
        starts = np.concatenate([ends[:1] * 0, ends[:-1]])
        # As parts of the new array, so that nothing of the old one stays in memory.
        spans = zip(profiles, starts.tolist(), ends.tolist(), strict=True)
        return cls(
            revision=revision,
            declared=declared,
            profiles=tuple(Profile(one.agent, one.texts, rows[start:end]) for one, start, end in spans),
            places={agent.name: place for place, agent in enumerate(agents)},
            tagged=tagged,
            human=np.array([agent.kind is AgentKind.HUMAN for agent in agents], np.bool_),
            autostart=np.array([agent.launch.autostart for agent in agents], np.bool_),
            rows=rows,
            starts=starts,
        )

    def profile(self, name: AgentName) -> Profile | None:
        """An agent's."""
        place = self.places.get(name)
        return None if place is None else self.profiles[place]

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

        near = self.rows @ need[0]
        wholes = near[self.starts]
        near[self.starts] = -1.0  # the whole is no part
        return (wholes + np.maximum.reduceat(near, self.starts)) / 2

    def _mask(self, places: Iterable[int]) -> Mask:
        import numpy as np

        mask = np.zeros(len(self.profiles), np.bool_)
        mask[list(places)] = True
        return mask
