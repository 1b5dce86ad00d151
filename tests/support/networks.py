"""A network with members that call its tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from jsonschema import validate
from pydantic import TypeAdapter

from orchestrator.domain.network.agents import AgentDefinition
from orchestrator.domain.network.identities import AgentName
from orchestrator.ports.embedder import Embedder
from orchestrator.ports.ids import Ids
from orchestrator.ports.network import NetworkStore
from orchestrator.ports.profile_vectors import ProfileVectorStore
from orchestrator.services.agent_search import AgentSearch
from orchestrator.services.collaboration_tools import collaboration_tools
from orchestrator.services.network import NetworkService
from orchestrator.services.network_tools import NetworkTool, network_tools
from tests.fakes.embedder import MemoryProfileVectorStore, WordEmbedder
from tool_registry.context import ToolContext

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class SetClock:
    """A clock that stands until it is moved."""

    at: datetime = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - START).total_seconds()

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class RunningClock(SetClock):
    """A clock that runs, and can be moved besides."""

    started: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        return self.at + timedelta(seconds=time.monotonic() - self.started)


@dataclass
class CountedIds:
    """Ids that sort in the order they were made."""

    _numbers: count[int] = field(default_factory=lambda: count(1))

    def new(self) -> str:
        return f"id-{next(self._numbers):06}"


class RandomIds:
    """Ids that no other process makes."""

    def new(self) -> str:
        return uuid4().hex


class Refusal(Exception):
    """A tool's refusal, with its result."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(f"{result['code']}: {result['message']}")
        self.code = result["code"]
        self.result = result


@dataclass
class Caller:
    """One instance that calls tools."""

    tools: dict[str, NetworkTool]
    network: str
    agent: str
    instance_id: str
    calls: count[int] = field(default_factory=lambda: count(1))

    async def __call__(self, name: str, *, call_id: str = "", **arguments: Any) -> dict[str, Any]:
        """Call `network_<name>`, or a collaboration tool; its answer is one that the tool promises.

        Raises:
            Refusal: the tool said no.
        """
        tool = self.tools.get(name) or self.tools[f"network_{name}"]
        context = ToolContext(
            job_id=f"job-of-{self.instance_id}",
            call_id=call_id or f"call-{next(self.calls)}",
            agent=self.agent,
            instance_id=self.instance_id,
            network=self.network,
        )
        output = await tool.execute(arguments, context)
        if output.is_error:
            assert output.result["code"] in {*tool.refusals, "not_a_member"}, output.result
            raise Refusal(output.result)
        validate(output.result, tool.output_schema)
        return output.result


class World:
    """A service over a store, with a clock that the test moves."""

    def __init__(
        self,
        store: NetworkStore,
        ids: Ids | None = None,
        *,
        clock: SetClock | None = None,
        embedder: Embedder | None = None,
        vectors: ProfileVectorStore | None = None,
        patience_s: float = 20.0,
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        self.clock = clock or SetClock()
        self.ids = ids or CountedIds()
        self.service = NetworkService(store, self.clock, self.ids)
        self.tools = {tool.definition.name: tool for tool in network_tools(self.service)}
        self.search = AgentSearch(
            store,
            embedder or WordEmbedder(),
            vectors or MemoryProfileVectorStore(),
            self.clock,
            patience_s=patience_s,
        )
        self.toolbox = {
            tool.definition.name: tool
            for tool in collaboration_tools(self.search, self.service.collaboration, sent)
        }

    async def agent(self, name: str, network: str = "local", **profile: Any) -> None:
        await self.service.ensure_network(network)
        await self.service.register_agent(
            network, AgentDefinition(AgentName(name), self.clock.now(), **profile)
        )

    async def instance(self, instance_id: str, agent: str = "coder", network: str = "local") -> Caller:
        """An instance that was heard from just now; its network and agent are made when they are missing."""
        await self.service.ensure_network(network)
        await self.service.ensure_agent(network, agent)
        await self.service.join(network, agent, instance_id, f"job-of-{instance_id}")
        await self.service.heartbeat(instance_id)
        return Caller(self.tools | self.toolbox, network, agent, instance_id)


def as_agent(profile: Mapping[str, Any]) -> AgentDefinition:
    """An agent of plain data; it is started when it is needed."""
    launch = {"autostart": True}
    return TypeAdapter(AgentDefinition).validate_python({"created_at": START, "launch": launch, **profile})
