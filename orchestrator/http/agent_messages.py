"""The operator API's messages about agents."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from orchestrator.domain.network.agents import Instance
from orchestrator.services.agent_file import FileState
from orchestrator.services.agent_profiles import AgentProfile
from orchestrator.services.agent_records import AgentRecord


class AgentRequest(AgentProfile):
    """An agent to define: its name and its profile."""

    name: str = Field(min_length=1, max_length=200)

    def profile(self) -> AgentProfile:
        """Without the name."""
        return AgentProfile.model_validate(self.model_dump(exclude={"name"}))


class InstanceView(BaseModel):
    """One serving job, session or person."""

    instance_id: str
    job_id: str | None
    state: str
    joined_at: datetime
    last_seen_at: datetime | None

    @classmethod
    def of(cls, one: Instance) -> InstanceView:
        """The view of an instance."""
        return cls(
            instance_id=one.id,
            job_id=one.job_id,
            state=one.state.value,
            joined_at=one.joined_at,
            last_seen_at=one.last_seen_at,
        )


class AgentView(AgentProfile):
    """An agent with who serves it and what waits for it."""

    network: str
    name: str
    managed_by: str
    created_at: datetime
    instances: list[InstanceView]
    unfinished_tasks: int
    unread_messages: int

    @classmethod
    def of_record(cls, network: str, record: AgentRecord) -> AgentView:
        """The view of an agent."""
        definition = record.definition
        return cls(
            **AgentProfile.of(definition).model_dump(),
            network=network,
            name=definition.name,
            managed_by=definition.managed_by.value or "nobody",
            created_at=definition.created_at,
            instances=[InstanceView.of(one) for one in record.instances],
            unfinished_tasks=len(record.tasks),
            unread_messages=len(record.mail),
        )


class AgentFileView(BaseModel):
    """How `agents.yaml` stands; `problem` is empty while it is in use as it is."""

    path: str
    problem: str
    staying: list[str]

    @classmethod
    def of(cls, state: FileState) -> AgentFileView:
        """The view of the file's state."""
        return cls(path=state.name, problem=state.problem, staying=list(state.staying))
