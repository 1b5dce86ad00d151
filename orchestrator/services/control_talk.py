"""What representatives say: to agents in the name of their person, and to the operator."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.network.identities import Actor, NetworkName, ThreadId
from orchestrator.domain.network.refusals import not_found
from orchestrator.domain.network.rights import Right
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkStore
from orchestrator.ports.representatives import ChannelMessage, ChannelStore
from orchestrator.services import network_views as views
from orchestrator.services.control_access import Acting
from orchestrator.services.network import NetworkService
from orchestrator.services.network_mail import Ask
from orchestrator.services.network_members import Refused
from orchestrator.services.network_tasks import Delegation
from tool_registry.clock import Clock

Params = dict[str, Any]


class ControlTalk:
    """One method a tool; arguments fit the tool's schema.

    Args:
        service: the networks, where a representative has a place like any agent.
        store: tells in which network a thread is.
        channel: what it and the operator say.
        clock: dates that.
        ids: names that.
    """

    def __init__(
        self, service: NetworkService, store: NetworkStore, channel: ChannelStore, clock: Clock, ids: Ids
    ) -> None:
        self._service = service
        self._store = store
        self._channel = channel
        self._clock = clock
        self._ids = ids

    async def ask(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_ask`."""
        network = acting.network(params.get("networkId"), Right.COMMUNICATE)
        ask = Ask(
            params["body"],
            to_agent=params.get("toAgent"),
            to_instance=params.get("toInstance"),
            thread_id=params.get("threadId"),
            subject=params.get("subject"),
            task_id=params.get("taskId"),
            resource=params.get("resource"),
        )
        sent = await self._service.mail.ask(await self._actor(acting, network), ask)
        return {"network": network, **views.sent_view(sent)}

    async def reply(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_reply`."""
        thread_id = ThreadId(params["threadId"])
        for network in acting.within(Right.COMMUNICATE):
            if await self._store.read(network, lambda reader: reader.thread(thread_id)) is not None:
                actor = await self._actor(acting, network)
                sent = await self._service.mail.reply(actor, thread_id, params["body"])
                return {"network": network, **views.sent_view(sent)}
        raise Refused(not_found("thread", thread_id))

    async def delegate(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_delegate`."""
        network = acting.network(params.get("networkId"), Right.DELEGATE)
        wanted = Delegation(
            params["objective"],
            title=params.get("title"),
            acceptance_criteria=params.get("acceptanceCriteria", ()),
            to_agent=params.get("toAgent"),
            to_instance=params.get("toInstance"),
            resource=params.get("resource"),
        )
        task = await self._service.tasks.delegate(await self._actor(acting, network), wanted)
        return {"network": network, **views.task_view(task)}

    async def _actor(self, acting: Acting, network: NetworkName) -> Actor:
        place = await self._service.place(network, acting.name)
        return Actor(network, acting.name, place, acting.call_id)

    async def channel_send(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_channel_send`."""
        message = ChannelMessage(
            id=self._ids.new(),
            representative=acting.name,
            conversation_id=params.get("conversationId") or self._ids.new(),
            from_operator=False,
            body=params["body"],
            created_at=self._clock.now(),
        )
        await self._channel.add(message)
        return _message(message)

    async def channel_history(self, acting: Acting, params: Params) -> dict[str, Any]:
        """`control_channel_history`."""
        found = await self._channel.history(
            representative=acting.name,
            conversation_id=params.get("conversationId"),
            limit=int(params.get("limit", 100)),
        )
        return {"messages": [_message(one) for one in found]}


def _message(message: ChannelMessage) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "conversation_id": message.conversation_id,
        "from": "operator" if message.from_operator else "representative",
        "body": message.body,
        "sent_at": views.time_view(message.created_at),
    }
