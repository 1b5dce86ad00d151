"""The MCP endpoints' door, at ASGI level: who may come in, from where, and with how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import BadRequest, Forbidden
from orchestrator.http.auth import SOCKET_JOB, bearer_token, worker_job
from orchestrator.http.bodies import read_body
from orchestrator.http.failures import logged_bug
from orchestrator.http.mcp_server import CALLER, McpServer, session_of
from orchestrator.http.mcp_shares import McpShares
from orchestrator.http.problems import problem, problem_of, problem_response
from orchestrator.ports.errors import OwnerMissing, StoreUnavailable
from orchestrator.ports.ids import Ids
from orchestrator.ports.member_tokens import Holder
from orchestrator.services.agent_sessions import AgentSessions
from orchestrator.services.executions import ExecutionService
from orchestrator.services.mcp_callers import (
    AgentCaller,
    AgentTools,
    JobCaller,
    McpCaller,
    RepresentativeCaller,
)
from orchestrator.services.mcp_endpoints import MCP_ENDPOINTS, McpEndpoint
from orchestrator.services.member_tokens import MemberTokens
from orchestrator.services.representatives import Representatives
from orchestrator.services.tokens import TokenService
from tool_registry.arguments import strict_json
from tool_registry.errors import PortsideError
from tool_registry.registry import ToolRegistry

OVER_TCP = "portside.over_tcp"
"""What the scope of a request says that came over TCP, where browsers can send some too."""

_OURS = frozenset({"localhost", "127.0.0.1", "::1"})
_JOB_PREFIX, _JOB_SUFFIX = "/worker/", "/mcp"
_OPENED = _ENDED = 200  # how the SDK answers what opens a session, and a DELETE that ended one
_METHODS = frozenset({"GET", "POST", "DELETE"})


@dataclass(frozen=True, slots=True)
class McpServices:
    """What the endpoints work with."""

    tokens: MemberTokens
    worker_tokens: TokenService
    executions: ExecutionService
    registry: ToolRegistry
    agents: AgentTools
    sessions: AgentSessions
    server: McpServer
    shares: McpShares
    representatives: Representatives
    ids: Ids


class McpRoute:
    """Takes the MCP endpoints; everything else goes to the application behind it."""

    def __init__(self, app: ASGIApp, services: McpServices) -> None:
        self._app = app
        self._services = services
        self._endpoints: Mapping[str, McpEndpoint] = {one.path: one for one in MCP_ENDPOINTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        path: str = scope["path"] if scope["type"] == "http" else ""
        # A job's token never leaves its machine.
        endpoint, job_id = self._endpoints.get(path), None if OVER_TCP in scope else _job_id(path)
        if endpoint is None and job_id is None:
            await self._app(scope, receive, send)
            return
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            _check_source(scope)
            caller = await self._caller(scope, endpoint, job_id)
            await self._serve(scope, receive, noted, caller)
        except (PortsideError, StoreUnavailable, OwnerMissing) as error:
            await problem_response(problem_of(error))(scope, receive, send)
        except Exception:  # noqa: BLE001 - no layer is above this one
            body = logged_bug(scope, self._services.ids)
            if not started:
                await problem_response(body)(scope, receive, send)

    async def _caller(self, scope: Scope, endpoint: McpEndpoint | None, job_id: str | None) -> McpCaller:
        """Who calls.

        Raises:
            Unauthorised, JobMismatch: the token does not open this endpoint.
        """
        services = self._services
        if endpoint is None:
            job = await worker_job(scope, job_id or "", services.worker_tokens)
            return JobCaller(job, services.registry, services.executions, services.ids)
        token = bearer_token(scope)
        if SOCKET_JOB in scope:
            raise Forbidden("a job's socket leads to its own endpoint only, /worker/{job_id}/mcp")
        about = await services.tokens.check(token, endpoint.holder)
        kind = AgentCaller if endpoint.holder is Holder.AGENT else RepresentativeCaller
        return kind(about, endpoint, services.agents)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, caller: McpCaller) -> None:
        if scope["method"] not in _METHODS:
            await problem_response(
                problem("invalid_request", f"this path does not take {scope['method'][:20]}", status=405)
            )(scope, receive, send)
            return
        opens = False
        if scope["method"] == "POST":
            body, opens = await _body(scope, receive)
            receive = _again(body, receive)
        # The SDK gives a session to the one who opened it only.
        user = AuthenticatedUser(AccessToken(token="", client_id=caller.principal, scopes=[]))
        scope = {**scope, "user": user, CALLER: caller}
        session = session_of(scope, caller)
        sessions, shares = self._services.sessions, self._services.shares

        async def watched(message: Message) -> None:
            if scope["method"] == "DELETE" and message.get("status") == _ENDED:
                shares.ended(session)
                await sessions.leave(session, "its session ended")
            elif opens and message.get("status") == _OPENED:
                shares.opened(caller.principal, Headers(raw=message["headers"])[MCP_SESSION_ID_HEADER])
            await send(message)

        with shares.request(caller.principal, session, opens=opens), sessions.request(session):
            await self._services.server(scope, receive, watched)


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """The application behind the endpoints where they stand alone."""
    if scope["type"] == "http":
        await problem_response(problem("not_found", "there is no such path"))(scope, receive, send)


def _job_id(path: str) -> str | None:
    if not path.startswith(_JOB_PREFIX) or not path.endswith(_JOB_SUFFIX):
        return None
    job_id = path[len(_JOB_PREFIX) : -len(_JOB_SUFFIX)]
    return job_id if job_id and "/" not in job_id else None


def _check_source(scope: Scope) -> None:
    """Keep out what a web page in somebody's browser sends.

    Raises:
        Forbidden: the request names another host than this one, or comes from a page of another.
    """
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).hostname not in _OURS:
        raise Forbidden("requests from web pages of other hosts are not taken")
    if OVER_TCP in scope and _host(headers.get("host", "")) not in _OURS:
        raise Forbidden("the Host header names another machine; use the address that portside serve shows")


def _host(text: str) -> str | None:
    try:
        return urlsplit(f"//{text}").hostname
    except ValueError:
        return None


async def _body(scope: Scope, receive: Receive) -> tuple[bytes, bool]:
    """The body, whose JSON has one meaning, and whether it asks for a session.

    Raises:
        TooLarge, BadRequest: it has not.
    """
    body = await read_body(scope, receive)
    try:
        asked = strict_json(body.decode())
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    opens = isinstance(asked, dict) and cast("dict[str, Any]", asked).get("method") == "initialize"
    return body, opens and MCP_SESSION_ID_HEADER not in Headers(scope=scope)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever else comes."""
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return given.pop() if given else await receive()

    return replay
