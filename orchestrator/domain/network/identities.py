"""Names and ids of the network's things, and who acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

NetworkName = NewType("NetworkName", str)
AgentName = NewType("AgentName", str)
InstanceId = NewType("InstanceId", str)
ThreadId = NewType("ThreadId", str)
MessageId = NewType("MessageId", str)
DeliveryId = NewType("DeliveryId", str)
TaskId = NewType("TaskId", str)
ClaimId = NewType("ClaimId", str)
ArtifactId = NewType("ArtifactId", str)
RequestId = NewType("RequestId", str)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: from the token, never from an argument.

    Attributes:
        call_id: the acting call; repeating it repeats its answer, not its effect.
    """

    network: NetworkName
    agent: AgentName
    instance_id: InstanceId
    call_id: str
