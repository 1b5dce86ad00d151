"""The agents that are there from the start, and the file that defines others."""

from __future__ import annotations

from orchestrator.adapters.files.agent_text import FileAgentText
from orchestrator.services.agent_file import AgentFile
from orchestrator.services.network import NetworkService
from orchestrator.wiring.base import Base


async def open_agents(base: Base, network: NetworkService) -> AgentFile:
    """Make the default network and agent, and take in what the file says now."""
    settings = base.settings
    file = AgentFile(network.agents, FileAgentText(settings.agents_file), base.clock)
    await file.reload()
    await network.ensure_network(settings.network)
    await network.ensure_agent(settings.network, settings.agent)
    return file
