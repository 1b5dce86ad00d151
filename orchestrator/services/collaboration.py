"""Asking an agent and waiting for its response; and fetching the response that came too late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import anyio

from orchestrator.domain.network.agents import FRESH, AgentDefinition
from orchestrator.domain.network.collaboration import (
    Cause,
    CheckStatus,
    CollaborationRequest,
    NotSent,
    lineage_of,
    wait_s,
)
from orchestrator.domain.network.identities import Actor, AgentName, MessageId, RequestId
from orchestrator.domain.network.names import normal_name
from orchestrator.domain.network.threads import Delivery, DeliveryState, Message
from orchestrator.ports.errors import StoreError
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkReader, NetworkStore, NetworkTransaction
from orchestrator.services.network_lineage import held_requests, held_tasks
from orchestrator.services.network_mail import Ask, NetworkMail
from orchestrator.services.network_members import acting_member
from orchestrator.services.response_waits import ResponseWaits
from tool_registry.clock import Clock

SUBJECT = "Request for collaboration"
# Another process may have taken the reply; nobody wakes us then.
_LOOK_S = 2.0
_NOT_WAITED = (
    "the request was sent and too many others are waited for already to wait for this one too: ask with "
    "check_collaboration_result later"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request within its time.

    Attributes:
        request: None when it was not sent.
        cause: None when there is a response.
        message: what a cause means and what to do.
    """

    request: CollaborationRequest | None
    response: str | None = None
    cause: Cause | None = None
    message: str = ""
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a request; the response of an `error` is its cause."""

    status: CheckStatus
    request_id: str
    response: str | None = None


class Collaboration:
    """Requests for collaboration, kept with the network: no wait holds anything but memory.

    Args:
        store: where the network is kept.
        mail: sends the request as any ask is sent.
        waits: who waits; the mail wakes them.
        clock: bounds the wait.
        ids: names requests.
    """

    def __init__(
        self, store: NetworkStore, mail: NetworkMail, waits: ResponseWaits, clock: Clock, ids: Ids
    ) -> None:
        self._store = store
        self._mail = mail
        self._waits = waits
        self._clock = clock
        self._ids = ids

    async def send(
        self, actor: Actor, target: str, task: str, timeout_s: float | None, sent: Callable[[], None]
    ) -> Outcome:
        """Send a task to an agent and wait for its first reply; the same call again goes on waiting.

        Args:
            actor: who asks.
            target: an agent of the network.
            task: all that the target is told.
            timeout_s: how long to wait, at most 300; None leaves it to the length of the task.
            sent: called before the wait, so that the target is told.

        Raises:
            Refused: `not_a_member`.
        """
        request = await self._store.change(
            actor.network, lambda tx: self._open(tx, actor, target, task, timeout_s)
        )
        if isinstance(request, NotSent):
            return Outcome(None, cause=request.cause, message=request.message)
        with self._waits.waiting(request.thread_id, actor.instance_id) as arrived:
            sent()
            return await self._waited(actor, request, arrived)

    async def _waited(
        self, actor: Actor, request: CollaborationRequest, arrived: asyncio.Event | None
    ) -> Outcome:
        while True:
            response = await self._response(actor, request)
            now = self._clock.now()
            waited_s = round((now - request.created_at).total_seconds(), 1)
            left_s = (request.expires_at - now).total_seconds()
            if response is not None:
                return Outcome(request, response.body, waited_s=waited_s)
            if arrived is None:
                return Outcome(request, cause=Cause.TIMEOUT, message=_NOT_WAITED, waited_s=waited_s)
            if left_s <= 0:
                return Outcome(request, cause=Cause.TIMEOUT, message=_timed_out(waited_s), waited_s=waited_s)
            with anyio.move_on_after(min(left_s, _LOOK_S)):
                await arrived.wait()
            arrived.clear()

    async def check(self, actor: Actor, request_id: str) -> Checked:
        """What became of a request of the actor's agent; a response is handed out once.

        Raises:
            Refused: `not_a_member`.
        """

        def take(tx: NetworkTransaction) -> Checked:
            acting_member(tx, actor)
            request = tx.request(RequestId(request_id))
            status = CheckStatus.NOT_FOUND if request is None else request.status(actor, self._clock.now())
            if request is None or not status.has_result:
                return Checked(status, request_id)
            tx.put_request(request.consumed(actor))
            _take_copies(tx, actor, request)
            response = _response_of(tx, request)
            return Checked(status, request_id, None if response is None else response.body)

        try:
            return await self._store.change(actor.network, take)
        except StoreError as error:
            return Checked(CheckStatus.ERROR, request_id, f"the result can't be read now: {error}")

    def _open(
        self, tx: NetworkTransaction, actor: Actor, target: str, task: str, timeout_s: float | None
    ) -> CollaborationRequest | NotSent:
        acting_member(tx, actor)
        there = tx.request_of_call(actor.instance_id, actor.call_id)
        if there is not None:
            return there
        now = self._clock.now()
        agent = _agent(tx, target)
        if agent is None:
            return NotSent(
                Cause.NOT_FOUND,
                f"there is no agent {target!r} in this network; find one with search_for_agents",
            )
        behind = [lineage for _, lineage in held_tasks(tx, actor)] + held_requests(tx, actor, now)
        active = agent.launch.autostart or agent.name in tx.serving_agents(now - FRESH)
        lineage = lineage_of(actor, agent, behind, active=active)
        if isinstance(lineage, NotSent):
            return lineage
        sent = self._mail.send_ask(tx, actor, Ask(task, to_agent=agent.name, subject=SUBJECT))
        request = CollaborationRequest(
            id=RequestId(self._ids.new()),
            requester=actor.agent,
            requester_instance=actor.instance_id,
            call_id=actor.call_id,
            target=agent.name,
            thread_id=sent.message.thread_id,
            message_id=sent.message.id,
            lineage=lineage,
            created_at=now,
            expires_at=now + timedelta(seconds=wait_s(task, timeout_s)),
        )
        tx.put_request(request)
        return request

    async def _response(self, actor: Actor, request: CollaborationRequest) -> Message | None:
        def look(reader: NetworkReader) -> tuple[Message | None, bool]:
            present = reader.request(request.id)
            response = None if present is None else _response_of(reader, present)
            return response, response is not None and bool(_open_copies(reader, actor, response.id))

        response, has_copies = await self._store.read(actor.network, look)
        if response is not None and has_copies:
            await self._store.change(actor.network, lambda tx: _take_copies(tx, actor, request))
        return response


def _agent(reader: NetworkReader, name: str) -> AgentDefinition | None:
    normal = normal_name(name)
    return reader.definition(AgentName(normal)) if isinstance(normal, str) else None


def _response_of(reader: NetworkReader, request: CollaborationRequest) -> Message | None:
    return None if request.response_id is None else reader.message(request.response_id)


def _open_copies(reader: NetworkReader, actor: Actor, message_id: MessageId) -> list[Delivery]:
    return [
        one
        for one in reader.deliveries_of_message(message_id)
        if one.state is DeliveryState.WAITING and one.open_to(actor)
    ]


def _take_copies(tx: NetworkTransaction, actor: Actor, request: CollaborationRequest) -> None:
    """Nobody is to find in the inbox what this call answers."""
    present = tx.request(request.id)
    if present is not None and present.response_id is not None:
        tx.put_deliveries([one.handed_to(actor) for one in _open_copies(tx, actor, present.response_id)])


def _timed_out(waited_s: float) -> str:
    return (
        f"no response within {waited_s:g} s; the agent still has the request: do something else and ask with "
        "check_collaboration_result later, or find its reply in network_inbox"
    )
