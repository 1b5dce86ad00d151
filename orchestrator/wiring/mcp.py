"""The MCP endpoints, and who comes in by them."""

from __future__ import annotations

from orchestrator.http.mcp_route import McpServices
from orchestrator.http.mcp_server import McpServer
from orchestrator.http.mcp_shares import McpShares
from orchestrator.http.problems import problem_of
from orchestrator.services.agent_sessions import AgentSessions
from orchestrator.services.control_access import ControlAccess
from orchestrator.services.control_jobs import ControlJobs
from orchestrator.services.control_reads import ControlReads
from orchestrator.services.control_talk import ControlTalk
from orchestrator.services.control_tool import OWNER as CONTROL_OWNER
from orchestrator.services.control_tool import ControlTool
from orchestrator.services.control_tools import control_tools
from orchestrator.services.executions import ExecutionService
from orchestrator.services.jobs import JobService
from orchestrator.services.mcp_callers import AgentTools
from orchestrator.services.member_tokens import MemberTokens
from orchestrator.services.representatives import Representatives
from orchestrator.wiring.base import Base
from orchestrator.wiring.jobs import Jobs
from orchestrator.wiring.tools import Tools
from tool_registry.registry import Offer


def mcp_of(base: Base, tools: Tools, jobs: Jobs, executions: ExecutionService) -> McpServices:
    """Put the endpoints together; they take requests once their server and sessions are started."""
    stores, idle_s = base.stores, base.settings.session_idle_s
    sessions = AgentSessions(tools.network, base.clock, base.ids, idle_s=idle_s)
    tokens = MemberTokens(base.signer, stores.member_tokens, base.clock, base.ids)
    tokens.on_given(sessions.token_given)
    tokens.on_revoked(sessions.token_revoked)
    agents = AgentTools(
        tools.registry,
        tools.for_agents,
        sessions,
        audit=tools.audit,
        redactor=base.redactor,
        describe=problem_of,
        clock=base.clock,
        ids=base.ids,
    )
    tools.registry.replace(CONTROL_OWNER, [Offer(tool) for tool in _control(base, tools, jobs.service)])
    return McpServices(
        tokens=tokens,
        worker_tokens=jobs.tokens,
        executions=executions,
        registry=tools.registry,
        agents=agents,
        sessions=sessions,
        server=McpServer(base.ids, tools.registry.subscribe, idle_s=idle_s),
        shares=McpShares(base.clock, idle_s=idle_s),
        representatives=Representatives(
            stores.representatives, stores.confirmations, stores.channel, tokens, base.clock, base.ids
        ),
        ids=base.ids,
    )


def _control(base: Base, tools: Tools, jobs: JobService) -> list[ControlTool]:
    stores, clock, ids = base.stores, base.clock, base.ids
    access = ControlAccess(stores.representatives)
    return control_tools(
        access,
        ControlReads(access, stores.network, clock),
        ControlTalk(tools.network, stores.network, stores.channel, clock, ids),
        ControlJobs(
            stores.network, jobs, stores.confirmations, model=base.settings.model, clock=clock, ids=ids
        ),
        tools.arrivals.announce,
    )
