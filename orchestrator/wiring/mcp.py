"""The MCP endpoints, and who comes in by them."""

from __future__ import annotations

from orchestrator.http.mcp_route import McpServices
from orchestrator.http.mcp_server import McpServer
from orchestrator.http.problems import problem_of
from orchestrator.services.agent_sessions import AgentSessions
from orchestrator.services.executions import ExecutionService
from orchestrator.services.mcp_callers import AgentTools
from orchestrator.services.member_tokens import MemberTokens
from orchestrator.wiring.base import Base
from orchestrator.wiring.jobs import Jobs
from orchestrator.wiring.tools import Tools


def mcp_of(base: Base, tools: Tools, jobs: Jobs, executions: ExecutionService) -> McpServices:
    """Put the endpoints together; they take requests once their server and sessions are started."""
    idle_s = base.settings.session_idle_s
    sessions = AgentSessions(tools.network, base.clock, base.ids, idle_s=idle_s)
    tokens = MemberTokens(base.signer, base.stores.member_tokens, base.clock, base.ids)
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
    return McpServices(
        tokens=tokens,
        worker_tokens=jobs.tokens,
        executions=executions,
        registry=tools.registry,
        agents=agents,
        sessions=sessions,
        server=McpServer(base.ids, idle_s=idle_s),
        ids=base.ids,
    )
