"""Agents that come from outside, as instances of the network for as long as their sessions last."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog

from orchestrator.domain.network.agents import AgentDefinition, AgentKind
from orchestrator.domain.network.refusals import Refusal
from orchestrator.ports.errors import StoreError
from orchestrator.ports.ids import Ids
from orchestrator.ports.member_tokens import Holder, MemberToken
from orchestrator.services.network import NetworkService
from orchestrator.services.network_members import Refused
from tool_registry.clock import Clock
from tool_registry.errors import PortsideError

PERIOD_S = 5.0
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Present:
    """One session.

    Attributes:
        reads_inbox: it was seen where its inbox can be read, so that it can be given work.
        requests: how many are under way; an open stream is one.
        heard_at: on the monotonic clock.
    """

    instance_id: str
    token_id: str
    expires_at: datetime
    heard_at: float
    reads_inbox: bool = False
    requests: int = 0


class AgentSessions:
    """Each session is one instance: it joins with its first request, and leaves when the session ends.

    It ends when its client says so, when its token does, when this process does, and when nothing was
    heard of it for a while. What it had taken goes back, as for any instance.

    Args:
        network: where instances come and go.
        clock: tells how long nothing was heard.
        ids: names the instances.
        idle_s: how long a session without an open request lasts.
    """

    def __init__(self, network: NetworkService, clock: Clock, ids: Ids, *, idle_s: float) -> None:
        self._network = network
        self._clock = clock
        self._ids = ids
        self._idle_s = idle_s
        self._present: dict[str, _Present] = {}
        self._changing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look after sessions from now on; those of a run that was killed are over."""
        await self._network.end_sessions("the orchestrator was restarted")
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End every session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for key in list(self._present):
            await self.leave(key, "the orchestrator stopped")

    async def enter(self, key: str, token: MemberToken, *, reads_inbox: bool) -> str:
        """The session's instance, which joins now if this is the first that is heard of it.

        Args:
            key: names the session.
            token: its agent's.
            reads_inbox: it can be given work; else it is there, but found by nobody who looks for help.

        Raises:
            Refused: the network does not take it.
        """
        async with self._changing:
            present = self._present.get(key)
            if present is None:
                present = await self._joined(token)
                self._present[key] = present
            present.heard_at = self._clock.monotonic()
            present.reads_inbox = present.reads_inbox or reads_inbox
        if present.reads_inbox:
            await self._network.heartbeat(present.instance_id)
        return present.instance_id

    async def _joined(self, token: MemberToken) -> _Present:
        instance_id = self._ids.new()
        agent = await self._agent(token)
        if agent.kind is not AgentKind.WORKER:
            raise Refused(
                Refusal(
                    "not_served_by_jobs",
                    f"{agent.name!r} is a {agent.kind.value}; it joins by no agent token",
                )
            )
        await self._network.join(token.network, token.name, instance_id, None)
        return _Present(instance_id, token.id, token.expires_at, self._clock.monotonic())

    async def _agent(self, token: MemberToken) -> AgentDefinition:
        """It was there when the token was given out, so nobody is made here."""
        try:
            return (await self._network.agents.get(token.network, token.name)).definition
        except Refused as no:
            if no.code != "not_found":
                raise
            gone = (
                f"agent {token.name!r} was removed from network {token.network!r}; an operator adds it again "
                f"by: portside agents add {token.name} --network {token.network}"
            )
            raise Refused(Refusal("not_found", gone)) from no

    @contextmanager
    def request(self, key: str) -> Generator[None]:
        """A request of the session is under way: it is not idle."""
        present = self._present.get(key)
        if present is None:
            yield
            return
        present.requests += 1
        try:
            yield
        finally:
            present.requests -= 1
            present.heard_at = self._clock.monotonic()

    async def leave(self, key: str, reason: str) -> None:
        """A session ended; an unknown one has left already."""
        async with self._changing:
            present = self._present.pop(key, None)
            if present is not None:
                await self._network.leave(present.instance_id, reason)

    async def token_given(self, token: MemberToken) -> None:
        """An agent is about to be given a token: it comes to be, unless it is there.

        Raises:
            Refused: `name_taken` by a group.
        """
        if token.holder is Holder.AGENT:
            await self._network.ensure_network(token.network)
            await self._network.ensure_agent(token.network, token.name)

    async def token_revoked(self, token: MemberToken) -> None:
        """End the sessions of a token: nothing can be asked with it any more."""
        for key in [key for key, one in self._present.items() if one.token_id == token.id]:
            await self.leave(key, "its token was made void")

    async def look(self) -> None:
        """End what is over; what has a request open was heard of."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for key, present in list(self._present.items()):
            if present.expires_at <= now:
                await self.leave(key, "its token has expired")
            elif present.requests and present.reads_inbox:
                await self._network.heartbeat(present.instance_id)
            elif not present.requests and monotonic - present.heard_at > self._idle_s:
                await self.leave(key, f"nothing was heard of it for {self._idle_s:g} s")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.look()
            except (StoreError, PortsideError) as error:
                _log.warning("agent_sessions_unseen", reason=str(error))
            except Exception:  # noqa: BLE001 - whatever broke, the next look is the only way to recover
                _log.exception("agent_sessions_broke")
