"""Finding agents by what they can do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import anyio.to_thread

from orchestrator.domain.network.agent_search import AgentQuery, Found, LeftOut, Match
from orchestrator.domain.network.agents import FRESH, AgentDefinition
from orchestrator.domain.network.capabilities import Capability
from orchestrator.domain.network.collaboration import RECENT_TIMEOUT, CollaborationRequest
from orchestrator.domain.network.identities import Actor, AgentName, NetworkName
from orchestrator.domain.network.profiles import ProfileTexts, profile_texts
from orchestrator.domain.network.refusals import Refusal
from orchestrator.ports.embedder import Embedder, EmbedderUnavailable
from orchestrator.ports.network import NetworkReader, NetworkStore
from orchestrator.ports.profile_vectors import ProfileVectorStore
from orchestrator.services.network_members import Refused, acting_member
from orchestrator.services.profile_index import Declared, Profile, ProfileIndex
from orchestrator.services.profile_vectors import PATIENCE_S, ProfileVectors
from tool_registry.clock import Clock

if TYPE_CHECKING:
    from orchestrator.ports.embedder import Matrix
    from orchestrator.services.profile_index import Mask


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a search has to know of its network, as of one moment.

    Attributes:
        revision: of the profiles.
        names: of all agents, in order; None while the revision is the one of the index.
        changed: agents that were stored after that.
        serving: agents with an instance that can be given work.
        requests: between the searcher and others, unanswered, not long over.
    """

    at: datetime
    revision: int
    names: Sequence[AgentName] | None
    changed: Sequence[AgentDefinition]
    declared: Declared
    serving: frozenset[AgentName]
    requests: Sequence[CollaborationRequest]


@dataclass(slots=True)
class _Prepared:
    """What is kept of one network between two searches."""

    vectors: ProfileVectors
    index: ProfileIndex | None = None


