"""Who calls tools over an MCP endpoint: a job, or an agent from outside. Both go through the one pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from orchestrator.domain.jobs import Job
from orchestrator.ports.ids import Ids
from orchestrator.ports.member_tokens import MemberToken
from orchestrator.services.agent_sessions import AgentSessions
from orchestrator.services.executions import CallAnswer, Describe, ExecutionService, WorkerCall
from orchestrator.services.mcp_endpoints import McpEndpoint
from tool_registry.audit import AuditRecord, AuditSink, SchemaVerdict
from tool_registry.catalogue import canonical_json
from tool_registry.clock import Clock
from tool_registry.context import ToolContext
from tool_registry.errors import CallError, ToolNotHosted
from tool_registry.execution import ToolExecutor
from tool_registry.redaction import Redactor
from tool_registry.registry import Entry, ToolRegistry
from tool_registry.visibility import HiddenReason, Visible, hosted_visibility

_CALL = "mcp-"
"""How the ids of such calls begin; the inbox knows them by it."""


class McpCaller(Protocol):
    """One who lists and calls tools.

    Attributes:
        principal: names it; a session belongs to the one who opened it.
        place: stands for a session where the client has none, as newer ones have none.
        instructions: what its client is told when it connects.
    """

    principal: str
    place: str
    instructions: str

    def entries(self) -> Sequence[Entry]:
        """The tools it sees, sorted by name."""
        ...

    async def present(self, session: str) -> None:
        """It was heard of in this session."""
        ...

    async def call(self, session: str, name: str, params: dict[str, Any]) -> CallAnswer:
        """Run one call; cancelling it cancels the tool."""
        ...


class JobCaller:
    """A job's worker, with the tools of its catalogue."""

    def __init__(self, job: Job, registry: ToolRegistry, executions: ExecutionService, ids: Ids) -> None:
        self.principal = self.place = f"job:{job.id}"
        self.instructions = ""
        self._job = job
        self._registry = registry
        self._executions = executions
        self._ids = ids

    def entries(self) -> Sequence[Entry]:
        """What the job's catalogue has."""
        return [one for one in self._registry.entries() if _seen(one, "worker", self._job.spec.grants)]

    async def present(self, session: str) -> None:
        """Its instance is the job's, which is there already."""

    async def call(self, session: str, name: str, params: dict[str, Any]) -> CallAnswer:
        """Run one call as `tools/execute` does."""
        key = f"{self._job.attempt}:{_CALL}{self._ids.new()}"
        raw = canonical_json([name, params]).encode()
        return await self._executions.execute(self._job, WorkerCall(name, params, key, raw))


class AgentTools:
    """What every agent's calls go through.

    Args:
        registry: what there is.
        executor: the pipeline, without a place for large outputs: no job keeps them.
        sessions: whose instances act.
        audit: told of calls that never reach the pipeline.
        redactor: takes secrets out of those.
        describe: makes the problem of a `CallError`.
        clock: dates them.
        ids: names calls.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        executor: ToolExecutor,
        sessions: AgentSessions,
        *,
        audit: AuditSink,
        redactor: Redactor,
        describe: Describe,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.registry = registry
        self.sessions = sessions
        self._executor = executor
        self._audit = audit
        self._redactor = redactor
        self._describe = describe
        self._clock = clock
        self._ids = ids

    def context(self, token: MemberToken, instance_id: str) -> ToolContext:
        """The context of a new call. Its rate is the agent's, however many sessions it opens."""
        return ToolContext(
            job_id=f"{token.holder}:{token.name}" + (f"@{token.network}" if token.network else ""),
            call_id=f"{instance_id}:{_CALL}{self._ids.new()}",
            agent=token.name,
            instance_id=instance_id,
            network=token.network,
            surface=token.holder,
        )

    async def run(self, name: str, params: dict[str, Any], context: ToolContext) -> CallAnswer:
        """Run one call."""
        try:
            output = await self._executor.execute(name, params, context)
        except CallError as error:
            return CallAnswer(problem=self._describe(error))
        return CallAnswer(output=output.as_json())

    def refuse(
        self, entry: Entry, params: dict[str, Any], context: ToolContext, endpoint: McpEndpoint
    ) -> CallAnswer:
        """Refuse a tool that the agent may use, but not here, and keep a record of it."""
        error = ToolNotHosted(
            f"{entry.name!r} can't be used at {endpoint.path}; connect to /mcp, which has all of a member's",
            reason=HiddenReason.WRONG_SURFACE,
        )
        self._audit(
            AuditRecord(
                at=self._clock.now(),
                job_id=context.job_id,
                agent=context.agent,
                network=context.network,
                tool_name=entry.name,
                source=str(entry.traits.source),
                call_id=context.call_id,
                params=self._redactor.value(params),
                verdict=error.code,
                schema_verdict=SchemaVerdict.UNCHECKED.value,
                violations=(),
                adjustments=(),
                duration_ms=0,
                output_bytes=0,
            )
        )
        return CallAnswer(problem=self._describe(error))


class AgentCaller:
    """An agent from outside, with the tools that an endpoint shows to agents."""

    def __init__(self, token: MemberToken, endpoint: McpEndpoint, tools: AgentTools) -> None:
        self.principal = f"{token.holder}:{token.name}@{token.network}{endpoint.path}"
        self.place = token.id
        self.instructions = endpoint.instructions
        self._token = token
        self._endpoint = endpoint
        self._tools = tools

    def entries(self) -> Sequence[Entry]:
        """The network's tools that are shown here."""
        return [
            one
            for one in self._tools.registry.entries()
            if self._endpoint.has(one.name) and _seen(one, self._token.holder)
        ]

    async def present(self, session: str) -> None:
        """Its instance is there."""
        await self._enter(session)

    async def call(self, session: str, name: str, params: dict[str, Any]) -> CallAnswer:
        """Run one call in the name of the session's instance."""
        context = self._tools.context(self._token, await self._enter(session))
        entry = self._tools.registry.get(name)
        if entry is not None and _seen(entry, self._token.holder) and not self._endpoint.has(name):
            return self._tools.refuse(entry, params, context, self._endpoint)
        return await self._tools.run(name, params, context)

    async def _enter(self, session: str) -> str:
        return await self._tools.sessions.enter(session, self._token, reads_inbox=self._endpoint.reads_inbox)


class RepresentativeCaller(AgentCaller):
    """A representative: it acts in many networks, and its calls say where; it is an instance of none."""

    async def _enter(self, session: str) -> str:
        return self._token.id


def _seen(entry: Entry, surface: str, grants: frozenset[str] = frozenset()) -> bool:
    verdict = hosted_visibility(entry.name, entry.traits, entry.state, grants=grants, surface=surface)
    return isinstance(verdict, Visible)
