"""Representatives as the operator sees them: who there is, what they may, what they ask."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from orchestrator.domain.network.confirmations import Confirmation
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.refusals import Refusal
from orchestrator.domain.network.rights import Representative, Right, effective
from orchestrator.errors import BadRequest, Conflict, NotFound
from orchestrator.ports.ids import Ids
from orchestrator.ports.member_tokens import Holder
from orchestrator.ports.representatives import (
    ChannelMessage,
    ChannelStore,
    ConfirmationStore,
    RepresentativeStore,
)
from orchestrator.services.member_tokens import MemberTokens
from tool_registry.clock import Clock

MAX_BODY_CHARS = 32_768


@dataclass(frozen=True, slots=True)
class Standing:
    """A representative, and what comes of its grants and its person's access."""

    representative: Representative
    effective: dict[NetworkName, list[Right]]


class Representatives:
    """What the operator does.

    Args:
        store: representatives and access.
        confirmations: calls that wait for a yes.
        channel: what is said between representatives and the operator.
        tokens: those that representatives come in with.
        clock: dates things.
        ids: names messages.
    """

    def __init__(
        self,
        store: RepresentativeStore,
        confirmations: ConfirmationStore,
        channel: ChannelStore,
        tokens: MemberTokens,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._confirmations = confirmations
        self._channel = channel
        self._clock = clock
        self._ids = ids

    async def put(self, name: str, person: str) -> Standing:
        """Add a representative, or give one to another person; then its grants are gone.

        Raises:
            BadRequest: a name can't be one.
        """
        wanted, behind = AgentName(_name("name", name)), _name("person", person)
        there = await self._store.get(wanted)
        if there is None or there.person != behind:
            there = Representative(wanted, behind, self._clock.now())
            await self._store.put(there)
        return await self._standing(there)

    async def list(self) -> list[Standing]:
        """All, by name."""
        return [await self._standing(one) for one in await self._store.list()]

    async def get(self, name: str) -> Standing:
        """One.

        Raises:
            NotFound: there is none of this name.
        """
        return await self._standing(await self._known(name))

    async def remove(self, name: str) -> None:
        """Forget one; its tokens open nothing any more.

        Raises:
            NotFound: there is none of this name.
        """
        known = await self._known(name)
        # First: one added later under this name is somebody else.
        await self._tokens.revoke_all(Holder.REPRESENTATIVE, known.name)
        await self._store.remove(known.name)

    async def grant(self, name: str, network: str, rights: Collection[Right]) -> Standing:
        """What a representative was given in a network; nothing takes it away.

        Raises:
            NotFound, BadRequest: no such representative; the network's name can't be one.
        """
        known, where = await self._known(name), NetworkName(_name("network", network))
        grants = {one: given for one, given in known.grants.items() if one != where}
        if rights:
            grants[where] = frozenset(rights)
        known = replace(known, grants=grants)
        await self._store.put(known)
        return await self._standing(known)

    async def allow(self, person: str, network: str, rights: Collection[Right]) -> None:
        """What a person may in a network; nothing takes it away.

        Raises:
            BadRequest: a name can't be one.
        """
        where = NetworkName(_name("network", network))
        await self._store.set_access(_name("person", person), where, frozenset(rights))

    async def pending(self) -> list[Confirmation]:
        """Calls that wait for a yes, or have it and were not made again, oldest first."""
        return await self._confirmations.open(self._clock.now())

    async def confirm(self, confirmation_id: str) -> Confirmation:
        """Agree to a call: the same call, made again with this id, acts, once.

        Raises:
            NotFound: there is none of this id.
            Conflict: it is too old, or was used.
        """
        now = self._clock.now()
        found: list[Confirmation] = []

        def agree(one: Confirmation) -> Confirmation | None:
            found.append(one)
            return one.confirmed(now)

        confirmed = await self._confirmations.change(confirmation_id, agree)
        if confirmed is None and found:
            raise Conflict("this confirmation is too old, or was used; the representative asks anew")
        if confirmed is None:
            raise NotFound(f"there is no confirmation {confirmation_id[:80]!r}")
        return confirmed

    async def say(self, name: str, body: str, conversation_id: str | None) -> ChannelMessage:
        """Say something to a representative.

        Raises:
            NotFound, BadRequest: no such representative; nothing is said, or too much.
        """
        known = await self._known(name)
        if not body.strip() or len(body) > MAX_BODY_CHARS:
            raise BadRequest(f"a message has 1 to {MAX_BODY_CHARS:,} characters")
        message = ChannelMessage(
            id=self._ids.new(),
            representative=known.name,
            conversation_id=conversation_id or self._ids.new(),
            from_operator=True,
            body=body,
            created_at=self._clock.now(),
        )
        await self._channel.add(message)
        return message

    async def channel(
        self, name: str | None, conversation_id: str | None, limit: int
    ) -> list[ChannelMessage]:
        """What was said, oldest first; with all representatives, or one."""
        representative = None if name is None else (await self._known(name)).name
        return await self._channel.history(
            representative=representative, conversation_id=conversation_id, limit=limit
        )

    async def _known(self, name: str) -> Representative:
        wanted = normal_name(name)
        found = None if isinstance(wanted, Refusal) else await self._store.get(AgentName(wanted))
        if found is None:
            raise NotFound(f"there is no representative {name[:80]!r}; see portside representatives list")
        return found

    async def _standing(self, one: Representative) -> Standing:
        return Standing(one, effective(one, await self._store.access(one.person)))


def _name(what: str, text: str) -> str:
    name = normal_name(text)
    if isinstance(name, Refusal):
        raise BadRequest(f"the {what}: {name.message}")
    return name
