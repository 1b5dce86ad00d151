"""Threads, messages, and what waits in an agent's inbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.network.identities import (
    Actor,
    AgentName,
    DeliveryId,
    InstanceId,
    MessageId,
    TaskId,
    ThreadId,
)
from orchestrator.domain.network.refusals import Refusal

MCP_CALLS = "mcp-"
"""How ids of calls begin that were made in an MCP session."""


class MessageKind(StrEnum):
    """What a message wants of its reader."""

    ASK = "ask"
    REPLY = "reply"
    NOTICE = "notice"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody in a thread.

    Attributes:
        instance_id: the instance that spoke or was addressed; None is whichever serves the name.
    """

    agent: AgentName
    instance_id: InstanceId | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation."""

    id: ThreadId
    subject: str
    participants: tuple[Participant, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """One message, kept for good.

    Attributes:
        call_id: the sending call; with the sending instance it makes a repeated send the same message.
        recipients: as they were addressed.
        sequence: counts up from one in its thread; 0 before messages were signed.
        signature: of the hub, with the key `key_id`; given when the message is stored.
    """

    id: MessageId
    thread_id: ThreadId
    kind: MessageKind
    sender: AgentName
    sender_instance: InstanceId
    call_id: str
    body: str
    subject: str
    task_id: TaskId | None
    resource: str | None
    created_at: datetime
    recipients: tuple[Participant, ...] = ()
    sequence: int = 0
    key_id: str = ""
    signature: str = ""


class DeliveryState(StrEnum):
    """How far one copy has come.

    `held` was handed out and is not proven received; it is handed out again when its holder ends.
    """

    WAITING = "waiting"
    HELD = "held"
    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One copy of a message, or one offer of a task, for one recipient.

    Attributes:
        instance_id: pins it to this instance; None is whichever serves `agent`.
        sender_instance: never gets its own copy.
        message_id: what is delivered, if it is a message; else `task_id` is offered.
        held_by: the instance it was handed to, in the call `held_call`.
        handed_out: how often it was; over one is a repeat.
    """

    id: DeliveryId
    agent: AgentName
    instance_id: InstanceId | None
    sender_instance: InstanceId
    message_id: MessageId | None
    task_id: TaskId | None
    created_at: datetime
    state: DeliveryState = DeliveryState.WAITING
    held_by: InstanceId | None = None
    held_call: str = ""
    handed_out: int = 0
    delivered_at: datetime | None = None

    def open_to(self, actor: Actor) -> bool:
        """Whether this call of the actor gets it: it waits for them, or this same call got it before."""
        if self.agent != actor.agent or self.sender_instance == actor.instance_id:
            return False
        if self.instance_id not in {None, actor.instance_id}:
            return False
        if self.state is DeliveryState.HELD:
            return self.held_by == actor.instance_id and self.held_call == actor.call_id
        return self.state is DeliveryState.WAITING

    def handed_to(self, actor: Actor) -> Delivery:
        """Held for the actor's call; the same call again changes nothing."""
        if self.state is DeliveryState.HELD:
            return self
        return replace(
            self,
            state=DeliveryState.HELD,
            held_by=actor.instance_id,
            held_call=actor.call_id,
            handed_out=self.handed_out + 1,
        )

    def delivered(self, now: datetime) -> Delivery:
        """Proven received."""
        return replace(self, state=DeliveryState.DELIVERED, delivered_at=now)

    def returned(self) -> Delivery:
        """Its holder starts anew without it: it waits again, and will say that it is a repeat."""
        if self.state is not DeliveryState.HELD:
            return self
        return replace(self, state=DeliveryState.WAITING, held_by=None, held_call="")

    def orphaned(self) -> Delivery:
        """Its instance ended: a message waits for the agent's name; an offer ends with the instance."""
        if self.message_id is None:
            return self.withdrawn()
        return replace(self.returned(), instance_id=None)

    def withdrawn(self) -> Delivery:
        """Not to be handed out any more."""
        return replace(self, state=DeliveryState.WITHDRAWN)


def with_live(thread: Thread, live: Collection[InstanceId]) -> Thread:
    """The thread as of now: the places of ended instances are their agents'."""
    places = [
        place if place.instance_id is None or place.instance_id in live else Participant(place.agent)
        for place in thread.participants
    ]
    return replace(thread, participants=tuple(dict.fromkeys(places)))


def spoken_in(thread: Thread, actor: Actor, others: Iterable[Participant]) -> Thread | Refusal:
    """The thread after the actor spoke in it to `others`; who answers for a name keeps the thread.

    Returns:
        The thread with its participants, or `not_a_participant`.
    """
    me = Participant(actor.agent, actor.instance_id)
    mine = _own_place(thread, actor)
    if mine is None:
        return Refusal(
            "not_a_participant",
            f"thread {thread.id!r} is between others; start one of your own with network_ask",
            {"thread_id": thread.id},
        )
    places = [me if place == mine else place for place in thread.participants]
    return replace(thread, participants=tuple(dict.fromkeys([*places, *others])))


def others_in(thread: Thread, actor: Actor) -> tuple[Participant, ...]:
    """Everybody in a thread but the actor."""
    mine = _own_place(thread, actor)
    return tuple(place for place in thread.participants if place != mine)


def _own_place(thread: Thread, actor: Actor) -> Participant | None:
    for place in (Participant(actor.agent, actor.instance_id), Participant(actor.agent)):
        if place in thread.participants:
            return place
    return None


def is_mcp_call(call_id: str) -> bool:
    """Whether a call was made in an MCP session, whose model requests don't carry its id."""
    return call_id.rpartition(":")[2].startswith(MCP_CALLS)


def proves_receipt(call_id: str, earlier: str) -> bool:
    """Whether an inbox call says by being made that an earlier one's result arrived."""
    return call_id != earlier and is_mcp_call(call_id) and is_mcp_call(earlier)
