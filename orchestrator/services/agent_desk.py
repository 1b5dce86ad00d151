"""What operators do with agents: definitions, the file beside them, and the jobs that serve them."""

from __future__ import annotations

from orchestrator.domain.jobs import JobState
from orchestrator.domain.network.agents import LaunchSettings, ManagedBy
from orchestrator.domain.network.identities import AgentName, NetworkName
from orchestrator.services.agent_file import AgentFile, FileState
from orchestrator.services.agent_profiles import AgentProfile
from orchestrator.services.agent_records import AgentRecord
from orchestrator.services.jobs import JobService
from orchestrator.services.network_agents import NetworkAgents
from orchestrator.services.network_members import agent_name, network_name
from tool_registry.clock import Clock

_LIVE = frozenset(state for state in JobState if not state.terminal)


class AgentDesk:
    """Agents as operators see and change them.

    Args:
        agents: the definitions.
        file: what else defines agents.
        jobs: ended with a removed agent.
        clock: dates new definitions.
    """

    def __init__(self, agents: NetworkAgents, file: AgentFile, jobs: JobService, clock: Clock) -> None:
        self._agents = agents
        self._file = file
        self._jobs = jobs
        self._clock = clock

    @property
    def file(self) -> FileState:
        """How `agents.yaml` stands."""
        return self._file.state

    async def networks(self) -> list[NetworkName]:
        """Every network, by name."""
        return await self._agents.networks()

    async def list(self, network: str) -> list[AgentRecord]:
        """A network's agents, by name."""
        return await self._agents.list(network)

    async def get(self, network: str, name: str) -> AgentRecord:
        """One agent."""
        return await self._agents.get(network, name)

    async def launch_settings(self, network: str, name: str) -> LaunchSettings:
        """How a job for this agent is started."""
        return await self._agents.launch_settings(network, name)

    async def add(self, network: str, name: str, profile: AgentProfile) -> AgentRecord:
        """Define an agent."""
        wanted = profile.definition(AgentName(name), self._clock.now(), ManagedBy.OPERATOR)
        return await self._agents.add(network, wanted)

    async def update(self, network: str, name: str, profile: AgentProfile) -> AgentRecord:
        """Replace an agent's profile."""
        wanted = profile.definition(AgentName(name), self._clock.now(), ManagedBy.OPERATOR)
        return await self._agents.update(network, wanted)

    async def remove(self, network: str, name: str, *, force: bool) -> None:
        """Forget an agent; with `force` also cancel its jobs."""
        await self._agents.remove(network, name, force=force)
        whose = (agent_name(name), network_name(network))
        for job in await self._jobs.list(states=_LIVE, limit=10_000) if force else ():
            if (job.spec.agent, job.spec.network) == whose:
                await self._jobs.cancel(job.id, f"agent {name!r} was removed")