class AgentSearch:
    """Semantic search over full profiles, exact and without the network.

    Args:
        store: where the networks are kept.
        embedder: judges what is near; asked when the first search comes.
        vectors: keeps what it made of profiles.
        clock: tells who is available.
        patience_s: how long a search waits for profiles that are being prepared.
    """

    def __init__(
        self,
        store: NetworkStore,
        embedder: Embedder,
        vectors: ProfileVectorStore,
        clock: Clock,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._vectors = vectors
        self._clock = clock
        self._patience_s = patience_s
        self._networks: dict[NetworkName, _Prepared] = {}

    async def close(self) -> None:
        """Prepare no more profiles."""
        await asyncio.gather(*(one.vectors.close() for one in self._networks.values()))

    async def search(self, actor: Actor, query: AgentQuery) -> Found:
        """Those that fit a need and can be given work now, best first; all conditions come before `top_k`.

        Raises:
            Refused: `not_a_member`; `search_unavailable`, when the model can't be run or is not ready yet.
        """
        prepared = self._networks.get(actor.network)
        if prepared is None:
            vectors = ProfileVectors(self._embedder, self._vectors, patience_s=self._patience_s)
            prepared = self._networks.setdefault(actor.network, _Prepared(vectors))
        before, now = prepared.index, self._clock.now()
        known = -1 if before is None else before.revision
        seen = await self._store.read(actor.network, lambda reader: _look(reader, actor, known, now))
        try:
            index = await _index(prepared.vectors, before, seen)
            if prepared.index is before:
                prepared.index = index
            need = await self._embedder.embed([query.text])
        except EmbedderUnavailable as error:
            raise Refused(_unavailable(error)) from error
        return await anyio.to_thread.run_sync(self._ranked, actor, query, seen, index, need)

    def _ranked(
        self, actor: Actor, query: AgentQuery, seen: _Seen, index: ProfileIndex, need: Matrix
    ) -> Found:
        left, left_out = _left_over(actor, query, seen, index)
        places = left.nonzero()[0]
        similar = self._embedder.calibration.similarities(index.scores(need)[places]).round(4)
        # Stable: those that are equally near stay in the order of their names.
        order = (-similar).argsort(kind="stable")
        near = order[similar[order] >= query.strictness]
        left_out[LeftOut.TOO_FAR] = len(order) - len(near)
        matches: list[Match] = []
        for one in near[: query.top_k].tolist():
            agent = index.profiles[int(places[one])].agent
            similarity = round(float(similar[one]), 4)
            matches.append(Match(agent, similarity, seen.declared.get(agent.name, ())))
        nearest = float(similar.max()) if len(similar) and not matches else None
        return Found(query, matches, len(index.profiles), left_out, nearest)


def _look(reader: NetworkReader, actor: Actor, known: int, now: datetime) -> _Seen:
    acting_member(reader, actor)
    revision = reader.profiles_revision()
    same = revision == known
    return _Seen(
        now,
        revision,
        None if same else reader.agent_names(),
        [] if same else reader.definitions_since(known),
        _declared(reader),
        frozenset(reader.serving_agents(now - FRESH)),
        reader.unanswered_requests(actor.agent, now - RECENT_TIMEOUT),
    )


def _declared(reader: NetworkReader) -> Declared:
    found: dict[AgentName, tuple[Capability, ...]] = {}
    for instance in reader.declaring_instances():
        found[instance.agent] = (*found.get(instance.agent, ()), *instance.capabilities)
    return found


async def _index(vectors: ProfileVectors, before: ProfileIndex | None, seen: _Seen) -> ProfileIndex:
    """The index of what was seen; only what is new in it is described and compared anew."""
    news = _news(before, seen)
    if before is not None and seen.names is None and not news:
        return before
    profiles = {} if before is None else {one.agent.name: one for one in before.profiles}
    described = await anyio.to_thread.run_sync(_described, news, seen.declared)
    # Most changes of a profile leave most of its texts as they were.
    earlier = [one for agent in news if (one := profiles.get(agent.name))]
    at_hand = {text: row for one in earlier for text, row in zip(one.texts.every, one.vectors, strict=True)}
    made = await vectors.of({key: texts for _, key, texts in described}, at_hand)
    profiles |= {agent.name: Profile(agent, texts, made[key]) for agent, key, texts in described}
    present = [profiles[name] for name in (profiles if seen.names is None else seen.names)]
    return await anyio.to_thread.run_sync(ProfileIndex.of, seen.revision, seen.declared, present)


def _news(before: ProfileIndex | None, seen: _Seen) -> list[AgentDefinition]:
    """Agents that were stored since, and those whose instances declare something else."""
    found = {agent.name: agent for agent in seen.changed}
    if before is not None:
        for name in {*before.declared, *seen.declared}:
            known = before.profile(name)
            if known is not None and before.declared.get(name) != seen.declared.get(name):
                found.setdefault(name, known.agent)
    return list(found.values())


def _described(
    agents: Iterable[AgentDefinition], declared: Declared
) -> list[tuple[AgentDefinition, str, ProfileTexts]]:
    """Each with its texts and their key; agents that say the same have the same."""
    described = [(agent, profile_texts(agent, declared.get(agent.name, ()))) for agent in agents]
    return [(agent, texts.key, texts) for agent, texts in described]


def _left_over(
    actor: Actor, query: AgentQuery, seen: _Seen, index: ProfileIndex
) -> tuple[Mask, dict[LeftOut, int]]:
    """Those that no condition but the need's leaves out, and how many each one left out."""
    open_ones = [one.other_than(actor.agent) for one in seen.requests if one.expires_at > seen.at]
    over = [one.target for one in seen.requests if one.expires_at <= seen.at and one.requester == actor.agent]
    out: Mapping[LeftOut, Mask] = {
        LeftOut.SELF: index.named([actor.agent]),
        LeftOut.HUMAN: index.human,
        LeftOut.UNAVAILABLE: ~(index.autostart | index.named(seen.serving)),
        LeftOut.IN_CONVERSATION: index.named(open_ones),
        LeftOut.TIMED_OUT: index.named(over),
    }
    if query.tags:
        out = {**out, LeftOut.UNTAGGED: ~index.with_a_tag_of(query.tags)}
    left = index.named(index.places)
    counts: dict[LeftOut, int] = {}
    for reason, mask in out.items():
        counts[reason] = int((left & mask).sum())
        left &= ~mask
    return left, counts


def _unavailable(error: EmbedderUnavailable) -> Refusal:
    return Refusal(
        "search_unavailable",
        f"semantic search can't run: {error.message}; until then look with network_discover",
        {"retryable": False},
    )
